/** How pods end, and how they are replaced: grace, edits, pinned UIDs, lost sandboxes. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { workersAddr } from '../../../src/machines/pods/workers/messages.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

async function running(h: VirtualNode, name: string, manifest: object): Promise<void> {
  h.write(name, manifest);
  await h.until(`${name} runs`, () => h.phase(name) === 'Running' && h.running(name).length > 0);
  await h.advance(5_000);
}
/** Exit codes of containers as they end; their rows are collected soon after. */
function watchExits(h: VirtualNode): number[] {
  const codes: number[] = [];
  void (async () => {
    const { stream } = await h.runtime.connect().hints(new AbortController().signal);
    for await (const hint of stream) {
      const ended = h.runtime.dump().containers.find((c) => c.id === hint.id);
      if (hint.kind === 'stopped' && ended !== undefined) codes.push(ended.exitCode);
    }
  })();
  return codes;
}
const sinceMs = (h: VirtualNode, beganMs: number) => h.time.clock.monoMs() - beganMs;

describe('grace', () => {
  it('is not used up by a container that obeys TERM', async ({ h }) => {
    await running(h, 'web', pod('web', { life: 'term=3s', spec: { terminationGracePeriodSeconds: 60 } }));
    const beganMs = h.time.clock.monoMs();
    const exits = watchExits(h);
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(sinceMs(h, beganMs)).toBeLessThan(4_000);
    expect(exits).toEqual([143]);
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0);
  });

  it('ends in KILL for one that does not', async ({ h }) => {
    await running(h, 'web', pod('web', { life: 'term=ignore', spec: { terminationGracePeriodSeconds: 20 } }));
    const beganMs = h.time.clock.monoMs();
    const exits = watchExits(h);
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(Math.round(sinceMs(h, beganMs) / 1000)).toBe(20);
    expect(exits).toEqual([137]);
  });

  it('that shrinks interrupts a stop under way; one that grows changes nothing', async ({ h }) => {
    await running(h, 'web', pod('web', { life: 'term=ignore', spec: { terminationGracePeriodSeconds: 600 } }));
    const uid = h.uid('web');
    const beganMs = h.time.clock.monoMs();
    h.remove('web');
    await h.advance(10_000);
    const kill = (seconds: number) => h.tree.registry.send(workersAddr, { type: 'pod.kill', uid, life: 1, graceOverrideSeconds: seconds });
    kill(5);
    await h.advance(1_000);
    kill(900);
    await h.until('it has ended', () => h.running().length === 0);
    expect(Math.round(sinceMs(h, beganMs) / 1000)).toBe(15);
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0);
  });

  it('is kept over a kill of the daemon in the middle of the stop: the pod still goes, though its manifest is not there any more', async ({
    h,
  }) => {
    await running(h, 'web', pod('web', { life: 'term=ignore', spec: { terminationGracePeriodSeconds: 20 } }));
    h.remove('web');
    await h.advance(5_000);
    await h.restart();
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0 && h.runtime.dump().containers.length === 0, 120_000);
    await h.until('its directory is gone', () => h.fs.below('/var/lib/kubelet/pods').length === 0, 120_000);
  });
});

describe('a start that is given up', () => {
  const warnings = (h: VirtualNode) =>
    (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.pod !== undefined && e.type === 'Warning').map((e) => e.message);

  it.each(['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const)('in %s, as its pod goes, failed at nothing', async (method) => {
    await using h = await virtualNode();
    h.faults.latencyMs[method] = 60_000;
    h.write('web', pod('web', { spec: { dnsPolicy: 'Default' } }));
    await h.until('it is known', () => h.record('web') !== undefined);
    await h.advance(10_000);
    expect(h.running('web')).toEqual([]);
    h.remove('web');
    await h.until('nothing is left', () => h.record('web') === undefined && h.runtime.dump().sandboxes.length === 0, 180_000);
    expect(warnings(h)).toEqual([]);
  });
});

