import { expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { hashNameAndImage, hashWholeSpec } from '../../../src/machines/pod/runtime/containerHash.ts';
import { CRI_ANNOTATIONS } from '../../../src/machines/wire/cri.ts';
import { hollowNode, manifest, until } from '../hollowNode.ts';
import { ROOT, type VirtualNode, pod as virtualPod } from '../virtualNode.ts';
import { cluster, inApi, isReady } from './clusterPods.ts';

const call = { timeoutMs: 1_000, signal: new AbortController().signal };

/** What another node agent left running for a static pod `web`: its own UID, its own labels and annotations. */
async function leftByAnother(h: Awaited<ReturnType<typeof hollowNode>>, image: string, hash: 'name and image' | 'whole'): Promise<string> {
  const labels = { 'io.kubernetes.pod.name': 'web-n1', 'io.kubernetes.pod.namespace': 'default', 'io.kubernetes.pod.uid': 'theirs' };
  const sandboxConfig = {
    metadata: { name: 'web-n1', namespace: 'default', uid: 'theirs', attempt: 0 },
    labels,
    annotations: { 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.hash': 'theirs' },
    linux: { securityContext: { namespaceOptions: { network: 'POD' as const, pid: 'CONTAINER' as const, ipc: 'POD' as const } } },
  };
  const { podSandboxId } = await h.runtime.call('RunPodSandbox', { config: sandboxConfig }, call);
  await h.runtime.call('PullImage', { image: { image } }, call);
  const spec = {
    name: 'main',
    image,
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File' as const,
    imagePullPolicy: 'IfNotPresent' as const,
  };
  const config = {
    metadata: { name: 'main', attempt: 3 },
    image: { image },
    labels: { ...labels, 'io.kubernetes.container.name': 'main' },
    annotations: {
      [CRI_ANNOTATIONS.hash]: hash === 'whole' ? hashWholeSpec(spec) : hashNameAndImage(spec),
      [CRI_ANNOTATIONS.restartCount]: '3',
      [CRI_ANNOTATIONS.podTerminationGracePeriod]: '2',
    },
    logPath: 'main/3.log',
  };
  const { containerId } = await h.runtime.call('CreateContainer', { podSandboxId, config, sandboxConfig }, call);
  await h.runtime.call('StartContainer', { containerId }, call);
  return containerId;
}
const running = (h: Awaited<ReturnType<typeof hollowNode>>) => h.runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING');

it.each(['name and image', 'whole'] as const)('takes over a static pod of another node agent by its name and its %s hash', async (hash) => {
  await using h = await hollowNode();
  await h.node.stop();
  const id = await leftByAnother(h, 'busybox:1', hash);
  h.write('web.json', manifest('web'));
  await h.reboot();
  await until('web is shown running', () => h.status('web')?.status.phase === 'Running');
  expect(running(h).map((c) => c.id)).toEqual([id]);
  expect(h.record('web')?.pod.metadata.uid).toBe('theirs');
  expect((h.node.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'TakenOver')).toMatchObject([
    { type: 'Normal', pod: { uid: 'theirs' }, count: 1 },
  ]);
  expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 3, containerID: expect.stringContaining(id) });

  // And again after a restart of this node, and still the same pod for its manifest.
  await h.reboot();
  await until('web is shown running again', () => h.status('web')?.status.phase === 'Running');
  expect(running(h).map((c) => c.id)).toEqual([id]);
  h.remove('web.json');
  await until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 60_000);
});

it('takes it over also where the runtime still holds what this node had run of it before', async () => {
  await using h = await hollowNode();
  h.write('web.json', manifest('web'));
  await until('web is shown running', () => h.status('web')?.status.phase === 'Running');
  await h.node.stop();
  // The other agent winds down the pod of that name, and runs its own. What was stopped is collected later.
  for (const { id } of running(h)) await h.runtime.call('StopContainer', { containerId: id, timeout: 0 }, call);
  for (const { id } of h.runtime.dump().sandboxes) await h.runtime.call('StopPodSandbox', { podSandboxId: id }, call);
  const id = await leftByAnother(h, 'busybox:1', 'whole');
  await h.reboot();
  await until('web is theirs', () => h.record('web')?.pod.metadata.uid === 'theirs' && h.status('web')?.status.phase === 'Running');
  expect(running(h).map((c) => c.id)).toEqual([id]);
});

it('replaces a pod whose definition was edited in what no hash covers, live and while the daemon was away', async () => {
  await using h = await hollowNode();
  h.write('web.json', manifest('web', { command: ['one'] }));
  const first = await until('the first runs', () => (h.status('web')?.status.phase === 'Running' ? running(h)[0]?.id : undefined));
  h.write('web.json', manifest('web', { command: ['two'] }));
  const second = await until('the edited one runs alone', () => {
    const [only, ...more] = running(h);
    return only !== undefined && only.id !== first && more.length === 0 ? only.id : undefined;
  });
  await h.node.stop();
  h.write('web.json', manifest('web', { command: ['three'] }));
  await h.reboot();
  await until('the one edited meanwhile runs alone', () => running(h).length === 1 && running(h)[0]?.id !== second);
});

