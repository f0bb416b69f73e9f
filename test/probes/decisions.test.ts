/** The tables of probes, row by row: thresholds, the ledger of results, schedules, slots, what is carried over a restart. */
import { describe, expect, it } from 'vitest';
import type { ContainerProbes, ProbeLedger, ProbeOutcome, ProbeType } from '../../src/machines/pod/probes/probes.ts';
import { fromCheckpoint, toCheckpoint } from '../../src/machines/services/probes/carried.ts';
import {
  firstDelayMs,
  freeSlots,
  isResumed,
  NO_SLOTS,
  phaseOf,
  SLOTS_MAX,
  startOf,
  wantSlot,
} from '../../src/machines/services/probes/schedule.ts';
import { lookedAt, probeVerdicts, targetsOf, withoutPods, withResult } from '../../src/machines/services/probes/state.ts';
import { countOutcome, NO_RUN, type Run } from '../../src/machines/services/probes/threshold.ts';
import { container, observed, pod, rc, sidecar } from '../machines/pods/fixtures.ts';
import { EXEC, facts, STARTED_MS, target } from './fixtures.ts';

/** `s` success, `w` warning, `f` failure, `e` error; answers with one letter per outcome, `.` where nothing was concluded. */
function row(type: ProbeType, thresholds: { successThreshold?: number; failureThreshold?: number }, outcomes: string): string {
  const kinds: Record<string, ProbeOutcome['kind']> = { s: 'success', w: 'warning', f: 'failure', e: 'error' };
  let run: Run = NO_RUN;
  return [...outcomes]
    .map((o) => {
      const next = countOutcome(run, { kind: kinds[o] ?? 'error', output: '' }, { probe: { ...EXEC, ...thresholds }, type });
      run = next.run;
      return next.result === null ? '.' : next.result.charAt(0);
    })
    .join('');
}

describe('thresholds', () => {
  it.each<[string, ProbeType, object, string, string]>([
    ['errors alone conclude nothing', 'liveness', { failureThreshold: 1 }, 'eeeee', '.....'],
    ['a zero means the default', 'readiness', { failureThreshold: 0, successThreshold: 0 }, 'sfff', 's..f'],
  ])('%s', (_, type, thresholds, outcomes, results) => {
    expect(row(type, thresholds, outcomes)).toBe(results);
  });
});

const ALL = { startupProbe: EXEC, readinessProbe: EXEC, livenessProbe: EXEC };
const entry = (more: Partial<ContainerProbes>): ContainerProbes => ({ uid: 'uid-1', container: 'web', ...more });
const INITIAL = entry({ startup: 'unknown', readiness: 'failure', liveness: 'success' });

