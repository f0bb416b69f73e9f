/** The faults of `test/cluster/observe/planted.nightly.ts`, which runs at night alone: they fit the sources of this commit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExpectedKind } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Cri } from '@actorlet/kubelet/ports/ports.ts';
import { expect, test } from 'vitest';
import { markdownOfObserved, NOTHING_OBSERVED, withLedger } from '../../../bench/conformance/observed.ts';
import { BUGS } from '../../../test/cluster/observe/planted/bugs.ts';
import { LIES } from '../../../test/cluster/observe/planted/lies.ts';
import { KubeBorder } from '../src/border/api/kube.ts';
import { Expectations } from '../src/border/expectations.ts';
import { Pace } from '../src/border/pace.ts';
import { CriBorder } from '../src/border/runtime/cri.ts';

test('each planted bug changes one line of its file, and there are ten of each side', () => {
  const times = BUGS.map(({ id, file, find }) => [
    id,
    readFileSync(join(import.meta.dirname, '../../..', file), 'utf8').split(find).length - 1,
  ]);
  expect(times).toEqual(BUGS.map(({ id }) => [id, 1]));
  expect([BUGS.length, LIES.length]).toEqual([10, 10]);
});

/** Seconds until an act with a bound of 20 s is named, where the looks are so late. `took`: what another one took just before. */
function namedAfter(lateMs: (look: number) => number, took?: number): number {
  let [nowMs, dueMs, fire] = [0, 0, () => {}];
  const setTimeout = (fn: () => void, ms: number): void => {
    [dueMs, fire] = [nowMs + ms, fn];
  };
  const expectations = new Expectations({ monoMs: () => nowMs, wallMs: () => nowMs, setTimeout, clearTimeout: () => undefined });
  const expect = (uid: string) => expectations.expect({ kind: 'Folder', pod: `default/${uid}`, uid, what: 'made the folder of the pod' });
  const other = took === undefined ? undefined : expect('other');
  nowMs = took ?? 0;
  other?.came();
  expect('web');
  for (let i = 0; i < 60 && expectations.ledger().disagreements.length === 0; i++) {
    nowMs = Math.max(nowMs, dueMs + lateMs(i));
    fire();
  }
  return (nowMs - (took ?? 0)) / 1_000;
}

test('a kubelet that starts has its time from the first act that is its own on, and none when it has ended again', () => {
  const pace = new Pace();
  const came = (kind: ExpectedKind, uid: string, tookMs = 900) => pace.came({ kind, uid, tookMs, boundMs: 20_000, isLate: false }, 14_000);
  pace.starts(0, ['old']);
  // A pod that is new has a quarter of the time, even if the kubelet does nothing at all.
  expect([14_000, 16_000].map((ms) => pace.isStarting({ kind: 'Folder', uid: 'new' }, ms))).toEqual([true, false]);
  // What it had asked of the runtime before comes without it, and what was there already is no act.
  expect([came('StopContainer', 'old'), came('PodStatus', 'old', 0)]).toEqual([null, null]);
  expect(came('Folder', 'new')).toEqual({ all: true });
  expect(['old', 'new'].map((uid) => pace.isStarting({ kind: 'Folder', uid }, 59_000))).toEqual([true, false]);
  expect([came('PodStatus', 'old'), came('PodStatus', 'old')]).toEqual([{ all: false }, null]);
  expect([0, 15, 90].map((load) => new Pace(() => load).slowness(0))).toEqual([1, 1.5, 6]);
  // On a slow machine a start takes longer. That something which was missed came in the end makes it none.
  const late = new Pace(() => 20);
  late.starts(0, []);
  expect([29_000, 31_000].map((ms) => late.isStarting({ kind: 'Folder', uid: 'new' }, ms))).toEqual([true, false]);
  pace.came({ kind: 'Folder', uid: 'old', tookMs: 40_000, boundMs: 20_000, isLate: true }, 60_000);
  expect(pace.slowness(60_000)).toBe(1);
  // Nor does what waited for it to start, but what it then did slowly does.
  const slowness = [19_000, 9_000].map((tookMs) => {
    pace.came({ kind: 'Folder', uid: 'old', tookMs, boundMs: 20_000, isLate: false }, 14_500);
    return pace.slowness(14_500);
  });
  expect(slowness).toEqual([1, 1.8]);
  // One that says that it is not ready begins nothing; its start is over when it is. What it said before it ended does not count.
  const word = (isReady: boolean, heartbeat: string) => ({ isReady, heartbeat });
  const isStarting = (ms: number) => late.isStarting({ kind: 'Folder', uid: 'new' }, ms);
  expect([late.says(word(false, 'a'), 100_000), isStarting(200_000)]).toEqual([false, true]);
  expect(late.isStarting({ kind: 'Lease', uid: '' }, 200_000)).toBe(false);
  expect(late.says(word(true, 'a'), 200_000)).toBe(true);
  expect([229_000, 231_000].map(isStarting)).toEqual([true, false]);
  late.says(word(false, 'b'), 240_000);
  late.ends();
  expect(isStarting(240_000)).toBe(false);
  // It begins with the status of its node. What another writes there is no word of it.
  late.starts(300_000, []);
  expect([isStarting(380_000), late.says(word(true, 'b'), 380_000), late.says(word(true, 'c'), 385_000)]).toEqual([true, false, true]);
  expect([414_000, 416_000].map(isStarting)).toEqual([true, false]);
  late.ends();
  late.starts(500_000, []);
  expect([589_000, 591_000].map(isStarting)).toEqual([true, false]);
  // Its first word came before its process was seen.
  late.ends();
  late.says(word(true, 'd'), 700_000);
  // It is told twice: when its process is seen, and when what it runs with is known.
  for (const ms of [700_500, 701_000]) late.starts(ms, []);
  expect([730_000, 732_000].map(isStarting)).toEqual([true, false]);
  pace.starts(60_000, []);
  pace.ends();
  expect(pace.isStarting({ kind: 'Folder', uid: 'new' }, 60_000)).toBe(false);
});

