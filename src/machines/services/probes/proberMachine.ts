/**
 * The schedule of one probe of one container, as a statechart inside the probe manager: waiting for its turn, attempting,
 * resting, held after a failure that ends the container. It lives as long as there is a running instance to probe; a new
 * instance starts it over. Side effects (attempts, events, metrics) are provided by `actors/services/probes`.
 */

import { assertEvent, assign, sendParent } from 'xstate';
import type { ProbeOutcome, ProbeResult, ProbeTarget } from '../../pod/probes/probes.ts';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { firstDelayMs, nextTickMs, periodMs, SLOT_HOLD_MS, type SlotKind, slotKind, startOf } from './schedule.ts';
import { countOutcome, endsContainer, NO_RUN, type Run, TRIES_MAX } from './threshold.ts';

export interface ProberInput {
  target: ProbeTarget;
  /** What the ledger says of this instance. */
  result: ProbeResult;
  /** In [0, 1) for an instance that ran before the probes began here; else null. */
  phase: number | null;
  /** It was seen not to run before. */
  fresh: boolean;
}
interface Context extends ProberInput {
  seenAtMs: number;
  run: Run;
  tries: number;
  /** Monotonic ms of the tick that the present attempt belongs to. */
  tickMs: number;
  triedAtMs: number;
  waitMs: number;
  /** What the last attempt came to. */
  outcome: ProbeOutcome | null;
}
type ProberEvent =
  /** The newest definition, address and gate; another container id starts over. */
  { type: 'probe.target'; target: ProbeTarget; result: ProbeResult } | { type: 'probe.granted' };

/** To the probe manager. */
export type ProberReport =
  | { type: 'probe.want'; key: string; kind: SlotKind }
  | { type: 'probe.free'; key: string }
  | { type: 'probe.result'; target: ProbeTarget; result: ProbeResult; output: string };

interface Attempted {
  target: ProbeTarget;
  outcome: ProbeOutcome;
  durationMs: number;
}

const { setup, facts } = setupWith();
const effects = setup({
  types: { context: {} as Context, events: {} as ProberEvent, input: {} as ProberInput },
  actors: { attempt: unprovided<ProbeOutcome, { target: ProbeTarget }>() },
  actions: {
    sayAttempted: unprovidedAction<Attempted>(),
  },
});

const deciding = effects.extend({
  actions: {
    startOver: assign(({ event }) => {
      assertEvent(event, 'probe.target');
      // Only an instance that ran before has a phase; whatever follows it started here.
      const begun = { phase: null, fresh: true, seenAtMs: facts().wallMs, run: NO_RUN, outcome: null };
      return { target: event.target, result: event.result, ...begun };
    }),
    take: assign(({ context, event }) => {
      assertEvent(event, 'probe.target');
      const same = JSON.stringify(event.target.probe) === JSON.stringify(context.target.probe);
      return { target: event.target, ...(same ? {} : { run: NO_RUN }) };
    }),
    planFirst: assign(({ context }) => {
      const { target, phase, fresh, seenAtMs } = context;
      const known = context.result !== 'unknown' && !(target.type === 'readiness' && context.result === 'failure');
      const waitMs = firstDelayMs({
        probe: target.probe,
        startMs: startOf(target, { atMs: seenAtMs, fresh }),
        nowMs: facts().wallMs,
        phase,
        known,
      });
      return { waitMs, phase: null };
    }),
    beginTick: assign(() => ({ tickMs: facts().monoMs, tries: 0 })),
    planNext: assign(({ context }) => {
      const nowMs = facts().monoMs;
      return { waitMs: nextTickMs(context.tickMs, nowMs, periodMs(context.target.probe)) - nowMs };
    }),
    beginTry: assign(({ context }) => ({ tries: context.tries + 1, triedAtMs: facts().monoMs })),
    want: sendParent(
      ({ context }): ProberReport => ({ type: 'probe.want', key: context.target.key, kind: slotKind(context.target.probe) }),
    ),
    free: sendParent(({ context }): ProberReport => ({ type: 'probe.free', key: context.target.key })),
    conclude: enqueuing(effects)(({ context, enqueue }, outcome: ProbeOutcome) => {
      const { target } = context;
      const { run, result } = countOutcome(context.run, outcome, target);
      const durationMs = facts().monoMs - context.triedAtMs;
      enqueue({ type: 'sayAttempted', params: { target, outcome, durationMs } });
      enqueue.assign({ run, outcome, ...(result === null ? {} : { result }) });
      if (result === null || result === context.result) return;
      enqueue.sendParent({ type: 'probe.result', target, result, output: outcome.output } satisfies ProberReport);
    }),
  },
  delays: { wait: ({ context }) => context.waitMs, slotHold: SLOT_HOLD_MS },
  guards: {
    otherInstance: ({ context, event }) => event.type === 'probe.target' && event.target.containerId !== context.target.containerId,
    gateMoved: ({ context, event }) => event.type === 'probe.target' && event.target.started !== context.target.started,
    held: ({ context }) => endsContainer(context.target.type, context.result),
    /** A startup probe is done once it has succeeded, the others begin then. */
    gated: ({ context }) => (context.target.type === 'startup') === context.target.started,
    tryAgain: ({ context }, outcome: ProbeOutcome) => outcome.kind === 'error' && context.tries < TRIES_MAX,
  },
});