describe('the ledger', () => {
  it('begins a new instance with failure for readiness, success for liveness and unknown for startup', () => {
    expect([...lookedAt(new Map(), facts(ALL))]).toEqual([['web-1', INITIAL]]);
    expect(lookedAt(new Map(), facts({ readinessProbe: EXEC })).get('web-1')).toEqual(entry({ readiness: 'failure' }));
    expect(lookedAt(new Map(), facts({})).size).toBe(0);
  });

  it('is the same object when nothing changed', () => {
    const ledger = lookedAt(new Map(), facts(ALL));
    expect(lookedAt(ledger, facts(ALL))).toBe(ledger);
  });

  it('drops the instance before, and what runs no more, and what is over', () => {
    const ledger = withResult(lookedAt(new Map(), facts(ALL)), { containerId: 'web-1', type: 'readiness', result: 'success' });
    expect([...lookedAt(ledger, facts(ALL, { id: 'web-2' }))]).toEqual([['web-2', INITIAL]]);
    expect(lookedAt(ledger, facts(ALL, { running: false })).size).toBe(0);
    expect(lookedAt(ledger, facts(ALL, { phase: 'Failed' })).size).toBe(0);
    expect(withoutPods(ledger, new Set(['uid-1'])).size).toBe(0);
    expect(withoutPods(ledger, new Set(['uid-2']))).toBe(ledger);
  });

  it('leaves other pods alone', () => {
    const other: ProbeLedger = new Map([['x', { uid: 'uid-9', container: 'x', readiness: 'success' }]]);
    expect(lookedAt(other, facts(ALL)).get('x')).toEqual(other.get('x'));
  });

  it('counts as passed what could only have ended a container of a pod that is being stopped; readiness goes on', () => {
    const failed = new Map([['web-1', entry({ startup: 'unknown', readiness: 'success', liveness: 'failure' })]]);
    const ledger = lookedAt(failed, facts(ALL, { terminating: true }));
    expect(ledger.get('web-1')).toEqual(entry({ startup: 'success', readiness: 'success', liveness: 'success' }));
    expect(targetsOf(ledger, facts(ALL, { terminating: true })).map((t) => t.type)).toEqual(['readiness']);
  });

  it('takes a result of an instance that is not in it any more for nothing', () => {
    const ledger = lookedAt(new Map(), facts(ALL));
    expect(withResult(ledger, { containerId: 'web-0', type: 'readiness', result: 'success' })).toBe(ledger);
    expect(withResult(ledger, { containerId: 'web-1', type: 'readiness', result: 'failure' })).toBe(ledger);
  });

  it('gives targets that wait for the startup probe, and none for ordinary init containers', () => {
    const f = facts(ALL);
    f.pod.spec.initContainers = [container('setup', ALL), sidecar('mesh', { readinessProbe: EXEC })];
    const running = { ...f.status.containerStatuses?.[0], state: { running: { startedAt: '2024-05-01T10:00:00Z' } } };
    f.status.initContainerStatuses = ['setup', 'mesh'].map((name) => ({
      ...running,
      name,
      containerID: `containerd://${name}-1`,
    })) as never;
    const shape = (ledger: ProbeLedger) => targetsOf(ledger, f).map((t) => `${t.key} ${t.fieldPath} ${t.containerId} ${t.started}`);
    const ledger = lookedAt(new Map(), f);
    expect(shape(ledger)).toEqual([
      'uid-1/mesh/readiness spec.initContainers{mesh} mesh-1 true',
      'uid-1/web/startup spec.containers{web} web-1 false',
      'uid-1/web/readiness spec.containers{web} web-1 false',
      'uid-1/web/liveness spec.containers{web} web-1 false',
    ]);
    const up = withResult(ledger, { containerId: 'web-1', type: 'startup', result: 'success' });
    expect(targetsOf(up, f).every((t) => t.started)).toBe(true);
  });
});

describe('what the results mean', () => {
  const status = observed([rc('web', 'running')]);
  const verdicts = (spec: object, ledger: [string, ContainerProbes][]) => {
    const v = probeVerdicts(pod({ containers: [container('web', spec)] }), status, new Map(ledger));
    return {
      started: v.started.get('web-1'),
      ready: v.ready.get('web-1'),
      liveness: v.liveness.get('web-1'),
      startup: v.startup.get('web-1'),
    };
  };
  it.each([
    ['no probes', {}, [], {}],
    ['no result yet', ALL, [], { started: false, ready: false, liveness: 'success', startup: 'unknown' }],
    [
      'results',
      ALL,
      [['web-1', entry({ startup: 'success', readiness: 'success', liveness: 'failure' })]],
      { started: true, ready: true, liveness: 'failure', startup: 'success' },
    ],
    [
      'of another instance',
      ALL,
      [['web-0', entry({ startup: 'success', readiness: 'success' })]],
      { started: false, ready: false, liveness: 'success', startup: 'unknown' },
    ],
  ] as [string, object, [string, ContainerProbes][], object][])('%s', (_, spec, ledger, expected) => {
    expect(verdicts(spec, ledger)).toEqual({ started: undefined, ready: undefined, liveness: undefined, startup: undefined, ...expected });
  });

  it('nothing is said of what does not run', () => {
    const v = probeVerdicts(pod({ containers: [container('web', ALL)] }), observed([rc('web', 'exited')]), new Map());
    expect([v.started.size, v.ready.size, v.liveness.size, v.startup.size]).toEqual([0, 0, 0, 0]);
  });
});

