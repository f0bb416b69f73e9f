/** Containers whose starts, ends and definitions met in an unlucky order. */
import { describe, expect } from 'vitest';
import { podManagerAddr } from '../../../src/machines/pods/manager/messages.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../../integration/virtualNode.ts';

describe('a pod that is changed before its worker was made', () => {
  it('gets its worker all the same, with the newest definition', async () => {
    await using h = await virtualNode({ manifests: { first: pod('first', { uid: 'u-1' }) } });
    await h.until('it runs', () => h.phase('first') === 'Running');
    const known = h.record('first')?.pod;
    if (known === undefined) throw new Error('no pod');
    const twin = (image: string) => ({
      ...structuredClone(known),
      metadata: { ...known.metadata, uid: 'u-2', name: 'second-n1' },
      spec: { ...known.spec, containers: [{ name: 'main', image }] },
    });
    // Both lie in the mailbox of the workers before any is handled.
    h.tree.registry.send(podManagerAddr, { type: 'pods.op', op: 'ADD', source: 'file', pods: [twin('busybox:1')] });
    h.tree.registry.send(podManagerAddr, { type: 'pods.op', op: 'UPDATE', source: 'file', pods: [twin('busybox:2')] });
    await h.until('it runs', () => h.phase('second') === 'Running');
    expect(h.record('second')?.pod.spec.containers[0]?.image).toBe('busybox:2');
    expect(h.running('second')).toHaveLength(1);
  });
});

describe('a container that was being started when its pod had to be stopped for a new sandbox', () => {
  it('gets its signal and its grace like the others, though it came up after the decision', async ({ h }) => {
    const spec = { containers: ['main', 'second'].map((name) => ({ name, image: 'busybox:1' })) };
    const o = { uid: 'pinned-1', lives: { second: 'startDelay=5s' } };
    h.faults.deaf = true;
    h.write('web', pod('web', { ...o, spec }));
    await h.until('second is being started', () => h.containerState('web', 'second') === 'starting' && h.running('web').length === 1);
    h.write('web', pod('web', { ...o, spec: { ...spec, hostNetwork: true } }));
    await h.until('both run anew', () => h.running('web').length === 2 && h.running('web').every((c) => c.attempt === 1));
    const ended = h.containers('web').filter((c) => c.state === 'CONTAINER_EXITED');
    expect(ended.map((c) => [c.name, c.exitCode]).sort()).toEqual([
      ['main', 143],
      ['second', 143],
    ]);
  });
});

describe('a CreateContainer whose answer was lost may be done late, when its name is free again because somebody removed the container', () => {
  const BY_HAND = { timeoutMs: null, signal: new AbortController().signal };

  it('what a late create leaves is not started beside the instance that runs', async ({ h }) => {
    await h.run('web', pod('web', { life: 'run=forever' }));
    const [first] = h.running('web');
    const create = h.calls.find((c) => c.method === 'CreateContainer')?.req as CriRequest<'CreateContainer'>;
    await h.runtime.call('RemoveContainer', { containerId: first?.id ?? '' }, BY_HAND);
    await h.until('it runs again', () => h.running('web').length === 1 && h.running('web')[0]?.id !== first?.id, 60_000);
    const [second] = h.running('web');
    const { containerId: late } = await h.runtime.call('CreateContainer', create, BY_HAND);
    await h.advance(180_000);
    expect(h.violations).toEqual([]);
    expect(h.running('web').map((c) => c.id)).toEqual([second?.id]);
    expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 1, ready: true, state: { running: {} } });

    // Its successor has a number of its own, and what was left is gone.
    h.runtime.exit(second?.id ?? '', { exitCode: 1, reason: '' });
    await h.until('it is started once more', () => h.running('web').some((c) => c.id !== second?.id), 60_000);
    expect(h.running('web')[0]?.attempt).toBe(2);
    expect(h.containers('web').some((c) => c.id === late)).toBe(false);
    await h.until('that is shown', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 2, 60_000);
    expect(h.violations).toEqual([]);
  });
});