it('stops what another definition left before it starts the pod of that name', async () => {
  await using h = await hollowNode();
  await h.node.stop();
  const id = await leftByAnother(h, 'other:1', 'name and image');
  h.write('web.json', manifest('web'));
  await h.reboot();
  await until('the new one runs', () => running(h).some((c) => c.id !== id));
  const dump = h.runtime.dump().containers;
  const [old, next] = [dump.find((c) => c.id === id), running(h)[0]];
  expect(running(h)).toHaveLength(1);
  if (old !== undefined && next !== undefined) expect(old.finishedAtMs ?? 0).toBeLessThanOrEqual(next.startedAtMs ?? 0);
});

it('shows its pods although no runtime answers, a moment later', async () => {
  await using h = await hollowNode({
    ports: (ports) => ({
      ...ports,
      cri: {
        call: () => Promise.reject(Object.assign(new Error('no runtime'), { code: 14 })),
        hints: () => Promise.reject(Object.assign(new Error('no runtime'), { code: 14 })),
        reconnect: () => {},
        close: () => {},
      },
    }),
  });
  h.write('web.json', manifest('web'));
  await until('web is listed', () => h.record('web'), 60_000);
  expect(h.node.tree.state().lifecycle).toBe('running');
});

// ---- probes of static pods that run on: what the API server showed of them stands -------------------------------
const CHECKPOINT = `${ROOT}/actorlet/state/probes.json`;
const probe = (path: string) => ({ httpGet: { path, port: 8080, host: '127.0.0.1' }, periodSeconds: 10, failureThreshold: 3 });
const PROBED = virtualPod('web', {
  spec: {
    hostNetwork: true,
    containers: [
      { name: 'main', image: 'busybox:1', startupProbe: probe('/up'), readinessProbe: probe('/ready'), livenessProbe: probe('/live') },
      { name: 'late', image: 'busybox:1', readinessProbe: probe('/ready') },
    ],
  },
});
const told = (p: Pod | undefined) => p?.status.conditions?.map((c) => `${c.type} ${c.status} since ${c.lastTransitionTime}`);

/** Nothing but the runtime and the API server knows what probes found: the agent that ran the pod kept no file of ours. */
async function handedOver(h: VirtualNode): Promise<void> {
  await h.crash();
  await h.advance(60_000);
  h.fs.drop(CHECKPOINT);
}
/** Every status that is written from now on. */
function written(h: VirtualNode, delayMs: (verb: string) => number): string[] {
  const ready: string[] = [];
  h.kube.trouble.verdict = ({ verb, path, body }) => {
    if (path.endsWith('/pods/web-n1/status')) ready.push(JSON.stringify((body as { status: object }).status));
    return { delayMs: delayMs(verb) };
  };
  return ready;
}
const changesReady = (patch: string) => /"type":"(?:Ready|ContainersReady)"|"ready":false|"started":false/.test(patch);

for (const [title, slow] of [
  ['at once', { GET: 0 }],
  ['after their first status', { GET: 4_000 }],
  ['late, and is slow to answer', { GET: 4_000, PATCH: 1_000, POST: 1_000 }],
] as const)
  it(`a static pod stays Ready through a takeover where the API server answers ${title}`, async () => {
    await using h = await cluster({ manifests: { web: PROBED } });
    h.probes.answer = () => 200;
    await h.until('its mirror is Ready', () => isReady(h, 'web-n1'), 120_000);
    await h.advance(30_000);
    const before = told(inApi(h, 'web-n1'));
    await handedOver(h);
    const patches = written(h, (verb) => (slow as Record<string, number>)[verb] ?? 0);
    // What the first probes find comes late.
    h.probes.afterMs = 900;
    await h.boot();
    await h.advance(60_000);
    expect(patches.filter(changesReady)).toEqual([]);
    expect(told(inApi(h, 'web-n1'))).toEqual(before);
    // And its own findings count from here on.
    h.probes.answer = (what) => (what.includes('/ready') ? 500 : 200);
    await h.until('it is not Ready', () => !isReady(h, 'web-n1'), 60_000);
    h.probes.answer = () => 200;
    await h.until('it is Ready again', () => isReady(h, 'web-n1'), 60_000);
    // Each word after the first goes by those times, too.
    const others = (all: readonly string[] | undefined) => all?.filter((c) => !/^(?:Containers)?Ready /.test(c));
    expect(others(told(inApi(h, 'web-n1')))).toEqual(others(before));
  });

it('a static pod that was not Ready is Ready when its probes say so, not before', async () => {
  await using h = await cluster({ manifests: { web: PROBED } });
  h.probes.answer = (what) => (what.includes('/ready') ? 500 : 200);
  await h.until('its mirror runs', () => inApi(h, 'web-n1')?.status.phase === 'Running', 120_000);
  await h.advance(60_000);
  await handedOver(h);
  const patches = written(h, () => 0);
  await h.boot();
  await h.advance(60_000);
  expect(patches.filter(changesReady)).toEqual([]);
  h.probes.answer = () => 200;
  await h.until('it is Ready', () => isReady(h, 'web-n1'), 60_000);
});

it('a static pod is Ready without an API server, by what its probes find', async () => {
  await using h = await cluster({ manifests: { web: PROBED } });
  h.probes.answer = () => 200;
  await h.until('its mirror is Ready', () => isReady(h, 'web-n1'), 120_000);
  await handedOver(h);
  h.kube.trouble.down = true;
  await h.boot();
  await h.until(
    'it is Ready here',
    () => h.status('web')?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'),
    60_000,
  );
});
