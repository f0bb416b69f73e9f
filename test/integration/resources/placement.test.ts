/**
 * Admission on a whole node in virtual time: pods that ask for labels or must tolerate taints, a node whose labels and
 * room change while it runs or while it is down, and what it does then about pods that run already.
 */
import { describe, expect } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { cluster, create, created, createReady, events, inApi, isReady, must, patch } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

const NODE = '/api/v1/nodes/n1';
const SSD: Partial<Pod['spec']> = { nodeSelector: { disk: 'ssd' } };

function patchNode(h: VirtualNode, body: object): void {
  must(h, { verb: 'PATCH', path: NODE, patchType: 'merge', body });
}
const label = (h: VirtualNode, disk: string | null) => patchNode(h, { metadata: { labels: { disk } } });
const running = (h: VirtualNode, name: string) => h.running().filter((c) => c.labels['io.kubernetes.pod.name'] === name);
const reason = (h: VirtualNode, name: string) => inApi(h, name)?.status.reason;

describe('a pod that needs a feature which nodes declare', () => {
  const rules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }];
  const restartsAll = { container: { restartPolicy: 'Never', restartPolicyRules: rules } };
  const without = { RestartAllContainersOnContainerExits: false };
  const declared = (h: VirtualNode) =>
    (h.kube.store.list('nodes')[0]?.status as { declaredFeatures?: string[] } | undefined)?.declaredFeatures;

  it.each([
    ['of the pod', 'RestartAllContainersOnContainerExits', restartsAll, without],
    [
      'of an init container',
      'RestartAllContainersOnContainerExits',
      { spec: { initContainers: [{ name: 'i', image: 'i:1', ...restartsAll.container }] } },
      without,
    ],
    ['that no node of this kind has', 'UserNamespacesHostNetworkSupport', { spec: { hostNetwork: true, hostUsers: false } }, {}],
  ])('%s is refused where the node does not declare it', async (_, feature, asked, featureGates) => {
    await using h = await cluster({ config: { featureGates } });
    create(h, 'web', asked);
    await h.until('refused', () => inApi(h, 'web')?.status.phase === 'Failed');
    const message = `Pod requires node features that are not available: ${feature}`;
    expect(inApi(h, 'web')?.status).toMatchObject({ reason: 'PodFeatureUnsupported', message: `Pod was rejected: ${message}` });
    expect(events(h, 'PodFeatureUnsupported')).toEqual([message]);
    await h.until('the node is there', () => declared(h) !== undefined);
    expect(declared(h)).not.toContain(feature);
  });

  it.each([{}, { ...without, NodeDeclaredFeatures: false }])(
    'runs where the node declares it, and where pods are not asked (%j)',
    async (featureGates) => {
      await using h = await cluster({ config: { featureGates } });
      await createReady(h, 'web', restartsAll);
    },
  );

  it('is told when an update needs it, and changes all the same', async () => {
    const featureGates = { InPlacePodLevelResourcesVerticalScaling: false, InPlacePodVerticalScalingInitContainers: false };
    await using h = await cluster({ config: { featureGates } });
    const init = (cpu: string) => ({ name: 'i', image: 'i:1', resources: { requests: { cpu } } });
    create(h, 'web', { spec: { initContainers: [init('10m')], resources: { requests: { cpu: '50m' } } } });
    await h.until('its init container runs', () => running(h, 'web').length === 1);
    const told = () => events(h, 'FailedNodeDeclaredFeaturesCheck');
    patch(h, 'pods/web', { metadata: { labels: { a: 'b' } } });
    await h.advance(2_000);
    expect(told()).toEqual([]);
    patch(h, 'pods/web', { spec: { resources: { requests: { cpu: '60m' } }, initContainers: [init('20m')] } });
    await h.until('told', () => told().length === 1);
    const both = 'InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers';
    expect(told()).toEqual([`Pod requires node features that are not available: ${both}`]);
    await h.until('it is granted', () => events(h, 'ResizeStarted').length === 1);
  });
});