test('what a listing shows is judged by one that began when it was due', () => {
  let [nowMs, fire] = [0, () => {}];
  const setTimeout = (fn: () => void): void => {
    fire = fn;
  };
  const expectations = new Expectations({ monoMs: () => nowMs, wallMs: () => nowMs, setTimeout, clearTimeout: () => undefined });
  expectations.expect({ kind: 'StopPodSandbox', pod: 'default/web', uid: 'u', what: 'stopped sandbox s' });
  const named = (beganMs: number): number => {
    expectations.listed(beganMs);
    for (nowMs += 2_000; nowMs < 30_000; nowMs += 2_000) fire();
    fire();
    return expectations.ledger().disagreements.length;
  };
  expect([named(19_000), named(20_000)]).toEqual([0, 1]);
});

test('nothing is begun of a pod that the tree has no more', () => {
  const { expectations, untilMs } = ticking();
  const wish = (kind: ExpectedKind) => expectations.expect({ kind, pod: '', uid: 'own', what: 'done it' });
  const [folder] = [wish('Folder'), wish('StopContainer')];
  expectations.pods(new Map([['own', 'default/fixed']]));
  expect(expectations.ledger().expected).toHaveLength(2);
  // It was dropped between two looks, too.
  expectations.expect({ kind: 'Folder', pod: '', uid: 'earlier', what: 'done it' });
  expectations.pods(new Map([['given', 'default/fixed']]));
  expect(expectations.ledger().expected.map(({ kind }) => kind)).toEqual(['StopContainer']);
  // Whoever waited for it is told later.
  untilMs(40_000);
  folder.unanswered();
  expect(expectations.ledger().disagreements).toEqual([]);
});

test('a static pod that has ended is given no mirror', () => {
  const named = [true, false].map((isRunning) => {
    const { clock, expectations, untilMs } = ticking();
    const border = new KubeBorder({} as KubeApi, { clock, expectations, stateOf: () => undefined, isRunning: () => isRunning, gates: {} });
    const metadata = { name: 'fixed', namespace: 'default', annotations: { 'kubernetes.io/config.mirror': 'u' } };
    const request = { verb: 'POST', path: '/api/v1/namespaces/default/pods', body: { metadata } } as const;
    void border.request(request, { class: 'kube', timeoutMs: null, signal: new AbortController().signal });
    untilMs(60_000);
    return expectations.ledger().disagreements.map(({ kind }) => kind);
  });
  expect(named).toEqual([['MirrorPod'], []]);
});

/** `untilMs`: looks every 2 s until then, or until something more is named; answers when that is. */
function ticking() {
  let [nowMs, fire] = [0, () => {}];
  const setTimeout = (fn: () => void): void => {
    fire = fn;
  };
  const clock = { monoMs: () => nowMs, wallMs: () => nowMs, setTimeout, clearTimeout: () => undefined };
  const expectations = new Expectations(clock);
  const untilMs = (ms = Number.POSITIVE_INFINITY): number => {
    const named = expectations.ledger().disagreements.length;
    while (nowMs < ms && (Number.isFinite(ms) || expectations.ledger().disagreements.length === named)) {
      nowMs += 2_000;
      expectations.listed(nowMs);
      fire();
    }
    return nowMs;
  };
  return { clock, expectations, untilMs };
}

test('what a pod waited for of which something was named says nothing of the machine', () => {
  const named = [false, true].map((isNamed) => {
    const { expectations, untilMs } = ticking();
    const wish = (kind: ExpectedKind, uid: string) => expectations.expect({ kind, pod: `default/${uid}`, uid, what: 'done it' });
    const folder = wish('Folder', 'unheard');
    if (isNamed) wish('PodStatus', 'unheard');
    untilMs(18_000);
    expect(expectations.ledger().disagreements).toHaveLength(isNamed ? 1 : 0);
    folder.came();
    wish('Folder', 'web');
    return untilMs();
  });
  expect(named).toEqual([58_000, 38_000]);
});

