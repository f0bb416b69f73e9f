/** A tree beside another kubelet, on the same machine in virtual time: it changes nothing, and comes to the same. */

import { devicesView } from '@actorlet/kubelet/machines/allocation/devices/messages.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { CriContainer } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriRequest } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { healthy } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { describe, expect, it } from 'vitest';
import { pod as manifest, ROOT } from '../../../test/integration/virtualNode.ts';
import { isAhead, isRefused, isUnseen, withoutOtherEnds, withoutPast } from '../src/border/api/podStatus.ts';
import { missingOf, missingOfPod } from '../src/border/api/shows.ts';
import { CRI, PORTS, writeOf } from '../src/border/table.ts';
import { type Beside, type BesideOptions, beside } from './beside.ts';

const PODS = '/api/v1/namespaces/default/pods';

function create({ h }: Beside, name: string, o: Parameters<typeof manifest>[1] = {}): Pod {
  const pod = manifest(name, o) as Pod;
  const made = h.kube.handle({ verb: 'POST', path: PODS, body: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } });
  if (!made.ok) throw new Error(made.failure.message);
  return made.body as Pod;
}
function remove({ h }: Beside, name: string): void {
  h.kube.handle({ verb: 'DELETE', path: `${PODS}/${name}`, query: { gracePeriodSeconds: '2' } });
}
function inApi({ h }: Pick<Beside, 'h'>, name: string): Pod | undefined {
  const got = h.kube.handle({ verb: 'GET', path: `${PODS}/${name}` });
  return got.ok ? (got.body as Pod) : undefined;
}
async function stopTheKubelet({ h }: Pick<Beside, 'h'>): Promise<void> {
  let stopped = false;
  void h.node.stop().then(() => {
    stopped = true;
  });
  await h.until('the kubelet has ended', () => stopped);
}
type Status = Pod['status'] | undefined;
type Container = NonNullable<Pod['status']['containerStatuses']>[number];
const isReady = (status: Status) => status?.conditions?.find((c) => c.type === 'Ready')?.status === 'True';
/** What both must agree on: all but the times. */
function told(status: Status): object {
  const containers = (status?.containerStatuses ?? []).map(({ name, ready, started, restartCount, containerID, state }) => ({
    ...{ name, ready, started, restartCount, containerID },
    state: Object.keys(state),
  }));
  return { phase: status?.phase, podIP: status?.podIP, ready: isReady(status), containers };
}
const unknown = (b: Beside) => b.expectations.ledger().disagreements.filter((d) => d.known === null);
const disagreedAt = (b: Beside) => unknown(b).map(({ sort, kind, pod }) => `${sort} ${kind} ${pod}`);