describe('a pod that asks for a label', () => {
  it('runs although the label is younger than the last look at the node', async ({ h }) => {
    await createReady(h, 'first');
    label(h, 'ssd');
    await createReady(h, 'web', { spec: SSD });
    expect(events(h, 'NodeAffinity')).toEqual([]);
  });

  it('that the node does not have is refused after another look at the node, in the words of the reference', async ({ h }) => {
    create(h, 'web', { spec: SSD });
    await h.until('refused', () => inApi(h, 'web')?.status.phase === 'Failed');
    const message =
      "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector (nodeSelector asks for disk=ssd, the node has no such label)";
    expect(inApi(h, 'web')?.status).toMatchObject({ reason: 'NodeAffinity', message: `Pod was rejected: ${message}` });
    expect(events(h, 'NodeAffinity')).toEqual([message]);
    expect(h.runtime.dump().sandboxes).toEqual([]);
    expect(await h.metrics.render()).toMatch(/^kubelet_admission_rejections_total\{reason="NodeAffinity"\} 1$/m);
  });

  it('is judged in the end by what is known, when the node cannot be read', async ({ h }) => {
    await createReady(h, 'first');
    h.kube.trouble.verdict = (r) => ({ delayMs: 0, ...(r.path.startsWith(NODE) ? { refuse: { status: 500 } } : {}) });
    create(h, 'web', { spec: SSD });
    await h.advance(20_000);
    expect(reason(h, 'web')).toBeUndefined();
    expect(h.actor('node/pods/podManager')?.reason).toBe('LookingAgain');
    await h.until('refused', () => reason(h, 'web') === 'NodeAffinity', 60_000);
  });

  it('runs on when the label goes, also over a restart of the daemon; a new one is refused', async ({ h }) => {
    await h.until('registered', () => h.kube.handle({ verb: 'GET', path: NODE }).ok);
    label(h, 'ssd');
    await createReady(h, 'old', { spec: SSD });
    const [before] = running(h, 'old');
    await h.crash();
    label(h, null);
    await h.boot();
    create(h, 'new', { spec: SSD });
    await h.until('the new one is refused', () => reason(h, 'new') === 'NodeAffinity', 60_000);
    await h.advance(60_000);
    expect(running(h, 'old').map((c) => c.id)).toEqual([before?.id]);
    expect(isReady(h, 'old')).toBe(true);
    expect(h.violations).toEqual([]);
  });

  it('in a manifest is held to what the node registers with, while the API server is away and where there is none', async () => {
    const options: VirtualNodeOptions = { flags: { nodeLabels: { disk: 'ssd' } } };
    await using alone = await virtualNode(options);
    alone.write('fits', manifest('fits', { spec: { nodeSelector: { disk: 'ssd', 'kubernetes.io/os': 'linux' } } }));
    alone.write('odd', manifest('odd', { spec: { nodeSelector: { disk: 'hdd' } } }));
    await alone.until('judged', () => alone.phase('fits') === 'Running' && alone.status('odd')?.status.reason === 'NodeAffinity');
    const gone = (h: VirtualNode) => {
      h.kube.trouble.down = true;
    };
    await using away = await cluster({ ...options, before: gone });
    away.write('fits', manifest('fits', { spec: SSD }));
    await away.until('runs', () => away.phase('fits') === 'Running');
  });
});