export const proberMachine = deciding.createMachine({
  id: 'prober',
  meta: projecting<Context>(({ target, result, run, tries, waitMs, outcome }) => ({
    ...{ pod: `${target.pod.namespace}/${target.pod.name}`, container: target.container.name, type: target.type },
    ...{ result: result ?? null, last: run.last, inRow: run.length, tries, waitMs },
    // What a probe printed is the container's own.
    outcome: outcome?.kind ?? null,
  })),
  options: { maxIterations: 1000 },
  context: ({ input }) => ({
    ...input,
    seenAtMs: facts().wallMs,
    run: NO_RUN,
    tries: 0,
    tickMs: 0,
    triedAtMs: 0,
    waitMs: 0,
    outcome: null,
  }),
  initial: 'judging',
  on: {
    'probe.target': [
      { guard: 'otherInstance', target: '.judging', reenter: true, actions: ['startOver'] },
      { guard: 'gateMoved', target: '.judging', reenter: true, actions: ['take'] },
      { actions: ['take'] },
    ],
  },
  states: {
    judging: {
      always: [{ guard: 'held', target: 'held' }, { guard: 'gated', target: 'gated' }, { target: 'delaying' }],
    },
    held: { meta: { reason: 'Failed', message: 'it failed; nothing is probed until the container was replaced' } },
    gated: { meta: { reason: 'Gated', message: 'a startup probe that has succeeded, or another that waits for it to' } },
    delaying: {
      meta: { reason: 'InitialDelay', message: 'the first attempt is not due yet' },
      entry: ['planFirst'],
      after: { wait: { target: 'attempting' } },
    },
    attempting: {
      entry: ['beginTick'],
      exit: ['free'],
      initial: 'queued',
      states: {
        queued: {
          meta: { reason: 'Queued', message: 'as many probes as are allowed at once are under way' },
          entry: ['want'],
          on: { 'probe.granted': { target: 'probing' } },
        },
        probing: {
          meta: { reason: 'Probing', message: 'waiting for the answer' },
          entry: ['beginTry'],
          after: { slotHold: { actions: ['free'] } },
          invoke: {
            src: 'attempt',
            input: ({ context: { target } }) => ({ target }),
            onDone: [
              { guard: { type: 'tryAgain', params: ({ event }) => event.output }, target: 'probing', reenter: true },
              { target: '#prober.resting', actions: [{ type: 'conclude', params: ({ event }) => event.output }] },
            ],
            onError: {
              target: '#prober.resting',
              actions: [{ type: 'conclude', params: ({ event }) => ({ kind: 'error' as const, output: messageOf(event.error) }) }],
            },
          },
        },
      },
    },
    resting: {
      meta: { reason: 'Waiting', message: 'until the next tick of its period' },
      entry: ['planNext'],
      always: [{ guard: 'held', target: 'held' }],
      after: { wait: { target: 'attempting' } },
    },
  },
});