describe('beside a kubelet that does what it would do', () => {
  it('follows pods through starts, crashes, failing probes and deletion, and changes nothing', async () => {
    await using b = await beside({ manifests: { fixed: manifest('fixed') } });
    const { h } = b;
    create(b, 'web');
    create(b, 'falls', { life: 'run=1s,exit=3' });
    create(b, 'job', { life: 'run=2s,exit=0', spec: { restartPolicy: 'Never' } });
    create(b, 'probed', {
      spec: { containers: [{ name: 'main', image: 'busybox:1', readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 5 } }] },
    });
    h.probes.answer = () => 200;
    await h.until('Ready in the API', () => ['web', 'probed'].every((name) => isReady(inApi(b, name)?.status)));
    await h.until('Ready for the observer', () => ['web', 'probed'].every((name) => isReady(b.status(name))));
    await h.until('three falls', () => (inApi(b, 'falls')?.status.containerStatuses?.[0]?.restartCount ?? 0) >= 3, 300_000);
    await h.advance(2_000);
    for (const name of ['web', 'falls', 'job', 'probed', 'fixed-n1'])
      expect({ name, ...told(b.status(name)) }).toEqual({ name, ...told(inApi(b, name)?.status) });
    const { waiting } = inApi(b, 'falls')?.status.containerStatuses?.[0]?.state ?? {};
    expect(b.why('falls')).toContain(`waiting (CrashLoopBackOff), 3 restarts, next start in `);
    expect(b.why('falls')).toContain(waiting?.message ?? '?');
    // The kubelet's probes alone reach the pod.
    const asked = h.probes.asked.length;
    h.probes.answer = () => 'refused';
    await h.until('not Ready for the observer', () => !isReady(b.status('probed')));
    expect(h.probes.asked.length).toBeGreaterThan(asked);
    for (const name of ['web', 'falls', 'job', 'probed']) remove(b, name);
    await h.until('gone from the API', () => ['web', 'falls', 'job', 'probed'].every((name) => inApi(b, name) === undefined));
    await h.until('gone for the observer', () => ['web', 'falls', 'job', 'probed'].every((name) => b.status(name) === undefined));
    await h.advance(300_000);
    expect(b.acts).toEqual([]);
    expect(disagreedAt(b)).toEqual([]);
    const judged = new Set(
      b.expectations
        .ledger()
        .counts.filter((c) => c.agreed > 0)
        .map((c) => c.kind),
    );
    for (const kind of [
      'RunPodSandbox',
      'CreateContainer',
      'StartContainer',
      'StopPodSandbox',
      'PodStatus',
      'PodDeletion',
      'Lease',
    ] as const)
      expect(judged).toContain(kind);
  });

  it('knows results of probes again after the actor that reads them was killed', async () => {
    await using b = await beside();
    const { h } = b;
    create(b, 'probed', {
      spec: { containers: [{ name: 'main', image: 'busybox:1', readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 5 } }] },
    });
    h.probes.answer = () => 200;
    await h.until('Ready for the observer', () => isReady(b.status('probed')));
    expect(b.node.tree.kill('node/services/probes', 'test')).toBe(true);
    h.probes.answer = () => 'refused';
    await h.until('not Ready for the observer', () => !isReady(b.status('probed')));
    h.probes.answer = () => 200;
    await h.until('Ready again', () => isReady(b.status('probed')));
    expect(b.acts).toEqual([]);
  });

  it('reads the lease where it may not watch it, and asks for nothing else at rest', async () => {
    await using b = await beside({
      started: async (h) => {
        const isLeaseWatch = (path: string, query: object | undefined) =>
          path.includes('/leases') && query !== undefined && 'fieldSelector' in query;
        h.kube.trouble.verdict = (r) => ({ delayMs: 0, ...(isLeaseWatch(r.path, r.query) ? { refuse: { status: 403 } } : {}) });
      },
    });
    const { h } = b;
    await h.advance(60_000);
    const leases = () => b.expectations.ledger().counts.find((c) => c.kind === 'Lease')?.agreed ?? 0;
    const before = leases();
    const asked: string[] = [];
    h.kube.onRequest = (r) => void asked.push(`${r.verb} ${r.path}`);
    await h.advance(300_000);
    expect(leases() - before).toBeGreaterThanOrEqual(15);
    expect(disagreedAt(b)).toEqual([]);
    const reads = asked.filter((what) => what.startsWith('GET') && what.includes('/leases'));
    expect(reads.length).toBeGreaterThan(20);
    expect(reads.length).toBeLessThan(60);
  });

  it('begins in the middle of things, and takes them as they are', async () => {
    let begun = false;
    await using b = await beside({
      started: async (h) => {
        const pod = manifest('early') as Pod;
        h.kube.handle({ verb: 'POST', path: PODS, body: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } });
        await h.until('it runs', () => h.running().length > 0);
        begun = true;
      },
    });
    expect(begun).toBe(true);
    await b.h.until('it is Ready for the observer', () => isReady(b.status('early')));
    await b.h.advance(120_000);
    expect(told(b.status('early'))).toEqual(told(inApi(b, 'early')?.status));
    expect(b.acts).toEqual([]);
    expect(disagreedAt(b)).toEqual([]);
  });
});

/** Its static pods have UIDs of another hash, as those of Go's kubelet. */
const OTHER_UIDS: BesideOptions = {
  changed: (ports) => ({ ...ports, entropy: { ...ports.entropy, md5Hex: (text) => ports.entropy.md5Hex(`another form of ${text}`) } }),
};