describe('a container that a manifest with a pinned UID no longer names', () => {
  const both = { uid: 'pinned-1', spec: { containers: ['main', 'side'].map((name) => ({ name, image: `${name}:1` })) } };
  const alone = { uid: 'pinned-1', spec: { containers: [{ name: 'main', image: 'main:1' }] } };

  it('is stopped, and the others are not touched', async ({ h }) => {
    h.write('web', pod('web', both));
    await h.until('both run', () => h.running('web').length === 2);
    const main = h.running('web').find((c) => c.name === 'main');
    h.write('web', pod('web', alone));
    await h.until('one runs', () => h.running('web').length === 1, 5_000);
    expect(h.running('web')[0]?.id).toBe(main?.id);
    await h.advance(120_000);
    expect(h.running('web').map((c) => c.id)).toEqual([main?.id]);
    expect(h.phase('web')).toBe('Running');
  });

  it('is not started when its image arrives only after that', async ({ h }) => {
    h.faults.latencyMs.PullImage = 20_000;
    h.write('web', pod('web', both));
    await h.until('main runs, side is pulled', () => h.running('web').length === 1 && h.containerState('web', 'side') === 'pulling');
    h.write('web', pod('web', alone));
    await h.advance(180_000);
    expect(h.containers('web').map((c) => c.name)).toEqual(['main']);
  });

  it('has no back-off that goes on without it', async ({ h }) => {
    h.write('web', pod('web', { ...both, lives: { side: 'run=1s,exit=1' } }));
    await h.until('side backs off', () => h.containerState('web', 'side') === 'backingOff');
    h.write('web', pod('web', alone));
    await h.advance(10_000);
    expect(h.containerState('web', 'side')).toBe('');
    expect(h.record('web')?.worker?.containers.map((c) => c.name)).toEqual(['main']);
  });
});

