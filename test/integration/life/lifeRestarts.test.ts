/** Restarts, back-off, init containers, sidecars, images and deadlines of a whole node, in virtual time. */
import { describe, expect } from 'vitest';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

/** Seconds from each exit of a container to its next start, in order. */
async function waits(h: VirtualNode, name: string, count: number): Promise<number[]> {
  const out: number[] = [];
  let endedMs: number | null = null;
  const seen = new Map<string, string>();
  await h.until(
    `${count} restarts of ${name}`,
    () => {
      for (const c of h.containers(name)) {
        if (seen.get(c.id) === c.state) continue;
        seen.set(c.id, c.state);
        if (c.startedAtMs > 0 && endedMs !== null && c.startedAtMs >= endedMs) {
          out.push((c.startedAtMs - endedMs) / 1000);
          endedMs = null;
        }
        if (c.state === 'CONTAINER_EXITED') endedMs = c.finishedAtMs;
      }
      return out.length >= count;
    },
    7_200_000,
  );
  return out.map((s) => Math.round(s));
}
const main = (h: VirtualNode, name: string) => h.status(name)?.status.containerStatuses?.[0];

describe('crash back-off', () => {
  it('waits 0, 10, 20, 40, 80, 160, 300, 300 s and shows CrashLoopBackOff meanwhile', async ({ h }) => {
    h.write('crash', pod('crash', { life: 'run=1s,exit=1' }));
    expect(await waits(h, 'crash', 8)).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
    await h.until('it waits again', () => main(h, 'crash')?.state.waiting?.reason === 'CrashLoopBackOff');
    expect(main(h, 'crash')?.state.waiting?.message).toMatch(/^back-off 5m0s restarting failed container=main pod=crash-n1_default\(/);
    expect(main(h, 'crash')?.restartCount).toBe(8);
    expect(main(h, 'crash')?.lastState.terminated?.exitCode).toBe(1);
    expect(h.violations).toEqual([]);
  });

  it.each([-5, 5])('does not follow a runtime whose clock is %d hours off', async (hours) => {
    await using h = await virtualNode({ runtimeAheadMs: hours * 3_600_000 });
    h.write('crash', pod('crash', { life: 'run=1s,exit=1' }));
    await h.advance(80_000);
    // Starts after 0, 1, 12, 33 and 74 s.
    expect(main(h, 'crash')?.restartCount).toBe(4);
  });

  it('trap 14: counts an exit 0 too where the pod is to run always', async ({ h }) => {
    h.write('done', pod('done', { life: 'run=1s,exit=0' }));
    expect(await waits(h, 'done', 4)).toEqual([0, 10, 20, 40]);
    await h.until('it waits again', () => main(h, 'done')?.state.waiting?.reason === 'CrashLoopBackOff');
    expect(main(h, 'done')?.lastState.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  });

  it('begins anew after a run of more than ten minutes', async ({ h }) => {
    h.write('crash', pod('crash', { life: 'run=1s,exit=1;run=1s,exit=1;run=1s,exit=1;run=11m,exit=1;run=1s,exit=1' }));
    expect(await waits(h, 'crash', 5)).toEqual([0, 10, 20, 0, 10]);
  });

  it('does not begin anew when the daemon is killed: the wait goes on where it stood', async ({ h }) => {
    h.write('crash', pod('crash', { life: 'run=1s,exit=1' }));
    await waits(h, 'crash', 4);
    await h.until('it backs off', () => main(h, 'crash')?.state.waiting?.reason === 'CrashLoopBackOff');
    const endedMs = h.containers('crash').at(-1)?.finishedAtMs ?? 0;
    await h.advance(30_000);
    await h.restart();
    await h.until('it runs again', () => h.running('crash').length === 1, 200_000);
    const waited = ((h.running('crash')[0]?.startedAtMs ?? 0) - endedMs) / 1000;
    expect(Math.round(waited)).toBe(80);
    expect(h.violations).toEqual([]);
  });

  it('a clock set back by an hour does not hold a container for an hour', async ({ h }) => {
    h.write('crash', pod('crash', { life: 'run=20s,exit=1;run=20s,exit=1;run=forever' }));
    await h.until('it backs off', () => main(h, 'crash')?.state.waiting?.reason === 'CrashLoopBackOff');
    h.time.jumpWall(-3_600_000);
    await h.until('it runs', () => h.running('crash').length === 1, 120_000);
  });
});

describe('restart policies', () => {
  it.each([
    ['OnFailure', 'run=1s,exit=1;run=1s,exit=0', 'Succeeded', 1],
    ['Never', 'run=1s,exit=1', 'Failed', 0],
    ['Never', 'run=1s,exit=0', 'Succeeded', 0],
    ['OnFailure', 'run=1s,exit=0', 'Succeeded', 0],
  ])('%s with %s ends %s', async (restartPolicy, life, phase, restarts) => {
    await using h = await virtualNode();
    h.write('job', pod('job', { life, spec: { restartPolicy } }));
    await h.until(`the pod is ${phase}`, () => h.phase('job') === phase);
    await h.advance(400_000);
    expect(main(h, 'job')?.restartCount).toBe(restarts);
    expect(h.phase('job')).toBe(phase);
    expect(h.runtime.dump().sandboxes.every((s) => !s.ready)).toBe(true);
    // And stays so when the daemon begins anew.
    await h.restart();
    await h.advance(120_000);
    expect(h.phase('job')).toBe(phase);
    expect(h.runtime.dump().counts.containersStarted).toBe(restarts + 1);
  });
});

describe('what the node stops to start it anew', () => {
  it('another image, in a Never pod', async ({ h }) => {
    const image = (tag: string) =>
      pod('once', { uid: 'pinned-1', container: { image: `busybox:${tag}` }, spec: { restartPolicy: 'Never' } });
    h.write('once', image('1'));
    await h.until('it runs', () => h.running('once').length === 1);
    const [first] = h.running('once');
    h.write('once', image('2'));
    await h.until('the other runs', () => h.running('once').some((c) => c.id !== first?.id), 60_000);
    await h.until('and is shown', () => main(h, 'once')?.restartCount === 1 && h.phase('once') === 'Running', 5_000);
    await h.advance(120_000);
    expect(h.running('once')).toHaveLength(1);
  });

  it('the containers of a sandbox that is replaced, in an OnFailure pod', async ({ h }) => {
    h.write('job', pod('job', { life: 'termExit=0', spec: { restartPolicy: 'OnFailure' } }));
    await h.until('it runs', () => h.running('job').length === 1);
    const [first] = h.running('job');
    // Its address is lost.
    h.faults.answer = (method, value) =>
      method === 'PodSandboxStatus' && typeof value === 'object' && value !== null && 'status' in value
        ? { ...value, status: { ...(value.status as object), network: { ip: '', additionalIps: [] } } }
        : value;
    h.kill(h.workerPath('job'));
    await h.until('it was stopped', () => h.running('job').length === 0, 180_000);
    h.faults.answer = (_, value) => value;
    await h.until('it runs anew', () => h.running('job').some((c) => c.id !== first?.id), 60_000);
    await h.until('and is shown', () => h.phase('job') === 'Running' && main(h, 'job')?.restartCount === 1, 5_000);
  });
});

describe('init containers', () => {
  it("run one after the other, each to its end, before the pod's own", async ({ h }) => {
    await h.run('app', pod('app', { lives: { 'init-0': 'run=2s', 'init-1': 'run=3s' }, inits: [{}, {}] }));
    const at = new Map(h.containers('app').map((c) => [c.name, c]));
    expect(at.get('init-1')?.startedAtMs).toBeGreaterThanOrEqual(at.get('init-0')?.finishedAtMs ?? 0);
    expect(at.get('main')?.startedAtMs).toBeGreaterThanOrEqual(at.get('init-1')?.finishedAtMs ?? 0);
  });

  it('that fails holds the pod back with the crash series, and fails a Never pod', async ({ h }) => {
    h.write('app', pod('app', { lives: { 'init-0': 'run=1s,exit=1;run=1s,exit=1;run=1s,exit=0' }, inits: [{}] }));
    h.write('never', pod('never', { lives: { 'init-0': 'run=1s,exit=1' }, inits: [{}], spec: { restartPolicy: 'Never' } }));
    await h.until('init fails', () => h.status('app')?.status.initContainerStatuses?.[0]?.state.waiting?.reason === 'CrashLoopBackOff');
    expect(h.running('app').filter((c) => c.name === 'main')).toEqual([]);
    await h.until('it runs in the end', () => h.phase('app') === 'Running');
    await h.until('never has failed', () => h.phase('never') === 'Failed');
    expect(h.containers('never').map((c) => c.name)).toEqual(['init-0']);
  });

  it('sidecars start before, are restarted whatever the policy, and stop after the rest', async ({ h }) => {
    const inits = [{ restartPolicy: 'Always' }];
    h.write(
      'job',
      pod('job', { lives: { main: 'run=30s', 'init-0': 'run=5s,exit=1;run=forever' }, inits, spec: { restartPolicy: 'Never' } }),
    );
    await h.until('both run', () => h.running('job').length === 2);
    const [side, own] = ['init-0', 'main'].map((n) => h.containers('job').find((c) => c.name === n));
    expect(own?.startedAtMs).toBeGreaterThanOrEqual(side?.startedAtMs ?? Number.POSITIVE_INFINITY);
    await h.until('the sidecar was restarted', () => h.running('job').some((c) => c.name === 'init-0' && c.attempt === 1));
    await h.until('the job is done', () => h.phase('job') === 'Succeeded');
    expect(h.running('job')).toEqual([]);
    expect(h.violations).toEqual([]);
  });
});

describe('images', () => {
  it('that cannot be pulled back off, and do not keep a pod from being removed', async () => {
    let there = false;
    await using h = await virtualNode({ hollow: { image: (name) => (name.startsWith('missing') && !there ? undefined : {}) } });
    h.write('late', pod('late', { container: { image: 'missing:1' } }));
    h.write('gone', pod('gone', { container: { image: 'missing:2' } }));
    const reasons = new Set<string>();
    await h.until('both reasons were shown', () => {
      const reason = main(h, 'late')?.state.waiting?.reason;
      if (reason !== undefined) reasons.add(reason);
      return reasons.has('ErrImagePull') && reasons.has('ImagePullBackOff');
    });
    h.remove('gone');
    await h.until('the other is gone', () => h.record('gone') === undefined);
    there = true;
    await h.until('it runs', () => h.phase('late') === 'Running', 700_000);
    expect(main(h, 'late')?.restartCount).toBe(0);
  });
});

describe('active deadline', () => {
  it('fails the pod when it is over, to the second, across a restart of the daemon', async ({ h }) => {
    await h.run('job', pod('job', { spec: { activeDeadlineSeconds: 100 } }));
    const startMs = Date.parse(h.status('job')?.status.startTime ?? '');
    await h.advance(40_000);
    await h.restart();
    await h.until('it has failed', () => h.phase('job') === 'Failed', 200_000);
    expect(h.status('job')?.status.reason).toBe('DeadlineExceeded');
    expect(Math.abs(h.time.clock.wallMs() - startMs - 100_000)).toBeLessThan(2_000);
    await h.until('nothing runs', () => h.running().length === 0);
  });
});