describe('beside a kubelet that makes other choices', () => {
  it('has static pods with the UIDs that the kubelet gave them, before and after an edit', async () => {
    await using b = await beside({ ...OTHER_UIDS, manifests: { early: manifest('early') } });
    const { h } = b;
    const same = (name: string) => b.uid(`${name}-n1`) !== undefined && b.uid(`${name}-n1`) === h.record(name)?.pod.metadata.uid;
    await h.until('the same UID', () => same('early') && isReady(b.status('early-n1')));
    h.write('late', manifest('late'));
    await h.until('of a later one, too', () => same('late') && isReady(b.status('late-n1')));
    const before = h.uid('late');
    h.write('late', manifest('late', { container: { env: [{ name: 'EDITED', value: 'yes' }] } }));
    await h.until('the kubelet has taken up the edit', () => h.uid('late') !== before, 60_000);
    await h.until('and of the edited one', () => same('late') && isReady(b.status('late-n1')), 60_000);
    h.remove('late');
    await h.until('it is gone', () => b.status('late-n1') === undefined, 60_000);
    await h.advance(300_000);
    expect(b.acts).toEqual([]);
    expect(disagreedAt(b)).toEqual([]);
  });

  it('knows addresses of sandboxes that it never saw ready, and the attempt of a container that it never saw run', async () => {
    await using b = await beside({ changed: (ports) => slow(ports) });
    const { h } = b;
    for (const name of ['job', 'two']) create(b, name, { life: 'run=100ms,exit=0', spec: { restartPolicy: 'Never' } });
    await h.until('they have ended', () => ['job', 'two'].every((name) => inApi(b, name)?.status.phase === 'Succeeded'), 60_000);
    await h.until('for the observer, too', () => ['job', 'two'].every((name) => b.status(name)?.phase === 'Succeeded'), 60_000);
    await h.advance(120_000);
    expect(told(b.status('job'))).toEqual(told(inApi(b, 'job')?.status));
    expect(disagreedAt(b)).toEqual([]);
  });

  it('takes pods with devices as the kubelet does, which alone knows its plugins', async () => {
    await using b = await beside({ devices: true });
    const { h } = b;
    const socket = `${ROOT}/device-plugins/gpu.sock`;
    h.devices.add(socket, { resource: 'example.com/gpu', devices: healthy('a', 'b') });
    h.devices.register(socket);
    await h.until('the plugin is known', () => h.tree.registry.read(devicesView)?.value.allocatable['example.com/gpu'] === '2');
    create(b, 'device', { container: { resources: { limits: { 'example.com/gpu': '1' } } } });
    await h.until('Ready for both', () => isReady(b.status('device')) && isReady(inApi(b, 'device')?.status));
    await h.advance(60_000);
    expect(disagreedAt(b)).toEqual([]);
  });

  it('has the words of a failed pull once, however often the kubelet backs off, and waits for those of one that hangs', async () => {
    await using b = await beside({ ports: silentOf('hung') });
    const { h } = b;
    const waiting = (status: Status) => status?.containerStatuses?.[0]?.state.waiting;
    create(b, 'a-never', { container: { imagePullPolicy: 'Never' } });
    await h.until('it is not pulled', () => waiting(inApi(b, 'a-never')?.status)?.reason === 'ErrImageNeverPull');
    create(b, 'absent', { life: 'pullError=no such host' });
    await h.until('the kubelet backs off', () => waiting(inApi(b, 'absent')?.status)?.reason === 'ImagePullBackOff', 300_000);
    await h.advance(90_000);
    expect(waiting(b.status('absent'))?.message).toMatch(/no such host$/);
    expect(waiting(b.status('absent'))?.message).not.toMatch(/Back-off.*Back-off|ErrImagePull.*ErrImagePull/);
    // A kubelet that is in a pull has not written the address of the sandbox. To the tree, the pull of that image has failed.
    create(b, 'hung', { life: 'pullError=no such host' });
    await h.advance(120_000);
    expect([inApi(b, 'hung')?.status.podIP, typeof b.status('hung')?.podIP]).toEqual([undefined, 'string']);
    expect(unknown(b)).toEqual([]);
  });

  it('sees what came of a pull of an image that was there', async () => {
    await using b = await beside();
    const { h } = b;
    create(b, 'first');
    await h.until('the image is there', () => isReady(b.status('first')));
    const again = (name: string, life = '') => create(b, name, { life, container: { imagePullPolicy: 'Always' } });
    again('refused', 'pullError=no such host');
    again('pulled');
    await h.until('Ready for both', () => isReady(b.status('pulled')) && isReady(inApi(b, 'pulled')?.status));
    await h.advance(200_000);
    expect(b.status('refused')?.containerStatuses?.[0]?.state.waiting?.message).toMatch(/no such host$/);
    expect(disagreedAt(b)).toEqual([]);
  });

  it('adds nothing to what the kubelet said of a pod that had ended before', async () => {
    await using b = await beside({
      started: async (h) => {
        const refused = manifest('refused', { spec: { nodeName: 'n1', os: { name: 'windows' } } });
        h.kube.handle({ verb: 'POST', path: PODS, body: refused });
        await h.until('it is refused', () => inApi({ h }, 'refused')?.status.phase === 'Failed');
        await h.advance(1_000);
      },
    });
    await b.h.until('the observer knows it', () => b.status('refused')?.phase === 'Failed');
    await b.h.advance(120_000);
    expect(disagreedAt(b)).toEqual([]);
  });
});

/** The kubelet makes the sandbox of this pod, and says nothing of it but that it has begun. */
function silentOf(name: string): (ports: Ports) => Ports {
  return (ports) => {
    const { kube } = ports;
    if (kube === undefined) throw new Error('no cluster');
    let told = 0;
    const request: typeof kube.request = (req, opts) => {
      const isOf = req.verb === 'PATCH' && req.path.endsWith(`/${name}/status`);
      return isOf && told++ > 0 ? new Promise(() => {}) : kube.request(req, opts);
    };
    return { ...ports, kube: new Proxy(kube, { get: (of, key) => (key === 'request' ? request : boundTo(of, key)) }) };
  };
}

/** Each listing of the runtime comes late: short lives are over by then. */
function slow(ports: Ports): Ports {
  const { cri } = ports;
  const call: Ports['cri']['call'] = async (method, req, opts) => {
    const answer = await cri.call(method, req, opts);
    if (method.startsWith('List')) await new Promise<void>((resolve) => void ports.clock.setTimeout(resolve, 700));
    return answer;
  };
  return { ...ports, cri: new Proxy(cri, { get: (of, key) => (key === 'call' ? call : boundTo(of, key)) }) };
}
function boundTo(of: object, key: PropertyKey): unknown {
  const value = Reflect.get(of, key, of) as unknown;
  return typeof value === 'function' ? (value.bind(of) as unknown) : value;
}