test('what is made has its time from another one on, but not from an instance that follows another', () => {
  const named = [{}, { dueMs: () => 1 }].map((due) => {
    const { expectations, untilMs } = ticking();
    const made = (uid: string, o = {}) =>
      expectations.expect({ kind: 'CreateContainer', pod: `default/${uid}`, uid, what: 'made it', ...o });
    const other = made('other', due);
    made('web');
    untilMs(10_000);
    other.came();
    return untilMs();
  });
  expect(named).toEqual([30_000, 20_000]);
});

test('a sandbox is to be stopped when its containers have ended', async () => {
  let nowMs = 0;
  const timers = new Set<{ fn: () => void; atMs: number }>();
  const setTimeout = (fn: () => void, ms: number) => {
    const timer = { fn, atMs: nowMs + ms };
    timers.add(timer);
    return timer;
  };
  const clearTimeout = (timer: unknown) => void timers.delete(timer as never);
  const clock = { monoMs: () => nowMs, wallMs: () => nowMs, setTimeout, clearTimeout };
  const expectations = new Expectations(clock);
  const labels = { 'io.kubernetes.pod.uid': 'u', 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'default' };
  const late = { id: 'c', podSandboxId: 's', labels, metadata: { name: 'main', attempt: 1 } };
  const answers: Readonly<Record<string, () => object>> = {
    ListPodSandbox: () => ({ items: [{ id: 's', labels, state: 'SANDBOX_READY' }] }),
    // It was begun while its pod was ended, and has half a minute.
    ListContainers: () => ({ containers: [{ ...late, state: nowMs < 30_000 ? 'CONTAINER_RUNNING' : 'CONTAINER_EXITED' }] }),
  };
  const cri = { call: (method: string) => Promise.resolve(answers[method]?.()) } as unknown as Cri;
  const nothing = {
    pullFailure: () => null,
    createFailure: () => null,
    startFailure: () => null,
    usersOf: () => [],
    backsOffUntilMs: () => 0,
  };
  const border = new CriBorder(cri, { clock, expectations, isCreating: () => false, ...nothing });
  const opts = { timeoutMs: null, signal: new AbortController().signal };
  await border.call('ListPodSandbox', {}, opts);
  void border.call('StopPodSandbox', { podSandboxId: 's' }, opts);
  while (expectations.ledger().disagreements.length === 0 && nowMs < 90_000) {
    nowMs += 500;
    for (const timer of [...timers].filter(({ atMs }) => atMs <= nowMs)) {
      timers.delete(timer);
      timer.fn();
    }
    await new Promise(setImmediate);
  }
  expect(nowMs).toBeGreaterThan(48_000);
  expect(expectations.ledger().disagreements).toEqual([expect.objectContaining({ sort: 'missing', kind: 'StopPodSandbox' })]);
});

test('a bound grows by what holds up the observer or the kubelet, once, and up to twice', () => {
  const held = (ms: number) => namedAfter((look) => (look === 0 ? ms : 0));
  expect([0, 900].map((ms) => Math.round(namedAfter(() => ms)))).toEqual([20, 20]);
  // After it was held up it looks again first.
  expect([held(15_000), held(60_000)]).toEqual([35, 62]);
  expect(namedAfter(() => 3_000)).toBeLessThanOrEqual(45);
  expect([4_000, 7_500, 19_000].map((ms) => Math.round(namedAfter(() => 0, ms)))).toEqual([20, 30, 40]);
});

test('ledgers of an observer add up, with each disagreement and how often a known difference was met', () => {
  const of = (came: string, known: string | null) => ({
    ...{ id: 1, sort: 'differs' as const, kind: 'PodStatus' as const, pod: 'ns/a', uid: 'u', expected: 'written the status', came },
    ...{ sinceMs: 0, settledMs: 3_400, rule: '12', known },
  });
  const ledger = {
    ...{ sinceMs: 0, expected: [], dropped: 0 },
    counts: [{ kind: 'PodStatus' as const, agreed: 5, disagreed: 1, known: 2 }],
    disagreements: [of('x', null), of('y', 'an entry')],
  };
  const sum = withLedger(withLedger(NOTHING_OBSERVED, ledger), ledger);
  expect(sum).toMatchObject({ judged: { agreed: 10, known: 4, disagreed: 2 }, known: { 'an entry': 2 } });
  expect(sum.disagreements.map(({ came, settledAfterS }) => [came, settledAfterS])).toEqual([
    ['x', 3],
    ['x', 3],
  ]);
  expect(markdownOfObserved(sum).split('\n').slice(2)).toEqual(['| PodStatus | 10 | 4 | 2 |', '| all | 10 | 4 | 2 |']);
});