describe('an edited manifest', () => {
  it('stops the old pod wholly before the new one starts', async ({ h }) => {
    await running(h, 'web', pod('web', { life: 'term=7s' }));
    const [old] = h.running('web');
    h.write('web', pod('web', { container: { image: 'busybox:2' } }));
    await h.until('the new one runs', () => h.running('web').some((c) => c.podUid !== old?.podUid), 60_000);
    expect(h.running('web')).toHaveLength(1);
    await h.until('the old one is gone', () => h.runtime.dump().containers.length === 1);
    expect(h.pods()).toHaveLength(1);
    expect(h.violations).toEqual([]);
  });

  it('edited five times while the old one stops, ends in the newest', async ({ h }) => {
    await running(h, 'web', pod('web', { life: 'term=10s' }));
    for (let i = 2; i <= 6; i++) {
      h.write('web', pod('web', { container: { image: `busybox:${i}` } }));
      await h.advance(1_000);
    }
    await h.until(
      'the newest runs',
      () => h.running('web').length === 1 && h.phase('web') === 'Running' && h.record('web')?.state.is === 'running',
    );
    await h.advance(60_000);
    expect(h.runtime.dump().containers.map((c) => c.state)).toEqual(['CONTAINER_RUNNING']);
    expect(h.record('web')?.pod.spec.containers[0]?.image).toBe('busybox:6');
    expect(h.running('web')[0]?.podUid).toBe(h.uid('web'));
  });

  it('with a pinned UID replaces only the container whose image changed, without back-off', async ({ h }) => {
    const spec = (image: string) => ({
      containers: [
        { name: 'main', image: 'busybox:1' },
        { name: 'second', image },
      ],
    });
    await running(h, 'web', pod('web', { uid: 'pinned-1', spec: spec('busybox:1') }));
    const ids = new Map(h.running('web').map((c) => [c.name, c.id]));
    const beganMs = h.time.clock.monoMs();
    h.write('web', pod('web', { uid: 'pinned-1', spec: spec('busybox:2') }));
    await h.until(
      'second was replaced',
      () => h.running('web').length === 2 && h.running('web').some((c) => c.name === 'second' && c.id !== ids.get('second')),
    );
    expect(sinceMs(h, beganMs)).toBeLessThan(2_000);
    expect(h.running('web').find((c) => c.name === 'main')?.id).toBe(ids.get('main'));
    expect(h.violations).toEqual([]);
  });

  it('with a pinned UID that goes and comes back while it is being stopped begins a new life', async ({ h }) => {
    await running(h, 'web', pod('web', { uid: 'pinned-1', life: 'term=5s' }));
    const [old] = h.running('web');
    h.remove('web');
    await h.advance(1_000);
    h.write('web', pod('web', { uid: 'pinned-1', life: 'term=5s' }));
    await h.until(
      'a new one runs',
      () => h.running('web').length === 1 && h.running('web')[0]?.id !== old?.id && h.phase('web') === 'Running',
    );
    await h.advance(90_000);
    expect(h.running('web')).toHaveLength(1);
    expect(h.record('web')?.state.is).toBe('running');
  });

  it('with a field that this node cannot honour fails the pod, also when its worker is killed while it stops it', async ({ h }) => {
    await running(h, 'web', pod('web', { uid: 'pinned-1', life: 'term=5s' }));
    h.write('web', pod('web', { uid: 'pinned-1', life: 'term=5s', spec: { volumes: [{ name: 'v', quobyte: {} }] } }));
    await h.until('it is being stopped', () => h.state(h.workerPath('web')) === 'terminating.stopping');
    h.kill(h.workerPath('web'));
    await h.until('the pod has failed', () => h.phase('web') === 'Failed', 120_000);
    await h.advance(120_000);
    expect(h.running('web')).toEqual([]);
    expect(h.status('web')?.status.reason).toBe('UnsupportedField');
  });
});

describe('a sandbox', () => {
  it('that dies is made again with the next attempt, and the pod is initialised anew', async ({ h }) => {
    await running(h, 'web', pod('web', { lives: { 'init-0': 'run=1s' }, inits: [{}] }));
    const [sandbox] = h.runtime.dump().sandboxes;
    const init = () => h.containers('web').filter((c) => c.name === 'init-0');
    const [firstInit] = init();
    await h.runtime.call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
    await h.until('main runs in a new one', () => h.running('web').some((c) => c.name === 'main' && c.sandboxId !== sandbox?.id));
    expect(h.runtime.dump().sandboxes.find((s) => s.ready)?.attempt).toBe(1);
    expect(init().some((c) => c.id !== firstInit?.id)).toBe(true);
    expect(h.violations).toEqual([]);
  });

  it('that never gets an address does not make the worker spin', async ({ h }) => {
    // Its status never tells an address: the sandbox counts as unusable.
    let made = 0;
    h.faults.fault = (method) => {
      if (method === 'RunPodSandbox') made += 1;
      return undefined;
    };
    h.faults.answer = (method, value) =>
      method === 'PodSandboxStatus' && typeof value === 'object' && value !== null && 'status' in value
        ? { ...value, status: { ...(value.status as object), network: { ip: '', additionalIps: [] } } }
        : value;
    h.write('web', pod('web'));
    await h.advance(60_000);
    const early = made;
    await h.advance(600_000);
    expect(early).toBeLessThan(25);
    expect(made - early).toBeLessThan(75);
    h.faults.answer = (_, value) => value;
    await h.until('it runs once addresses are told', () => h.phase('web') === 'Running', 120_000);
    h.remove('web');
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 300_000);
  });
});