describe('beside a kubelet that does something else', () => {
  it('names what a kubelet that is dead has not done', async () => {
    await using b = await beside();
    await b.h.advance(30_000);
    await stopTheKubelet(b);
    create(b, 'web');
    // What begins anew meanwhile is late later.
    await b.h.advance(15_000);
    b.expectations.excused(() => true);
    await b.h.advance(15_000);
    expect(disagreedAt(b)).not.toContain('missing Folder default/web');
    await b.h.until('the lease is missed', () => disagreedAt(b).includes('missing Lease '), 120_000);
    await b.h.until('the folder of the pod is missed', () => disagreedAt(b).includes('missing Folder default/web'), 120_000);
    expect(b.acts).toEqual([]);
    expect(b.why('web')).toMatch(/Kubelet\n {2}the kubelet has not made the folder of the pod for \d+s/);
    expect(b.why('node')).toMatch(/^Node n1 {2}observed by .* for \d+\w\n[\s\S]*the kubelet has not renewed the lease of the node for \d+/);
    expect(b.why('node').match(/has not renewed the lease/g)).toHaveLength(1);
    // A pod that is deleted is begun no more.
    remove(b, 'web');
    const stands = () => unknown(b).filter((d) => d.settledMs === null && d.kind === 'Folder');
    await b.h.until('nothing is missed of it', () => stands().length === 0, 10_000);
    // Nor is it asked for again by what the tree had begun.
    await b.h.advance(120_000);
    expect(stands()).toEqual([]);
  });

  it('names what the kubelet says of its node that is not so, until it says otherwise', async () => {
    await using b = await beside();
    const { h } = b;
    await h.advance(30_000);
    const counted = () => b.expectations.ledger().counts.find(({ kind }) => kind === 'NodeStatus');
    expect(unknown(b)).toEqual([]);
    await stopTheKubelet(b);
    const say = (pods: string, status: string) => {
      const conditions = [
        { type: 'MemoryPressure', status, reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' },
      ];
      const said = h.kube.handle({
        ...{ verb: 'PATCH', path: '/api/v1/nodes/n1/status', patchType: 'strategic' },
        body: { status: { capacity: { pods }, conditions } },
      });
      if (!said.ok) throw new Error(said.failure.message);
      return said.body as { status: { capacity: { pods: string } } };
    };
    say('7', 'True');
    const ofNode = () => unknown(b).filter((d) => d.kind === 'NodeStatus');
    await h.until('it is named', () => ofNode().length > 0, 120_000);
    expect(ofNode()).toEqual([
      expect.objectContaining({
        ...{ sort: 'differs', expected: 'written the status of the node', settledMs: null },
        came: expect.stringMatching(
          /status\.capacity\.pods is 7, not 110.*status\.conditions\[MemoryPressure\]\.status is True, not False/,
        ),
      }),
    ]);
    say('110', 'False');
    await h.until('it is settled', () => ofNode().every((d) => d.settledMs !== null), 60_000);
    expect(counted()).toMatchObject({ disagreed: 1 });
  });

  it('judges no pod while the kubelet says that it is not ready', async () => {
    await using b = await beside();
    const { h } = b;
    await h.advance(30_000);
    await stopTheKubelet(b);
    const says = (reason: string): void => {
      const node = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
      if (!node.ok) throw new Error(node.failure.message);
      const { status } = node.body as KubeObject & { status: { conditions: { type: string }[] } };
      const conditions = status.conditions.map((c) => (c.type === 'Ready' ? { ...c, status: 'False', reason } : c));
      h.kube.handle({ verb: 'PATCH', path: '/api/v1/nodes/n1/status', body: { status: { conditions } } });
    };
    says('KubeletNotReady');
    create(b, 'web');
    await h.advance(50_000);
    expect(disagreedAt(b).filter((what) => !what.startsWith('missing Lease'))).toEqual([]);
    // That nobody heard of it is another's word.
    says('NodeStatusUnknown');
    await h.until('the folder of the pod is missed', () => disagreedAt(b).includes('missing Folder default/web'), 60_000);
  });

  it('takes a container that is gone for started: the tree that looks again makes the next one at once', async () => {
    await using b = await beside();
    let answer: unknown;
    const heard = (outcome: unknown): void => {
      answer = outcome;
    };
    const once = { timeoutMs: null, signal: new AbortController().signal };
    void b.ports.cri.call('StartContainer', { containerId: 'gone' }, once).then(heard, heard);
    await b.h.until('it is answered', () => answer !== undefined, 5_000);
    expect(answer).toEqual({});
  });

  it('names a container that no pod has, until it is gone', async () => {
    await using b = await beside();
    const { h } = b;
    create(b, 'web');
    await h.until('Ready for the observer', () => isReady(b.status('web')));
    await stopTheKubelet(b);
    const cri = h.runtime.connect();
    const once = { timeoutMs: null, signal: new AbortController().signal };
    const [sandbox] = (await cri.call('ListPodSandbox', {}, once)).items;
    const labels = { ...sandbox?.labels, 'io.kubernetes.container.name': 'miner' };
    const { containerId } = await cri.call(
      'CreateContainer',
      {
        podSandboxId: sandbox?.id ?? '',
        config: { metadata: { name: 'miner', attempt: 0 }, image: { image: 'busybox:1' }, labels },
        sandboxConfig: { metadata: sandbox?.metadata ?? { name: '', uid: '', namespace: '', attempt: 0 } },
      },
      once,
    );
    await cri.call('StartContainer', { containerId }, once);
    await h.until('it is named', () => disagreedAt(b).includes('unexpected StartContainer default/web'), 40_000);
    await h.advance(1_000);
    expect(b.why('web')).toMatch(/container miner \(\S+\) runs, and this tree knows no container miner in it/);
    await cri.call('StopContainer', { containerId, timeout: 0 }, once);
    const stands = () => unknown(b).some((d) => d.sort === 'unexpected' && d.settledMs === null);
    await h.until('it is settled', () => !stands(), 60_000);
  });

  it('names what a status says that is not so, each field within 30 s', async () => {
    await using b = await beside({ flags: { record: '/node.rec' } });
    const { h } = b;
    const conditions = (type: string, over: object) => (status: Pod['status']) => ({
      conditions: status.conditions?.map((c) => (c.type === type ? { ...c, ...over } : c)),
    });
    const container = (over: (c: Container) => object) => (status: Pod['status']) => ({
      containerStatuses: status.containerStatuses?.map((c) => ({ ...c, ...over(c) })),
    });
    const ended = (over: object) => container(({ state }) => ({ state: { terminated: { ...state.terminated, ...over } } }));
    const lies: Record<string, { life?: string; lie(status: Pod['status']): object; named: string }> = {
      unready: { lie: conditions('Ready', { status: 'False', reason: 'Wrong' }), named: 'conditions[Ready].status is False, not True' },
      boxless: {
        lie: conditions('PodReadyToStartContainers', { status: 'False' }),
        named: 'conditions[PodReadyToStartContainers].status is False, not True',
      },
      pending: { lie: () => ({ phase: 'Pending' }), named: 'status.phase is Pending, not Running' },
      moved: { lie: () => ({ podIP: '10.9.9.9', podIPs: [{ ip: '10.9.9.9' }] }), named: 'status.podIP is 10.9.9.9, not' },
      counted: { lie: container(() => ({ restartCount: 7 })), named: 'restartCount is 7, not 0' },
      unstarted: { lie: container(() => ({ started: false })), named: 'started is false, not true' },
      waiting: { lie: container(() => ({ state: { waiting: { reason: 'Wrong' } } })), named: 'state' },
      failed: { life: 'run=1s,exit=0', lie: ended({ exitCode: 3 }), named: 'terminated.exitCode is 3, not 0' },
      greedy: { life: 'run=1s,exit=1', lie: ended({ reason: 'OOMKilled' }), named: 'terminated.reason is OOMKilled, not Error' },
      wordy: { life: 'run=1s,exit=0', lie: ended({ message: 'hello' }), named: 'terminated.message is hello, not absent' },
      secret: { life: 'run=1s,exit=0', lie: ended({ message: 'no --key=hunter2' }), named: 'terminated.message is no ***, not absent' },
    };
    const spec = {
      restartPolicy: 'Never',
      containers: [
        { name: 'main', image: 'busybox:1', command: ['run', '--key=hunter2'] },
        { name: 'two', image: 'busybox:1' },
      ],
    };
    for (const [name, { life }] of Object.entries(lies)) create(b, name, life === undefined ? {} : { lives: { main: life }, spec });
    const isSettled = (name: string) => {
      const [has, own] = [inApi(b, name)?.status, b.status(name)];
      const isThere = lies[name]?.life === undefined ? isReady(has) : has?.containerStatuses?.some((c) => c.state.terminated) === true;
      return isThere && own !== undefined && JSON.stringify(told(has)) === JSON.stringify(told(own));
    };
    await h.until('both have all', () => Object.keys(lies).every(isSettled));
    await h.advance(20_000);
    expect(unknown(b)).toEqual([]);
    await stopTheKubelet(b);
    for (const [name, { lie }] of Object.entries(lies)) {
      const status = inApi(b, name)?.status;
      if (status !== undefined)
        h.kube.handle({ verb: 'PATCH', path: `${PODS}/${name}/status`, patchType: 'merge', body: { status: lie(status) } });
    }
    const came = (name: string) => unknown(b).find((d) => d.kind === 'PodStatus' && d.pod === `default/${name}`)?.came ?? '';
    await h.advance(30_000);
    expect(Object.keys(lies).filter((name) => !came(name).includes(lies[name]?.named ?? '?'))).toEqual([]);
    expect(unknown(b).find(({ kind }) => kind === 'PodStatus')).toMatchObject({ sort: 'differs', rule: 'pod lifecycle 7.5' });
    expect(b.node.inspected?.history.hidden('no --key=hunter2')).toBe('no <masked>');
  });

  it('expects nothing more of a pod that has ended by the word of the kubelet alone, as an evicted one', async () => {
    await using b = await beside();
    const { h } = b;
    create(b, 'full');
    await h.until('Ready in the API', () => isReady(inApi(b, 'full')?.status));
    await stopTheKubelet(b);
    h.kube.handle({
      verb: 'PATCH',
      path: `${PODS}/full/status`,
      patchType: 'merge',
      body: { status: { phase: 'Failed', reason: 'Evicted' } },
    });
    const once = { timeoutMs: null, signal: new AbortController().signal };
    await h.runtime.connect().call('StopContainer', { containerId: h.runtime.dump().containers[0]?.id ?? '', timeout: 0 }, once);
    await h.advance(60_000);
    expect(disagreedAt(b).filter((d) => d.includes('CreateContainer') || d.includes('Folder'))).toEqual([]);
  });

  it('names a false restart count that was there before it looked', async () => {
    await using b = await beside({
      async started(h) {
        h.kube.handle({ verb: 'POST', path: PODS, body: manifest('counted', { spec: { nodeName: 'n1' } }) });
        await h.until('it runs', () => isReady(inApi({ h }, 'counted')?.status));
        await stopTheKubelet({ h });
        const containerStatuses = inApi({ h }, 'counted')?.status.containerStatuses?.map((c) => ({ ...c, restartCount: 7 }));
        h.kube.handle({ verb: 'PATCH', path: `${PODS}/counted/status`, patchType: 'merge', body: { status: { containerStatuses } } });
      },
    });
    await b.h.advance(30_000);
    expect(unknown(b).find((d) => d.pod === 'default/counted')?.came).toContain('restartCount is 7, not 0');
  });

  it('names a group of a pod that is gone', async () => {
    await using b = await beside({ cgroups: true });
    const { h } = b;
    create(b, 'web');
    await h.until('Ready for the observer', () => isReady(b.status('web')));
    await h.advance(30_000);
    const group = [...h.cgroups.groups.keys()].find((path) => path.includes(b.uid('web') ?? '?'));
    expect(group).toBeDefined();
    await stopTheKubelet(b);
    h.cgroups.take(group ?? '');
    await h.until('it is named', () => disagreedAt(b).includes('unexpected Cgroup default/web'), 30_000);
    expect(b.acts).toEqual([]);
  });
});

describe('the border', () => {
  it('refuses functions and ports that nobody has classified', async () => {
    await using b = await beside({
      changed: (ports) =>
        Object.assign(ports, {
          rocket: { launch: () => 'gone' },
          host: { ...ports.host, reboot: () => 'down', power: { watts: 7, off: () => 'dark' } },
        }),
    });
    expect('rocket' in b.ports).toBe(false);
    expect(() => (b.ports.host as unknown as { reboot(): void }).reboot()).toThrow('host.reboot is refused: this node is only observed');
    const { power } = b.ports.host as unknown as { power: { watts: number; off(): void } };
    expect(power.watts).toBe(7);
    expect(() => power.off()).toThrow('host.power.off is refused');
    await expect(b.ports.net.serveHttp({ host: '127.0.0.1', port: 10250 }, async () => ({ status: 200, body: '' }))).rejects.toThrow(
      'refused',
    );
    expect(() => b.ports.prober.tcpDial({ host: '10.0.0.1', port: 80 }, { signal: new AbortController().signal })).toThrow('refused');
  });

  it('has no other way around it than its own functions', async () => {
    await using b = await beside();
    for (const port of [b.ports.fs, b.ports.cri, b.ports.mounter ?? {}, b.ports.kube ?? {}, b.ports.net])
      expect(Object.getPrototypeOf(port)).toBe(Object.prototype);
  });

  it('takes a container that the kubelet has begun for the one that is wanted, whatever attempt its log makes of it', async () => {
    await using b = await beside();
    const { h } = b;
    const { uid } = create(b, 'web').metadata;
    await h.until('it runs', () => isReady(inApi(b, 'web')?.status));
    const [sandbox] = h.runtime.dump().sandboxes;
    const [running] = h.runtime.dump().containers;
    const config = { metadata: { name: 'main', attempt: 1 }, image: { image: 'busybox:1' }, labels: {}, annotations: {}, logPath: '' };
    const sandboxConfig = { metadata: { name: 'web', namespace: 'default', uid, attempt: 0 }, labels: {}, annotations: {} };
    const req = { podSandboxId: sandbox?.id ?? '', config, sandboxConfig } as unknown as CriRequest<'CreateContainer'>;
    let made = '';
    void b.ports.cri
      .call('CreateContainer', req, { timeoutMs: 60_000, signal: new AbortController().signal })
      .then(({ containerId }) => (made = containerId));
    await h.until('it is shown', () => made !== '', 10_000);
    expect(made).toBe(running?.id);
    expect(b.acts).toEqual([]);
  });

  it('knows of a start that failed by the status alone, where the runtime leaves the container as it was created', async () => {
    await using b = await beside();
    const { h } = b;
    create(b, 'web');
    await h.until('Ready in the API', () => isReady(inApi(b, 'web')?.status));
    await stopTheKubelet(b);
    const cri = h.runtime.connect();
    const once = { timeoutMs: 30_000, signal: new AbortController().signal };
    const [sandbox] = (await cri.call('ListPodSandbox', {}, once)).items;
    const { containerId } = await cri.call(
      'CreateContainer',
      {
        podSandboxId: sandbox?.id ?? '',
        config: { metadata: { name: 'main', attempt: 1 }, image: { image: 'busybox:1' }, labels: sandbox?.labels ?? {} },
        sandboxConfig: { metadata: sandbox?.metadata ?? { name: '', uid: '', namespace: '', attempt: 0 } },
      },
      once,
    );
    let said = '';
    void b.ports.cri.call('StartContainer', { containerId }, once).catch((error: unknown) => (said = String(error)));
    const waiting = { reason: 'RunContainerError', message: 'exec: "/nothing": no such file' };
    const containerStatuses = [{ name: 'main', containerID: `cri-o://${containerId}`, state: { waiting }, restartCount: 1 }];
    h.kube.handle({ verb: 'PATCH', path: `${PODS}/web/status`, patchType: 'merge', body: { status: { containerStatuses } } });
    await h.until('it has failed', () => said !== '', 10_000);
    expect(said).toContain('exec: "/nothing": no such file');
  });

  it('takes no call of the runtime for a read that changes something', () => {
    for (const [method, facts] of Object.entries(CRI_METHODS))
      if (facts.mutating) expect(`${method} ${CRI[method as keyof typeof CRI]}`).not.toBe(`${method} read`);
  });

  it('knows the writes of a kubelet, and no others', () => {
    expect(writeOf({ verb: 'PATCH', path: '/api/v1/namespaces/a/pods/b/status' })).toEqual({
      kind: 'podStatus',
      namespace: 'a',
      name: 'b',
    });
    for (const path of ['/api/v1/namespaces/a/pods/b', '/api/v1/namespaces/a/secrets/b', '/apis/apps/v1/namespaces/a/deployments/b'])
      expect(writeOf({ verb: 'PATCH', path })).toBeNull();
    expect(writeOf({ verb: 'POST', path: '/apis/certificates.k8s.io/v1/certificatesigningrequests' })).toBeNull();
    expect(writeOf({ verb: 'DELETE', path: '/api/v1/nodes/n1' })).toBeNull();
  });

  it('leaves out the ports whose sockets and programs are the kubelet’s', () => {
    const absent = Object.entries(PORTS).flatMap(([name, row]) => (row === 'absent' ? [name] : []));
    expect(absent).toEqual(['credentialPrograms', 'devicePlugins', 'dra', 'podResources', 'podsApi', 'inhibitor', 'iptables']);
  });
});

describe('whether an object shows a patch', () => {
  const has = {
    phase: 'Running',
    podIPs: [{ ip: '10.0.0.1' }],
    startTime: '2026-01-01T00:00:00Z',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:07Z' }],
    containerStatuses: [
      {
        name: 'a',
        ready: true,
        resources: { limits: { memory: '31250Ki', cpu: '1000m' } },
        volumeMounts: [
          { name: 'v', mountPath: '/x' },
          { name: 'v', mountPath: '/y' },
        ],
      },
      { name: 'b', state: { waiting: { reason: 'RunContainerError', message: 'exec: no' } } },
    ],
  };
  it.each([
    ['times apart', { startTime: '2026-01-01T00:00:03Z', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: 'x' }] }, []],
    ['another order of mounts', { containerStatuses: [{ name: 'a', volumeMounts: [{ name: 'v', mountPath: '/y' }] }] }, []],
    ['another phase', { phase: 'Pending' }, ['phase is Running, not Pending']],
    ['what is to go', { podIPs: null }, ['podIPs is [{"ip":"10.0.0.1"}], not absent']],
    ['a condition that is to go', { conditions: [{ type: 'Ready', $patch: 'delete' }] }, ['conditions[Ready] is there']],
    [
      'a list as a whole',
      { podIPs: [{ $patch: 'replace' }, { ip: '10.0.0.1' }, { ip: '::1' }] },
      ['podIPs has 1 entries, not 2: [{"ip":"10.0.0.1"},{"ip":"::1"}]'],
    ],
    ['amounts in another unit', { containerStatuses: [{ name: 'a', resources: { limits: { memory: '32M', cpu: '1' } } }] }, []],
    [
      'another amount',
      { containerStatuses: [{ name: 'a', resources: { limits: { memory: '33M' } } }] },
      ['containerStatuses[a].resources.limits.memory is 31250Ki, not 33M'],
    ],
    ['a container that is not there', { containerStatuses: [{ name: 'c' }] }, ['containerStatuses[c] is absent, not {"name":"c"}']],
    [
      'a back-off that it does not tell yet',
      { containerStatuses: [{ name: 'b', state: { waiting: { reason: 'CrashLoopBackOff' } } }] },
      [],
    ],
    [
      'a container that runs all the same',
      { containerStatuses: [{ name: 'b', state: { running: { startedAt: 'x' } } }] },
      [
        'containerStatuses[b].state.running is absent, not {"startedAt":"x"}',
        'containerStatuses[b].state.waiting is {"reason":"RunContainerError","message":"exec: no"}, not absent',
      ],
    ],
  ])('%s', (_, patch, missing) => {
    expect(missingOf(patch, has)).toEqual(missing);
  });

  it('a back-off after the instance that ended for the tree, and of no other', () => {
    const ended = (containerID: string) => ({ terminated: { containerID, exitCode: 1 } });
    const waits = { name: 'a', state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended('c://1') };
    const of = (id: string) => missingOf({ containerStatuses: [{ name: 'a', state: ended(id) }] }, { containerStatuses: [waits] });
    expect(of('c://1')).toEqual([]);
    expect(of('c://2')[0]).toMatch(/^containerStatuses\[a\]\.state\.terminated is absent, not /);
  });

  it('a container that came further than for the tree, where the runtime bears it out', () => {
    const status = (containerID: string, restartCount: number, state: object) => ({
      containerStatuses: [{ name: 'a', containerID: `c://${containerID}`, restartCount, state }],
    });
    const [created, running, ended] = [{ waiting: {} }, { running: {} }, { terminated: {} }];
    const of = (has: object, wanted: object, inRuntime?: CriContainer['state']) => isAhead(has, wanted, () => inRuntime);
    expect(of(status('2', 1, running), status('1', 0, running), 'CONTAINER_RUNNING')).toBe(true);
    expect(of(status('1', 7, running), status('1', 0, running), 'CONTAINER_RUNNING')).toBe(false);
    expect(of(status('1', 0, running), status('1', 0, created), 'CONTAINER_EXITED')).toBe(true);
    expect(of(status('1', 0, running), status('1', 0, created), 'CONTAINER_CREATED')).toBe(false);
    expect(of(status('1', 0, ended), status('1', 0, running), 'CONTAINER_RUNNING')).toBe(false);
    expect(of(status('1', 0, ended), status('1', 0, running))).toBe(true);
    expect(of(status('2', 1, ended), status('1', 0, running), 'CONTAINER_RUNNING')).toBe(true);
  });

  it('without an end of an earlier instance where the object tells of another one', () => {
    const of = (containerID: string) => ({ containerStatuses: [{ name: 'a', lastState: { terminated: { containerID } } }] });
    expect(withoutOtherEnds(of('1'), of('2'))).toEqual({ containerStatuses: [{ name: 'a' }] });
    expect(withoutOtherEnds(of('1'), of('1'))).toEqual(of('1'));
  });

  it('and one that the kubelet told of before a listing showed it is not taken for ended', () => {
    const of = (lastState: object) => ({ containerStatuses: [{ name: 'a', state: { running: {} }, lastState }] });
    const [unknown, known] = [of({ terminated: { reason: 'ContainerStatusUnknown' } }), of({ terminated: { reason: 'Error' } })];
    expect([isUnseen(unknown, of({})), isUnseen(unknown, unknown), isUnseen(known, of({}))]).toEqual([true, false, false]);
  });

  it('and a pod that the kubelet refused, in words of its own, is believed', () => {
    const refused = { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected' };
    expect([isRefused(refused, {}), isRefused({ ...refused, containerStatuses: [{ name: 'a' }] }, {})]).toEqual([true, false]);
    expect([isRefused({ ...refused, phase: 'Pending' }, {}), isRefused({ phase: 'Failed' }, {})]).toEqual([false, false]);
    // One that this tree takes, or refuses for another reason, is at odds.
    expect([isRefused(refused, { phase: 'Pending' }), isRefused(refused, { reason: 'OutOfpods' })]).toEqual([false, false]);
    const [theirs, own] = [
      'The container could not be located when the pod was terminated',
      'the pod has ended and the runtime did not say how',
    ];
    expect([missingOf(own, theirs, 'm'), missingOf(own, 'Error', 'm')]).toEqual([[], [expect.stringContaining('m is Error')]]);
  });

  it('without what it takes back of the past', () => {
    const gone = { podIP: null, podIPs: null, containerStatuses: [{ name: 'a', lastState: { terminated: null } }] };
    expect(withoutPast({ ...gone, phase: 'Failed' })).toEqual({ phase: 'Failed', containerStatuses: [{ name: 'a' }] });
    const said = { podIP: '10.0.0.1', containerStatuses: [{ name: 'a', lastState: { terminated: { exitCode: 3 } } }] };
    expect(withoutPast(said)).toEqual(said);
  });

  it('whatever either program repeats of commands and of users before images', () => {
    const containers = [{ name: 'main', image: 'me:hunter2@registry/x:1', env: [{ name: 'A', value: 'hunter2-too' }] }];
    const said = (image: string, reason = 'InvalidImageName') => ({
      state: { waiting: { reason, message: `no "${image}" for hunter2-too` } },
    });
    const status = (...of: Parameters<typeof said>) => ({ containerStatuses: [{ name: 'main', ...said(...of) }] });
    const pod = { metadata: {}, spec: { containers }, status: status('me:hunter2@registry/x:1') } as unknown as KubeObject;
    expect(missingOfPod(status('<masked>@registry/x:1'), pod)).toEqual([]);
    const volumes = [{ name: 'i', image: { reference: 'me:{"pass":"correct horse battery"}@registry/x' } }];
    const quoted = status(String.raw`me:{\"pass\":\"correct horse battery\"}@registry/x`);
    const mounts = { metadata: {}, spec: { containers, volumes }, status: quoted } as unknown as KubeObject;
    expect(missingOfPod(status('<masked>@registry/x'), mounts)).toEqual([]);
    expect(missingOfPod(status('other', 'Other'), pod).join()).toMatch(
      /is no "<masked>@registry\/x:1" for \*\*\*, not no "other" for \*\*\*/,
    );
  });
});