describe('the schedule', () => {
  const probe = { ...EXEC, periodSeconds: 10, initialDelaySeconds: 5 };
  it('counts the initial delay from the start of the container, as exactly as that is known', () => {
    const seen = (atMs: number, fresh = false) => ({ atMs, fresh });
    expect(startOf({ startedAtMs: STARTED_MS }, seen(STARTED_MS + 300))).toBe(STARTED_MS + 300);
    expect(startOf({ startedAtMs: STARTED_MS }, seen(STARTED_MS + 60_000))).toBe(STARTED_MS + 999);
    expect(startOf({ startedAtMs: STARTED_MS }, seen(STARTED_MS - 60_000))).toBe(STARTED_MS);
    expect(startOf({ startedAtMs: STARTED_MS - 18_000_000 }, seen(STARTED_MS, true)), 'a clock that is behind').toBe(STARTED_MS - 5_000);
    const at = (nowMs: number) => firstDelayMs({ probe, startMs: STARTED_MS, nowMs, phase: null, known: false });
    expect([at(STARTED_MS), at(STARTED_MS + 2_000), at(STARTED_MS + 9_000)]).toEqual([5_000, 3_000, 0]);
    expect(at(STARTED_MS - 3_600_000), 'a clock that was set back').toBe(5_000);
  });

  it('spreads what ran before over a period, or over a second where nothing is known of it', () => {
    const first = (phase: number, known: boolean) => firstDelayMs({ probe, startMs: 0, nowMs: STARTED_MS, phase, known });
    expect([first(0, true), first(0.5, true), first(0.5, false)]).toEqual([0, 5_000, 500]);
    expect(isResumed({ startedAtMs: STARTED_MS }, STARTED_MS + 1_000)).toBe(true);
    expect(isResumed({ startedAtMs: STARTED_MS }, STARTED_MS + 500)).toBe(false);
    expect(phaseOf('00000000000000000000000000000000')).toBe(0);
    expect(phaseOf('80000000000000000000000000000000')).toBe(0.5);
    expect(phaseOf('ffffffffffffffffffffffffffffffff')).toBeLessThan(1);
  });
});

describe('slots', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);
  it('are given in order, up to the limit of their kind', () => {
    let slots = NO_SLOTS;
    const granted: string[] = [];
    for (const key of many(SLOTS_MAX.exec + 2)) {
      const next = wantSlot(slots, key, 'exec');
      slots = next.slots;
      granted.push(...next.granted);
    }
    expect(granted).toEqual(many(SLOTS_MAX.exec));
    expect(wantSlot(slots, 'other', 'net').granted, 'another kind has slots of its own').toEqual(['other']);
    const freed = freeSlots(slots, ['k3', 'k0']);
    expect(freed.granted).toEqual([`k${SLOTS_MAX.exec}`, `k${SLOTS_MAX.exec + 1}`]);
    expect(freeSlots(freed.slots, ['nobody'])).toEqual({ slots: freed.slots, granted: [] });
  });

  it('are not lost to one who gave up waiting', () => {
    let slots = NO_SLOTS;
    for (const key of many(SLOTS_MAX.exec + 1)) slots = wantSlot(slots, key, 'exec').slots;
    slots = freeSlots(slots, [`k${SLOTS_MAX.exec}`]).slots;
    expect(freeSlots(slots, many(SLOTS_MAX.exec)).slots).toEqual(NO_SLOTS);
  });
});

describe('the checkpoint', () => {
  it('returns what was put', () => {
    const ledger: ProbeLedger = new Map([['web-1', entry({ startup: 'success', readiness: 'success', liveness: 'failure' })]]);
    expect(fromCheckpoint(JSON.parse(JSON.stringify(toCheckpoint(ledger))))).toEqual(ledger);
  });
  it('leaves out what it cannot read', () => {
    expect(fromCheckpoint(null).size).toBe(0);
    expect(fromCheckpoint({ containers: [] }).size).toBe(0);
    expect(
      fromCheckpoint({
        containers: { a: 1, b: { uid: 2, container: 'x' }, c: { uid: 'u', container: 'x', readiness: 'maybe', liveness: 'success' } },
      }),
    ).toEqual(new Map([['c', { uid: 'u', container: 'x', liveness: 'success' }]]));
  });
});

it('a target carries the address and the definition', () => {
  expect(targetsOf(lookedAt(new Map(), facts({ readinessProbe: EXEC })), facts({ readinessProbe: EXEC }))).toEqual([
    { ...target(EXEC), container: facts({ readinessProbe: EXEC }).pod.spec.containers[0] },
  ]);
});