describe('a taint NoExecute', () => {
  it('refuses new pods that do not tolerate it, not static ones, and not what runs already', async ({ h }) => {
    await createReady(h, 'old');
    patchNode(h, { spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoExecute' }] } });
    await h.advance(15_000);
    create(h, 'new');
    create(h, 'tolerant', { spec: { tolerations: [{ key: 'dedicated', operator: 'Exists' }] } });
    h.write('static', manifest('static'));
    await h.until('judged', () => reason(h, 'new') === 'TaintToleration' && isReady(h, 'tolerant') && h.phase('static') === 'Running');
    await h.restart();
    await h.advance(60_000);
    expect(isReady(h, 'old')).toBe(true);
    expect(running(h, 'new')).toEqual([]);
  });
});

describe('the groups policy Strict', () => {
  it('CRI trap 11: refuses the pod on a node that says it has no such feature', async ({ h }) => {
    create(h, 'strict', { spec: { securityContext: { supplementalGroupsPolicy: 'Strict' } } });
    create(h, 'merge', { spec: { securityContext: { supplementalGroupsPolicy: 'Merge' } } });
    await h.until('judged', () => reason(h, 'strict') === 'SupplementalGroupsPolicyNotSupported' && isReady(h, 'merge'));
    const message = 'Pod was rejected: SupplementalGroupsPolicy=Strict is not supported in this node';
    expect(inApi(h, 'strict')?.status).toMatchObject({ phase: 'Failed', message });
    expect(running(h, 'strict')).toEqual([]);
    const node = h.kube.handle({ verb: 'GET', path: NODE });
    expect(JSON.stringify(node)).not.toContain('"supplementalGroupsPolicy":true');
  });
});

describe('what the runtime says that it can do', () => {
  const strict = { spec: { securityContext: { supplementalGroups: [5], supplementalGroupsPolicy: 'Strict' } } };

  it('lets a pod with the groups policy Strict in, tells both the runtime and the API of it', async () => {
    await using h = await cluster({ hollow: { features: { features: { supplementalGroupsPolicy: true } } } });
    await createReady(h, 'strict', strict);
    const node = h.kube.handle({ verb: 'GET', path: NODE });
    expect(node).toMatchObject({ body: { status: { features: { supplementalGroupsPolicy: true } } } });
    expect(created(h, 'strict')[0]?.linux?.securityContext).toMatchObject({
      supplementalGroups: [5],
      supplementalGroupsPolicy: 'Strict',
    });
  });

  it('is waited for: a pod that asks for it is not judged before the runtime has answered for the first time', async () => {
    await using h = await cluster({
      hollow: { features: { features: { supplementalGroupsPolicy: true } } },
      ready: false,
      before: (v) => {
        v.faults.away = true;
      },
    });
    create(h, 'strict', strict);
    create(h, 'forbidden', { spec: { securityContext: { sysctls: [{ name: 'vm.swappiness', value: '1' }] } } });
    await h.until('what needs no runtime is judged', () => reason(h, 'forbidden') === 'SysctlForbidden');
    expect(inApi(h, 'strict')?.status.phase).not.toBe('Failed');
    h.faults.away = false;
    await h.until('Ready', () => isReady(h, 'strict'));
  });
});

describe('sysctls', () => {
  const setting = (...names: string[]) => ({ spec: { securityContext: { sysctls: names.map((name) => ({ name, value: '1' })) } } });
  it('that are neither safe nor allowed fail the pod, in the words of the reference; others reach the sandbox with dots', async () => {
    await using h = await cluster({ config: { allowedUnsafeSysctls: ['net.core.*', 'kernel.msgmax'] } });
    create(h, 'safe', setting('net/ipv4/tcp_syncookies', 'net.core.somaxconn', 'kernel.msgmax'));
    create(h, 'unsafe', setting('kernel.msgmnb'));
    await h.until('judged', () => isReady(h, 'safe') && reason(h, 'unsafe') === 'SysctlForbidden');
    const message = 'forbidden sysctl: "kernel.msgmnb" not allowlisted';
    expect(inApi(h, 'unsafe')?.status).toMatchObject({ phase: 'Failed', message: `Pod was rejected: ${message}` });
    expect(events(h, 'SysctlForbidden')).toEqual([message]);
    const sandboxes = h.calls.filter((c) => c.method === 'RunPodSandbox').map((c) => (c.req as CriRequest<'RunPodSandbox'>).config);
    expect(sandboxes.map((s) => s.linux?.sysctls)).toEqual([
      { 'net.ipv4.tcp_syncookies': '1', 'net.core.somaxconn': '1', 'kernel.msgmax': '1' },
    ]);
  });
});

describe('a runtime class', () => {
  const CLASSES = '/apis/node.k8s.io/v1/runtimeclasses';
  const handlers = (h: VirtualNode) =>
    h.calls.filter((c) => c.method === 'RunPodSandbox').map((c) => (c.req as CriRequest<'RunPodSandbox'>).runtimeHandler);

  it('names the handler of the runtime that the sandbox is made with', async ({ h }) => {
    h.kube.handle({ verb: 'POST', path: CLASSES, body: { metadata: { name: 'sandboxed' }, handler: 'kata' } });
    create(h, 'plain');
    create(h, 'web', { spec: { runtimeClassName: 'sandboxed' } });
    await h.until('both Ready', () => isReady(h, 'plain') && isReady(h, 'web'));
    expect(handlers(h).sort()).toEqual(['kata', undefined]);
  });

  it('that does not exist keeps the pod waiting, says so, and does no longer when it is made', async ({ h }) => {
    create(h, 'web', { spec: { runtimeClassName: 'sandboxed' } });
    const message = 'Failed to create pod sandbox: the runtime class "sandboxed" does not exist';
    await h.until('said', () => events(h, 'FailedCreatePodSandBox').includes(message));
    expect(inApi(h, 'web')?.status.phase).toBe('Pending');
    expect(handlers(h)).toEqual([]);
    h.kube.handle({ verb: 'POST', path: CLASSES, body: { metadata: { name: 'sandboxed' }, handler: 'kata' } });
    await h.until('Ready', () => isReady(h, 'web'), 120_000);
    expect(handlers(h)).toEqual(['kata']);
  });

  it('of a pod whose sandbox ends while the API server is away is what it was', async ({ h }) => {
    h.kube.handle({ verb: 'POST', path: CLASSES, body: { metadata: { name: 'sandboxed' }, handler: 'kata' } });
    await createReady(h, 'web', { spec: { runtimeClassName: 'sandboxed' } });
    h.kube.trouble.down = true;
    const [sandbox] = h.runtime.dump().sandboxes;
    const call = { timeoutMs: null, signal: new AbortController().signal };
    void h.runtime.connect().call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, call);
    await h.until('a new sandbox', () => handlers(h).length === 2 && running(h, 'web').length === 1, 60_000);
    expect(handlers(h)).toEqual(['kata', 'kata']);
    h.kube.trouble.down = false;
  });

  it('cannot be named by a manifest, which nobody would resolve', async ({ h }) => {
    h.write('web', manifest('web', { spec: { runtimeClassName: 'sandboxed' } }));
    await h.until('refused', () => h.status('web')?.status.reason === 'UnsupportedField');
  });
});

describe('a node with less room than before', () => {
  it('trap 54: keeps what runs over a restart, and refuses what is new', async () => {
    const config = { maxPods: 2 };
    await using h = await cluster({ config });
    create(h, 'a');
    create(h, 'b');
    await h.until('both Ready', () => isReady(h, 'a') && isReady(h, 'b'));
    const before = h.running().map((c) => c.id);
    await h.crash();
    config.maxPods = 1;
    await h.boot();
    create(h, 'c');
    await h.until('the new one is refused', () => reason(h, 'c') === 'OutOfpods', 60_000);
    await h.advance(60_000);
    expect(h.running().map((c) => c.id)).toEqual(before);
    expect(isReady(h, 'a') && isReady(h, 'b')).toBe(true);
    expect(h.violations).toEqual([]);
  });

  it('does not count pods of the API that have ended, from the first moment after a restart on', async () => {
    await using h = await cluster({ config: { maxPods: 2 } });
    for (const name of ['done-1', 'done-2']) create(h, name, { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } });
    await h.until('both ended', () => ['done-1', 'done-2'].every((name) => inApi(h, name)?.status.phase === 'Succeeded'));
    await h.crash();
    create(h, 'a');
    create(h, 'b');
    await h.boot();
    await h.until('both run', () => isReady(h, 'a') && isReady(h, 'b'));
    expect(events(h, 'OutOfpods')).toEqual([]);
    expect(inApi(h, 'done-1')?.status.phase).toBe('Succeeded');
  });
});