describe('the restart count that was shown is the one that the next instance carries: whoever asks the runtime alone must find it', () => {
  it('it does not fall when the daemon restarts, though the instances and logs before were taken away', async ({ h }) => {
    await h.run('web', pod('web'));
    const [first] = h.running('web');
    const shown = () => h.status('web')?.status.containerStatuses?.[0];
    // Its log has gone with it (this runtime writes none).
    h.faults.fault = (method) => (method === 'CreateContainer' ? { kind: 'refuse', code: 14, details: 'not now' } : undefined);
    await h.runtime.call('RemoveContainer', { containerId: first?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
    await h.until('its end is shown', () => shown()?.restartCount === 1, 60_000);
    h.faults.fault = () => undefined;
    await h.until('it runs again', () => h.running('web').length === 1 && shown()?.state.running !== undefined, 60_000);
    expect(shown()?.restartCount).toBe(1);
    await h.restart();
    await h.until('it is shown again', () => shown()?.state.running !== undefined, 60_000);
    expect(shown()?.restartCount).toBe(1);
  });
});

describe('the clock of the runtime was set back by an hour, as NTP does after a boot', () => {
  /** The clock of the runtime was set back by an hour, as NTP does after a boot. What was made then looked older than what had ended before: containers were started again and again beside one that ran, and a new sandbox was never used. */
  async function withClockSetBack(act: (h: VirtualNode) => void): Promise<void> {
    let aheadMs = 0;
    const options = {
      get runtimeAheadMs() {
        return aheadMs;
      },
    };
    await using h = await virtualNode(options);
    h.write('web', pod('web'));
    await h.until('it runs', () => h.running('web').length === 1);
    await h.advance(5_000);
    aheadMs = -3_600_000;
    act(h);
    await h.advance(120_000);
    expect(h.running('web')).toHaveLength(1);
    expect(h.violations).toEqual([]);
  }

  it('a container that ended then is started once more', () =>
    withClockSetBack((h) => {
      for (const { id } of h.running('web')) h.runtime.exit(id, { exitCode: 1 });
    }));

  it('a sandbox that was stopped then is made anew once, and used', () =>
    withClockSetBack((h) => {
      const signal = new AbortController().signal;
      for (const { id } of h.runtime.dump().sandboxes)
        void h.runtime.call('StopPodSandbox', { podSandboxId: id }, { signal, timeoutMs: 10_000 });
    }));
});

describe('a message that waited for the workers while the pod manager was restarted speaks of what the new one does not know yet', () => {
  it('an orphaned pod is not stopped by what an earlier pod manager had asked for, before every source has delivered', async () => {
    await using h = await virtualNode({ manifests: { old: pod('old') }, config: { staticPodURL: 'http://example.test/pods' } });
    await h.until('it runs', () => h.phase('old') === 'Running');
    await h.crash();
    h.remove('old');
    const { getBody } = h.net;
    h.net.getBody = () => new Promise(() => {});
    await h.boot();
    // The workers die just before the pod manager asks for one; then it dies itself, and one source is silent from now on.
    let asked = false;
    h.tree.observe((e) => {
      if (asked || e.kind !== 'message' || e.type !== 'pods.orphan') return;
      asked = true;
      h.net.getBody = () => new Promise(() => {});
      h.kill('node/pods/workers');
    });
    h.net.getBody = getBody;
    h.kill('node/pods/sources/http');
    await h.until('the orphaned pod was found', () => asked);
    expect(h.actor('node/pods/workers')?.mailbox?.depth).toBeGreaterThan(0);
    h.kill('node/pods/podManager');
    await h.advance(60_000);
    expect(h.running()).toHaveLength(1);
    h.net.getBody = getBody;
    h.kill('node/pods/sources/http');
    await h.until('it is stopped once all have delivered', () => h.running().length === 0, 120_000);
  });
});

describe('a container whose state the runtime does not know is stopped once, and then started anew even if it stays unknown', () => {
  it('is replaced', async ({ h }) => {
    h.write('web', pod('web'));
    await h.until('it runs', () => h.running('web').length === 1);
    const [old] = h.running('web');
    const unknown = <C extends { id?: string } | undefined>(c: C): C => (c?.id === old?.id ? { ...c, state: 'CONTAINER_UNKNOWN' } : c);
    h.faults.answer = (method, value) => {
      const answer = value as { status?: { id?: string }; containers?: { id: string }[] };
      if (method === 'ContainerStatus') return { ...answer, status: unknown(answer.status) };
      if (method === 'ListContainers') return { ...answer, containers: answer.containers?.map(unknown) };
      return value;
    };
    let stops = 0;
    h.faults.fault = (method) => {
      if (method === 'StopContainer') stops += 1;
      return undefined;
    };
    await h.until('another runs', () => h.running('web').some((c) => c.id !== old?.id), 180_000);
    expect(stops).toBe(1);
    expect(h.violations).toEqual([]);
    expect(h.running('web')[0]?.attempt).toBe(1);
  });
});

describe('a container that was created and whose start is of unknown outcome: its late start must not meet its replacement', () => {
  it.each([true, false])('a start without an answer leaves one instance with restart count 0 (took effect: %s)', async (effect) => {
    await using h = await virtualNode();
    let left = 1;
    h.faults.fault = (method) => (method === 'StartContainer' && left-- > 0 ? { kind: 'timeout', effect, afterMs: 500 } : undefined);
    h.faults.latencyMs.StartContainer = 700;
    await h.run('web', pod('web'));
    await h.advance(30_000);
    expect(h.violations).toEqual([]);
    expect(h.containers('web')).toHaveLength(1);
    expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0, ready: true });
  });

  it('an instance that starts and is seen running while its removal is under way counts, for the next daemon too', async ({ h }) => {
    let left = 1;
    h.faults.latencyMs = { StartContainer: 3_000, RemoveContainer: 6_000, CreateContainer: 1_000 };
    h.faults.fault = (method) => {
      if (method !== 'StartContainer') return undefined;
      // The start that nobody waits for any more is the only slow one.
      if (left-- > 0) return { kind: 'timeout', effect: true, afterMs: 500 };
      h.faults.latencyMs.StartContainer = 0;
      return undefined;
    };
    const shown = () => h.status('web')?.status.containerStatuses?.[0];
    h.write('web', pod('web'));
    await h.until('the late start is seen', () => shown()?.state.running !== undefined);
    const first = h.containers('web')[0]?.id;
    expect(shown()).toMatchObject({ restartCount: 0 });
    expect(h.calls.filter((c) => c.method === 'RemoveContainer')).toHaveLength(0);
    await h.until('its removal took effect', () => h.containers('web').every((c) => c.id !== first));
    await h.until('web runs again', () => shown()?.state.running !== undefined && h.running('web').length === 1);
    await h.advance(30_000);
    expect(shown()).toMatchObject({ restartCount: 1, ready: true });
    expect(h.containers('web')).toMatchObject([{ attempt: 1, state: 'CONTAINER_RUNNING' }]);
    await h.restart();
    await h.until('the next daemon shows it', () => shown()?.state.running !== undefined);
    expect(shown()).toMatchObject({ restartCount: 1 });
    expect(h.violations).toEqual([]);
  });
});
