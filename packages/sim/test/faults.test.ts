/** Faults of one simulated node: disk, mailboxes. */

import type { FaultSpec } from '@actorlet/faults/src/types.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { containerGcAddr } from '@actorlet/kubelet/machines/reclaim/messages.ts';
import { drain } from '@actorlet/world/src/globals.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simNode } from '@actorlet/world/src/node/node.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { SimTime } from '@actorlet/world/src/time.ts';
import { describe, expect, it } from 'vitest';
import { drawTuning } from '../src/nemesis/draws/node/tuning.ts';
import type { FaultEntry } from '../src/nemesis/faults.ts';
import { Nemesis } from '../src/nemesis/nemesis.ts';
import { Operator } from '../src/nemesis/workload/operator.ts';

/** Quick hardware, nothing drawn. */
const TUNING = {
  ...drawTuning(simRng('tuning')),
  kernel: null,
  callLatencyMs: 0,
  diskLatencyMs: 0,
  requestTimeoutMs: 15_000,
  syncFrequencyMs: 60_000,
  fileCheckMs: 20_000,
  httpCheckMs: 20_000,
  http: false,
  hints: true,
};

type Entry = FaultSpec & { forMs: number };

function world(...faults: Entry[]) {
  const rng = simRng('faults');
  const time = new SimTime(rng.fork('ties'));
  const events: SupervisionEvent[] = [];
  const broken: string[] = [];
  const node: SimNode = simNode({
    index: 0,
    rng,
    time,
    tuning: TUNING,
    watcher: {
      supervision: (_, e) => void events.push(e),
      statuses: () => {},
      log: () => {},
      booted: () => {},
      judged: () => {},
      exited: () => {},
      inspect: () => {},
      broken: (_, what) => void broken.push(what),
    },
  });
  const clock = time.clockFor({ on: true });
  const schedule = faults.map((f, id): FaultEntry => ({ id, node: 0, atMs: 0, afterSteps: 0, name: `f${id}`, ...f }));
  const kube = simKube({ clock, rng: rng.fork('kube'), latencyMs: () => 1 });
  const nemesis = new Nemesis({
    kube,
    nodes: [node],
    operators: [new Operator(node, time)],
    schedule,
    rng: rng.fork('nemesis'),
    time,
    clock,
    on: () => {},
  });
  const advance = async (ms: number): Promise<void> => {
    const endMs = time.monoMs + ms;
    await drain();
    while (await time.step(endMs));
    expect(broken).toEqual([]);
  };
  const { fs } = node.disk.mount({ on: true }, clock);
  return { node, time, nemesis, advance, events, fs, kube, api: kube.connect({ power: { on: true }, clock }) };
}
const FOR_EVER = { probability: 1, forMs: 3_600_000 };

describe('the disk', () => {
  it('fails to rename and leaves both names as they were, while everything else works', async () => {
    const w = world({ kind: 'disk.error', code: 'EXDEV', select: { ops: ['rename'] }, ...FOR_EVER });
    w.nemesis.begin();
    await w.advance(1);
    await w.fs.writeFile('/etc/new', 'new', { fsync: true });
    await w.fs.writeFile('/etc/old', 'old', { fsync: true });
    await expect(w.fs.rename('/etc/new', '/etc/old')).rejects.toMatchObject({ code: 'EXDEV' });
    const read = async (path: string) => new TextDecoder().decode(await w.fs.readFile(path, { bytesMax: 100 }));
    expect([await read('/etc/new'), await read('/etc/old')]).toEqual(['new', 'old']);
    expect(w.nemesis.counts.get('disk.error.rename')).toBe(1);
    w.nemesis.heal();
    await w.fs.rename('/etc/new', '/etc/old');
    expect(await read('/etc/old')).toBe('new');
  });

  it('is full, seems full, and fails to read, only below the paths that are named', async () => {
    const paths = ['/var/**'];
    const w = world(
      { kind: 'disk.full', select: { paths }, ...FOR_EVER },
      { kind: 'pressure.disk', availableBytes: 42, select: { paths: ['/etc'] }, ...FOR_EVER },
      { kind: 'disk.error', code: 'EIO', select: { ops: ['read'], paths: ['/etc/bad'] }, ...FOR_EVER },
    );
    w.nemesis.begin();
    await w.advance(1);
    await expect(w.fs.writeFile('/var/x', 'data')).rejects.toMatchObject({ code: 'ENOSPC' });
    await w.fs.writeFile('/etc/x', 'data');
    expect((await w.fs.statfs('/etc')).bytesAvailable).toBe(42);
    expect((await w.fs.statfs('/var/log')).bytesAvailable).toBe(0);
    await w.fs.writeFile('/etc/bad', 'data');
    await expect(w.fs.readFile('/etc/bad', { bytesMax: 10 })).rejects.toMatchObject({ code: 'EIO' });
    expect((await w.fs.readFile('/etc/x', { bytesMax: 10 })).length).toBe(4);
  });
});

