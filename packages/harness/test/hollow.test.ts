/** A test node on the hollow runtime: waits and what they say when they fail, manifests, faults, the daemon's ends. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../../../test/programs.ts';
import { startNode, type TestNode, WaitError } from '../src/index.ts';

let node: TestNode;
beforeAll(async () => {
  node = await startNode({ runtime: 'hollow', readOnlyPort: true, timeoutMs: 60_000, startTimeoutMs: 90_000 });
}, 120_000);
afterAll(() => node?.dispose(), 120_000);

const pod = (name: string, script: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, annotations: { 'actorlet.dev/hollow': script } },
  spec: { containers: [{ name: 'app', image: 'example.test/app:1' }], ...spec },
});
async function failure(wait: Promise<unknown>): Promise<WaitError> {
  const error = await wait.then(
    () => undefined,
    (e: unknown) => e,
  );
  if (!(error instanceof WaitError)) throw new Error(`expected a WaitError, not ${String(error)}`);
  return error;
}

describe('waits', { timeout: 120_000 }, () => {
  it('follow a pod from its manifest to its end', async () => {
    const web = await node.apply(pod('web', 'startDelay=200ms,run=forever'));
    expect((await web.phase('Running')).phase).toBe('Running');
    await web.ready();
    const t = await web.timings();
    expect(t.startedMs ?? -1).toBeGreaterThanOrEqual(t.scheduledMs ?? 0);
    expect(t.restarts).toEqual([]);
    expect(await node.containers()).toEqual([expect.objectContaining({ pod: 'web', name: 'app', state: 'running', restartCount: 0 })]);
    expect((await node.events('web')).map((e) => e.reason)).toContain('Started');
    expect(await node.why('web')).toContain('Pod default/web-');
    expect(await (await fetch(`${node.url}/pods`)).json()).toMatchObject({
      kind: 'PodList',
      items: [{ metadata: { name: `web-${node.name}` } }],
    });
    await node.remove('web');
    await web.gone();
    expect(await web.get()).toBe(undefined);
    await expect(node.remove('web')).rejects.toThrow('none of that name was applied');
  });

  it('count restarts and time the gaps between them', async () => {
    const flaky = await node.apply(pod('flaky', 'run=300ms,exit=3;run=300ms,exit=4'));
    const status = await flaky.restarts(1);
    expect(status.containerStatuses?.[0]?.restartCount).toBeGreaterThanOrEqual(1);
    await flaky.where('wait for its second start', (p) => p.reason === 'CrashLoopBackOff');
    expect((await flaky.timings()).restarts[0]).toMatchObject({ container: 'app', exitCode: 3 });
    await node.remove(flaky);
    await flaky.gone();
  });

  it('say what they waited for, what was there, and why', async () => {
    const stuck = await node.apply(pod('stuck', 'startError=no such device'));
    await stuck.where('fail to start', (p) =>
      (p.pod.status?.containerStatuses?.[0]?.state.waiting?.message ?? '').includes('no such device'),
    );
    const error = await failure(stuck.ready({ timeoutMs: 1_000 }));
    expect(error.message).toMatch(/^waited \d+\.\d s for pod stuck to be ready\n {2}last seen: (Pending|Running), 0 of 1 ready/);
    expect(error.seen).toContain('app: waiting');
    expect(error.why).toContain('no such device');
    expect(error.what).toBe('pod stuck to be ready');
    await node.remove('stuck');
    await stuck.gone();
  });

  it('give up at once on what cannot come true any more', async () => {
    const job = await node.apply(pod('job', 'run=100ms,exit=3', { restartPolicy: 'Never' }));
    expect((await job.phase(['Succeeded', 'Failed'])).phase).toBe('Failed');
    const error = await failure(job.ready());
    expect(error.message).toMatch(/^pod job to be ready: cannot come true any more/);
    expect(error.message).toContain('app: exited 3 (Error)');
    await expect(job.restarts(1)).rejects.toThrow('cannot come true any more');
  });

  it('notice what does not stay', async () => {
    const brief = await node.apply(pod('brief', 'run=5s,exit=0', { restartPolicy: 'Never' }));
    await brief.phase('Running');
    const error = await failure(brief.stays('keep running', (p) => p.phase === 'Running', { forMs: 60_000 }));
    expect(error.seen).toContain('Succeeded');
    await expect(brief.stays('stay over', (p) => p.phase === 'Succeeded', { forMs: 300 })).resolves.toMatchObject({ phase: 'Succeeded' });
    await expect(brief.restarts(0)).rejects.toThrow('use stays()');
    const later = await node.apply(pod('later', 'startDelay=1s,run=2s', { restartPolicy: 'Never' }));
    await expect(later.stays('end', (p) => p.phase === 'Succeeded', { mayBegin: 'later' })).resolves.toMatchObject({ phase: 'Succeeded' });
    const loop = await node.apply(pod('loop', 'run=1s,exit=3'));
    expect((await failure(loop.stays('be left alone', (p) => p.restarts === 0, { mayBegin: 'later' }))).seen).toContain('1 restart');
    await expect(loop.stays('be Pending', (p) => p.phase === 'Pending', { forMs: 300, mayBegin: 'later' })).rejects.toThrow(
      'cannot come true any more',
    );
    await node.remove('loop');
    const nobody = await failure(node.pod('nobody').ready({ timeoutMs: 300 }));
    expect(nobody.seen).toBe('the node knows no such pod');
  });
});

describe('manifests', { timeout: 120_000 }, () => {
  it('replace a pod when they have changed, and do nothing when they have not', async () => {
    const web = await node.apply(pod('again', 'run=forever'));
    await web.ready();
    const first = (await web.get())?.uid;
    await node.apply(pod('again', 'run=forever'));
    expect((await web.get())?.uid).toBe(first);
    await node.apply(pod('again', 'run=forever,term=ignore'));
    await web.ready();
    expect((await web.get())?.uid).not.toBe(first);
  });
  it('are refused before the node sees them', async () => {
    await expect(node.apply(pod('bad', 'run=forever', { restartPolicy: 'Sometimes' }))).rejects.toThrow('spec.restartPolicy');
    await expect(node.apply('apiVersion: v1\nkind: Pod\n')).rejects.toThrow('metadata');
    const two = [pod('p1', 'run=forever'), pod('p2', 'run=forever')].map((p) => JSON.stringify(p)).join('\n---\n');
    await expect(node.apply(`---\n${two}\n`)).rejects.toThrow('apply takes a manifest with one pod');
    expect((await node.applyAll(`---\n${two}\n`)).map((p) => p.name)).toEqual(['p1', 'p2']);
  });
});

describe('faults', { timeout: 120_000 }, () => {
  const scenario = (fault: object) => ({
    apiVersion: 'actorlet.dev/v1alpha1',
    kind: 'FaultScenario',
    metadata: { name: 'test' },
    spec: { faults: [fault] },
  });
  it('begin with inject and end with stop', async () => {
    await using fault = await node.inject(
      scenario({ name: 'no-start', kind: 'cri', action: 'error', select: { methods: ['StartContainer'], pods: ['held-*'] } }),
    );
    const held = await node.apply(pod('held', 'run=forever'));
    await held.where(
      'fail to start',
      (p) => (p.pod.status?.containerStatuses?.[0]?.state.waiting?.reason ?? '') !== '' && p.reason !== 'ContainerCreating',
    );
    const status = await fault.status();
    expect(status?.faults[0]?.hits).toBeGreaterThan(0);
    await fault.stop();
    expect(await fault.status()).toBe(undefined);
    await held.ready();
    expect(node.timeline.some((e) => e.kind === 'fault' && e.what.includes('no-start'))).toBe(true);
  });
  it('are refused with line and field', async () => {
    await expect(
      node.inject('apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: x}\nspec:\n  faults:\n  - kind: crj\n'),
    ).rejects.toThrow(/:6: .*kind/);
  });
});

describe('the daemon', { timeout: 180_000 }, () => {
  it('can be killed and started again; a wait goes on meanwhile', async () => {
    const kept = await node.apply(pod('kept', 'run=forever'));
    await kept.ready();
    const { pid } = node;
    await node.kill('SIGKILL');
    expect(node.pid).toBe(undefined);
    await expect(node.kill()).rejects.toThrow('down already');
    const error = await failure(kept.ready({ timeoutMs: 300 }));
    expect(error.message).toContain('daemon:\n    down, as it was told');
    const waiting = kept.ready();
    await node.restart();
    expect(node.pid).not.toBe(pid);
    await waiting;
    expect(node.timeline.map((e) => e.what)).toContain('daemon ended: SIGKILL');
  });
  it('that ends by itself fails every wait at once, with the end of its log', async () => {
    const waiting = failure(node.pod('never-there').ready());
    process.kill(node.pid ?? 0, 'SIGTERM');
    const error = await waiting;
    expect(error.message).toContain('the daemon ended by itself: exit code 0');
    expect(error.message).toContain('containers are left running');
    await node.restart();
    await node.pod('kept').ready();
  });
  it('that cannot start says why, and leaves nothing', async () => {
    const rootDir = join(node.dir, 'other');
    const starting = startNode({ runtime: 'hollow', rootDir, config: { maxPods: -3 } });
    await expect(starting).rejects.toThrow(/the daemon ended by itself: exit code 1[\s\S]*maxPods/);
    expect(existsSync(rootDir)).toBe(false);
  });
  it('is disposed of once, with its folder; nothing can be asked afterwards', async () => {
    const other = await startNode({ runtime: 'hollow', startTimeoutMs: 90_000 });
    const web = await other.apply(pod('web', 'run=forever'));
    const { dir } = other;
    const waiting = web.phase('Failed').catch((e: unknown) => String(e));
    await Promise.all([other.dispose(), other.dispose()]);
    expect(await waiting).toContain('disposed of');
    expect(existsSync(dir)).toBe(false);
    await expect(web.ready()).rejects.toThrow('this node was disposed of');
    await expect(other.restart()).rejects.toThrow('this node was disposed of');
  });
});
