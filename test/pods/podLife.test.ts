/** A pod's life: the pod manager makes the transitions of the table and no others, and the document draws that table. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Pod } from '../../src/machines/kube/types.ts';
import { LEFT_ALONE_ANNOTATION, shellOf } from '../../src/machines/pod/setAside.ts';
import { LIFE_STEPS_MAX, LIFE_TRANSITIONS, lifeChart, lifeStateId, lifeTransitionsOf } from '../../src/machines/pods/manager/life.ts';
import { LIFE_STATES, type PodManagerEvent, type PodRecord } from '../../src/machines/pods/manager/messages.ts';
import { emptyLedger, type Facts, type PodLedger } from '../../src/machines/pods/manager/records.ts';
import { step } from '../../src/machines/pods/manager/step.ts';
import type { WorkerPhase } from '../../src/machines/pods/workers/messages.ts';
import { type SimRng, simRng } from '../../src/sim/world/rng.ts';
import { managerFacts, refusable } from './managerFacts.ts';

const PAGE = join(import.meta.dirname, '../../docs/architecture/pod-flow.md');
const WALKS = 4_000;
const STEPS = 25;
const UIDS = ['a', 'b', 'c'] as const;

function oneOf<T>(rng: SimRng, first: T, ...others: T[]): T {
  return rng.pick([first, ...others]) ?? first;
}

const TABLE = LIFE_TRANSITIONS.map(([from, to]) => `${from} --> ${to}`);

/** `a` and `b` have one name. */
function pod(uid: string, rng: SimRng): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid === 'c' ? 'other' : 'web', namespace: 'default', uid },
    spec: { containers: [{ name: 'c', image: oneOf(rng, 'one', 'two') }], restartPolicy: 'Always' },
    status: { phase: 'Pending' },
  };
}

function someEvent(ledger: PodLedger, rng: SimRng): PodManagerEvent {
  const uid = oneOf<string>(rng, ...UIDS);
  const source = oneOf(rng, 'file' as const, 'http' as const);
  const state = (phase: WorkerPhase) => ({ phase, state: phase, reason: '', message: '', sinceMs: 0, containers: [], causes: [] });
  const one = { source, pods: [pod(uid, rng)], first: true };
  return oneOf<() => PodManagerEvent>(
    rng,
    () => ({ type: 'pods.op', op: 'ADD', ...one }),
    () => ({ type: 'pods.op', op: 'UPDATE', ...one }),
    () => ({ type: 'pods.op', op: 'REMOVE', ...one }),
    () => ({ type: 'pods.op', op: oneOf(rng, 'ADD', 'UPDATE'), ...one, pods: [refusable(pod(uid, rng))] }),
    () => ({ type: 'pods.op', op: 'ADD', ...one, pods: [shellOf(pod(uid, rng), 'it cannot be read', LEFT_ALONE_ANNOTATION)] }),
    () => ({ type: 'pods.orphan', listed: { uid, name: 'web', namespace: 'default', sandboxes: [], containers: [] }, epoch: 1 }),
    () => ({ type: 'pods.evict', uid, eviction: { reason: 'Evicted', message: '', graceSeconds: 1 }, hurry: rng.chance(0.5) }),
    () => ({ type: 'pods.quarantined', uid, error: 'kept failing', epoch: 1 }),
    () => ({ type: 'worker.state', uid, life: ledger.records.get(uid)?.life ?? 0, state: state('terminating') }),
    () => ({ type: 'worker.state', uid, life: ledger.records.get(uid)?.life ?? 0, state: state('finished') }),
  )();
}

/** At times the node is under pressure, and then it has no room for what comes. */
function someFacts(wallMs: number, rng: SimRng): Facts {
  return managerFacts({ wallMs, pressures: rng.chance(0.2) ? ['DiskPressure'] : [] });
}

/** What became of one record. A UID that begins another life ends one. */
function taken(before: PodRecord | undefined, after: PodRecord | undefined): string[] {
  const [from, to] = [before?.state?.is ?? '[*]', after?.state?.is ?? '[*]'];
  if (before === undefined || after === undefined || before.life === after.life) return from === to ? [] : [`${from} --> ${to}`];
  return [`${from} --> [*]`, `[*] --> ${to}`];
}

function walked(): Set<string> {
  const rng = simRng('chart');
  const found = new Set<string>();
  for (let walk = 0; walk < WALKS; walk++) {
    let ledger = emptyLedger(['file', 'http']);
    for (let i = 0; i < STEPS; i++) {
      const { records } = ledger;
      ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng)));
      for (const uid of UIDS) for (const edge of taken(records.get(uid), ledger.records.get(uid))) found.add(edge);
    }
  }
  return found;
}

it('makes the transitions of the table, and no others', () => {
  expect([...walked()].sort()).toEqual([...TABLE].sort());
});

it('is drawn in the document as in the table', () => {
  const lines = LIFE_TRANSITIONS.map(([from, to, when]) => `  ${from} --> ${to}: ${when}`);
  expect(readFileSync(PAGE, 'utf8')).toContain(['```mermaid', 'stateDiagram-v2', ...lines, '```'].join('\n'));
});

it('is a chart with each state and each transition of the table', () => {
  const { root } = lifeChart();
  const ids = new Set(root.states.map(({ id }) => id));
  const transitions = root.states.flatMap((s) => s.transitions);
  expect([...ids]).toEqual(expect.arrayContaining(Object.keys(LIFE_STATES).map(lifeStateId)));
  expect(ids.has(root.initial)).toBe(true);
  expect(transitions.map(({ id }) => id).sort()).toEqual([...TABLE].sort());
  expect(transitions.flatMap(({ targets }) => targets).filter((id) => !ids.has(id))).toEqual([]);
});

it('remembers the way of the present life: where it is, by transitions of the table, so many at most', () => {
  const rng = simRng('way');
  let ledger = emptyLedger(['file', 'http']);
  let longest = 0;
  for (let i = 0; i < WALKS; i++) {
    ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng)));
    for (const { state, way } of ledger.records.values()) {
      expect(way.at(-1)?.is).toBe(state.is);
      longest = Math.max(longest, way.length);
      const steps = lifeTransitionsOf(way);
      expect((way.length < LIFE_STEPS_MAX ? steps : steps.slice(1)).filter((id) => !TABLE.includes(id))).toEqual([]);
    }
  }
  expect(longest).toBeGreaterThan(2);
  expect(longest).toBeLessThanOrEqual(LIFE_STEPS_MAX);
});

it('tells readers of the view what follows from the state', () => {
  const rng = simRng('view');
  let ledger = emptyLedger(['file', 'http']);
  for (let i = 0; i < WALKS; i++) {
    ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng)));
    for (const { state, removed, rejected, refusal, eviction, worker } of ledger.records.values()) {
      expect(removed).toBe(state.is === 'leaving');
      expect([rejected, refusal !== null, eviction !== null && !rejected].filter(Boolean).length).toBeLessThanOrEqual(1);
      if (state.is === 'waiting' || state.is === 'running') expect([rejected, refusal, eviction]).toEqual([false, null, null]);
      if (state.is === 'refused') expect([rejected, worker]).toEqual([true, null]);
      if (state.is === 'ended') expect(worker?.phase).toBe('finished');
    }
  }
});