describe('mailboxes', () => {
  /** What was sent to the collector, and what reached it. */
  async function send(w: ReturnType<typeof world>, count: number): Promise<number> {
    w.node.boot();
    await w.advance(5_000);
    w.nemesis.begin();
    await w.advance(1);
    w.events.length = 0;
    const tree = w.node.daemon?.tree;
    for (let i = 0; i < count; i++) tree?.registry.send(containerGcAddr, { type: 'gc.run', why: `test ${i}` });
    await w.advance(1);
    return arrived(w);
  }
  const arrived = (w: ReturnType<typeof world>): number => w.events.filter((e) => e.kind === 'message' && e.type === 'gc.run').length;

  it('lose the messages that are named, and each leaves a dead letter', async () => {
    const w = world({ kind: 'mailbox', action: 'drop', delayMs: 0, select: { events: ['gc.run'] }, times: 2, ...FOR_EVER });
    expect(await send(w, 3)).toBe(1);
    expect(w.events.filter((e) => e.kind === 'dead-letter').map((e) => e.letter)).toMatchObject([
      { type: 'gc.run', reason: 'injected' },
      { type: 'gc.run', reason: 'injected' },
    ]);
    expect(w.nemesis.counts.get('mailbox.drop')).toBe(2);
    expect(w.nemesis.byName.get('f0')).toBe(2);
  });

  it('are slow for as long as they were told, and deliver all that was sent', async () => {
    const w = world({ kind: 'mailbox', action: 'delay', delayMs: 2_000, select: { actors: ['node/reclaim/*'] }, ...FOR_EVER });
    expect(await send(w, 3)).toBe(0);
    await w.advance(1_990);
    expect(arrived(w)).toBe(0);
    await w.advance(20);
    expect(arrived(w)).toBeGreaterThan(0);
  });

  it('leave lanes alone that are not named', async () => {
    const w = world({ kind: 'mailbox', action: 'drop', delayMs: 0, select: { events: ['gc.run'], lanes: ['control'] }, ...FOR_EVER });
    expect(await send(w, 2)).toBe(2);
    expect(w.nemesis.byName.get('f0')).toBeUndefined();
  });
});

describe('the API server', () => {
  const OPTS = { timeoutMs: 5_000, signal: new AbortController().signal };
  const PODS = '/api/v1/namespaces/default/pods';
  const body = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  type World = ReturnType<typeof world>;
  /** Status of the answer, or the reason that there was none. */
  async function put(w: World, name: string): Promise<number | string> {
    const asked = w.api.request({ verb: 'POST', path: PODS, body: body(name) }, OPTS);
    await w.advance(OPTS.timeoutMs + 1_000);
    const r = await asked;
    return r.ok ? r.code : r.failure.code === 0 ? r.failure.reason : r.failure.code;
  }
  const there = (w: World, name: string): boolean => w.kube.handle({ verb: 'GET', path: `${PODS}/${name}` }).ok;

  it('refuses, loses answers and loses requests, of the requests that are named', async () => {
    const w = world(
      { kind: 'api.call', action: 'error', status: 429, delayMs: 0, times: 1, select: { verbs: ['create'], pods: ['a*'] }, ...FOR_EVER },
      { kind: 'api.call', action: 'lost-with-effect', status: 500, delayMs: 0, select: { resources: ['pods'], pods: ['b'] }, ...FOR_EVER },
      {
        kind: 'api.call',
        action: 'lost-without-effect',
        status: 500,
        delayMs: 0,
        select: { namespaces: ['default'], pods: ['c'] },
        ...FOR_EVER,
      },
      { kind: 'api.call', action: 'error', status: 500, delayMs: 0, select: { resources: ['leases'] }, ...FOR_EVER },
    );
    w.nemesis.begin();
    await w.advance(1);
    expect([await put(w, 'a'), await put(w, 'a'), await put(w, 'b'), await put(w, 'c'), await put(w, 'd')]).toEqual([
      429,
      201,
      'Timeout',
      'Timeout',
      201,
    ]);
    expect([there(w, 'a'), there(w, 'b'), there(w, 'c'), there(w, 'd')]).toEqual([true, true, false, true]);
    expect([...w.nemesis.byName]).toEqual([
      ['f0', 1],
      ['f1', 1],
      ['f2', 1],
    ]);
  });

  it('is cut off for as long as a partition lasts', async () => {
    const w = world({ kind: 'api.partition', probability: 1, select: {}, forMs: 10_000 });
    w.nemesis.begin();
    await w.advance(1);
    expect([await put(w, 'a'), there(w, 'a')]).toEqual(['Timeout', false]);
    await w.advance(10_000);
    expect(await put(w, 'a')).toBe(201);
  });

  it('truncates watches of the resources that are named', async () => {
    const w = world({ kind: 'api.watch', delayMs: 0, action: 'truncate', select: { resources: ['pods'] }, ...FOR_EVER });
    w.nemesis.begin();
    await w.advance(1);
    const ends: string[] = [];
    for (const path of ['/api/v1/pods', '/api/v1/services']) {
      const opening = w.api.watch({ path }, OPTS);
      await w.advance(10);
      const opened = await opening;
      if (!opened.ok) throw new Error(opened.failure.message);
      void (async () => {
        try {
          for await (const _ of opened.lines) ends.push(`${path} said something`);
          ends.push(`${path} ended`);
        } catch {
          ends.push(`${path} was cut`);
        }
      })();
    }
    w.kube.handle({ verb: 'POST', path: PODS, body: body('a') });
    w.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/services', body: { ...body('s'), kind: 'Service' } });
    await w.advance(100);
    expect(ends.sort()).toEqual(['/api/v1/pods was cut', '/api/v1/services said something']);
    expect(w.nemesis.counts.get('api.watch.truncate')).toBe(1);
  });
});
