/** A pod's life: the pod manager takes each edge of the machine, a record names the state that the machine is in, and the document draws it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { coverageMeter, coverageOf } from '@actorlet/sim/src/coverage.ts';
import { type SimRng, simRng } from '@actorlet/world/src/rng.ts';
import { expect, it } from 'vitest';
import { type ChartState, chartOf } from '../../src/machines/chart/definition.ts';
import { mermaidOf } from '../../src/machines/chart/export.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { LEFT_ALONE_ANNOTATION, shellOf } from '../../src/machines/pod/setAside.ts';
import {
  evictionOf,
  isRefused,
  isWanted,
  LIFE_STATES,
  LIFE_STEPS_MAX,
  type PodManagerEvent,
  refusalOf,
} from '../../src/machines/pods/manager/messages.ts';
import { podLifeMachine } from '../../src/machines/pods/manager/podLifeMachine.ts';
import { emptyLedger, type Facts, type PodLedger } from '../../src/machines/pods/manager/records.ts';
import { step } from '../../src/machines/pods/manager/step.ts';
import type { WorkerPhase } from '../../src/machines/pods/workers/messages.ts';
import { managerFacts, refusable } from './managerFacts.ts';

const PAGE = join(import.meta.dirname, '../../docs/architecture/pod-flow.md');
const WALKS = 1_500;
const STEPS = 25;
const UIDS = ['a', 'b', 'c'] as const;

function oneOf<T>(rng: SimRng, first: T, ...others: T[]): T {
  return rng.pick([first, ...others]) ?? first;
}

const CHART = chartOf(podLifeMachine);
const STATES = new Map(CHART === null ? [] : below(CHART.root).map((s) => [s.id, s]));
const EDGES = new Map([...STATES.values()].flatMap((s) => s.transitions.filter((t) => t.targets.length > 0).map((t) => [t.id, t])));

function below(state: ChartState): ChartState[] {
  return [state, ...state.states.flatMap(below)];
}

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

function deleted(p: Pod): Pod {
  return { ...p, metadata: { ...p.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
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
    () => ({ type: 'pods.op', op: oneOf(rng, 'ADD', 'UPDATE'), ...one, pods: [deleted(pod(uid, rng))] }),
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

it('takes each edge of the machine', () => {
  const rng = simRng('chart');
  const meter = coverageMeter();
  for (let walk = 0; walk < WALKS; walk++) {
    let ledger = emptyLedger(['file', 'http']);
    for (let i = 0; i < STEPS; i++) ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng), meter.see));
  }
  expect(coverageOf(meter.result())).toEqual([{ machine: 'podLife', taken: EDGES.size, total: EDGES.size, missing: [] }]);
});

it('is drawn in the document as the machine is', () => {
  if (CHART === null) throw new Error('it has no chart');
  expect(readFileSync(PAGE, 'utf8')).toContain(['```mermaid', ...mermaidOf(CHART), '```'].join('\n'));
});

it('has a state of the machine for each that a record names', () => {
  for (const [is, message] of Object.entries(LIFE_STATES)) expect(STATES.get(is)).toMatchObject({ message, states: [] });
});

/** Whose transition it is. */
function stateOf(edge: string): ChartState {
  const state = [...STATES.values()].find((s) => s.transitions.some((t) => t.id === edge));
  if (state === undefined) throw new Error(`${edge} is of no state`);
  return state;
}

it('remembers the way of the present life: where it is, by transitions of the machine, so many at most', () => {
  const rng = simRng('way');
  let ledger = emptyLedger(['file', 'http']);
  let longest = 0;
  for (let i = 0; i < WALKS; i++) {
    ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng)));
    for (const { state, way } of ledger.records.values()) {
      expect(way.at(-1)?.is).toBe(state.is);
      longest = Math.max(longest, way.length);
      // Of the first that is remembered of a long way, the one before it is not.
      for (const [n, { is, by }] of way.entries()) {
        const edge = EDGES.get(by);
        expect(edge?.targets).toEqual([is]);
        const before = way[n - 1]?.is ?? (way.length < LIFE_STEPS_MAX ? 'podLife.seen' : null);
        if (before !== null) expect(below(stateOf(by)).map(({ id }) => id)).toContain(before);
      }
    }
  }
  expect(longest).toBeGreaterThan(2);
  expect(longest).toBeLessThanOrEqual(LIFE_STEPS_MAX);
});

it('answers what readers ask of a record by its state', () => {
  const rng = simRng('view');
  let ledger = emptyLedger(['file', 'http']);
  for (let i = 0; i < WALKS; i++) {
    ({ ledger } = step(ledger, someEvent(ledger, rng), someFacts(i, rng)));
    for (const record of ledger.records.values()) {
      const { state, worker } = record;
      const verdicts = [isRefused(record), refusalOf(record) !== null, evictionOf(record) !== null && !isRefused(record)];
      expect(isWanted(record)).toBe(state.is !== 'leaving');
      expect(verdicts.filter(Boolean).length).toBeLessThanOrEqual(1);
      if (state.is === 'waiting' || state.is === 'running') expect(verdicts).toEqual([false, false, false]);
      if (state.is === 'refused') expect([isRefused(record), worker]).toEqual([true, null]);
      if (state.is === 'ended') expect(worker?.phase).toBe('finished');
    }
  }
});
