/**
 * A pod's life in the pod manager: from a UID that a source names, or that the runtime shows, until nothing of it is left. The
 * ledger keeps state and context of each pod, takes each step here, and carries the actions out in their order.
 */
import { assign, setup } from 'xstate';
import type { Pod, PodStatus } from '../../kube/types.ts';
import { isLeaving } from '../../pod/names.ts';
import { isTerminal } from '../../pod/phase.ts';
import { sameClaims } from '../../pod/resources/claims.ts';
import { podFromListed } from '../../pod/runtime/killOrder.ts';
import type { ListedPod } from '../../pod/runtime/seen.ts';
import { sameDesired } from '../../pod/sameDesired.ts';
import { EVICTED } from '../../reclaim/eviction/messages.ts';
import { type Cause, joinCauses } from '../../supervision/address.ts';
import { stepsOf } from '../../xstate/kept.ts';
import { podName, projecting } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { stands } from '../admission/judge.ts';
import type { WorkerEvent, WorkerSummary } from '../workers/messages.ts';
import {
  type Eviction,
  evictedStatus,
  evictionOf,
  isRefused,
  LIFE_STATES,
  type LifeState,
  type Refused,
  type Successor,
  type Verdict,
  verdictOf,
} from './messages.ts';
import { hasStopped, isTold, type Life, listedOf, mayBePutRight, type Named, nextOf, type Renewal, withNext } from './records.ts';

type Causes = readonly Cause[] | undefined;

/** `heard`: every source has delivered, and what it named was judged. */
export type LifeEvent =
  /** `behind`: UID of a pod of its name that it has to wait for. */
  | { type: 'life.turn'; behind: string | null; nowMs: number }
  | (Named & { type: 'life.added'; heard: boolean })
  | (Named & { type: 'life.changed' })
  /** `why`: `causes`, and that it was refused. */
  | (Named & { type: 'life.refused'; refused: Refused; why: readonly Cause[] })
  /** It cannot be read or handled, until its definition changes. */
  | (Named & { type: 'life.leftAlone'; error: string })
  /** Before what is named is judged. */
  | { type: 'life.redefined'; pod: Pod }
  | { type: 'life.reconciled'; status: PodStatus }
  | { type: 'life.removed'; causes: Causes; heard: boolean }
  /** `hurry`: a pod on its way out gets the `graceSeconds` of `eviction` at most. */
  | { type: 'life.evicted'; eviction: Eviction; causes: Causes; hurry: boolean; heard: boolean }
  /** The runtime holds it. */
  | { type: 'life.found'; listed: ListedPod; causes: readonly Cause[] }
  | { type: 'life.reported' | 'life.finished'; worker: WorkerSummary }
  | { type: 'life.quarantined'; error: string };

/** What a step asks of the ledger. `causes` and `pod`: where they are not those of the record. */
const ACTS = {
  /** A worker is to be there for it. */
  create: unprovidedAction<{ pod?: Pod }>(),
  update: unprovidedAction<{ kind: 'create' | 'update' | 'sync'; causes?: Causes }>(),
  kill: unprovidedAction<Pick<Extract<WorkerEvent, { type: 'pod.kill' }>, 'status' | 'graceOverrideSeconds'> & { causes?: Causes }>(),
  reject: unprovidedAction<Refused>(),
  /** What was said of it. */
  forget: unprovidedAction(),
  /** Its containers are garbage. */
  sweep: unprovidedAction<{ why: 'has ended' | 'was removed' }>(),
  /** Pods that wait for its name. */
  wake: unprovidedAction(),
  /** Nothing is left of it: the next life of its UID begins. */
  renew: unprovidedAction<Renewal>(),
};
export type LifeAct = { [K in keyof typeof ACTS]: { type: K; params: Parameters<(typeof ACTS)[K]>[1] } }[keyof typeof ACTS];

const running = (listed: ListedPod | null): LifeState => ({ is: 'running', listed });
const ended = (life: Life): LifeState => ({ is: 'ended', verdict: verdictOf(life) });
const leaving = (life: Life): LifeState => ({ is: 'leaving', verdict: verdictOf(life), listed: listedOf(life), next: null });
const quarantined = (verdict: Verdict | null, error: string): LifeState => ({ is: 'quarantined', verdict, error });
function failing(verdict: Verdict | null, listed: ListedPod | null): LifeState {
  if (verdict === null) throw new Error('a pod does not fail without a verdict');
  return { is: 'failing', verdict, listed, next: null };
}
function refused({ reason, message }: Refused): LifeState {
  const eviction = reason === EVICTED ? { reason, message, graceSeconds: 0 } : null;
  return { is: 'refused', verdict: { kind: 'rejected', reason, eviction } };
}
/** How a pod fails whose update this node cannot honour. */
function refusedUpdate({ reason, message }: Refused): Refused {
  return { reason, message: `Pod was rejected: ${message}` };
}
function waiting({ causes }: Life, { behind, nowMs }: Extract<LifeEvent, { type: 'life.turn' }>): WorkerSummary {
  const message = `an earlier pod of this name (uid ${behind}) is still being stopped`;
  const at = { phase: 'waiting', state: 'waiting', reason: 'WaitingForPredecessor' } as const;
  return { ...at, message, sinceMs: nowMs, containers: [], causes };
}
function successor(named: Named & { refused?: Refused }): Successor {
  return { pod: named.pod, refusal: named.refused ?? null };
}

interface Step {
  context: Life;
  event: LifeEvent;
}
/** The next life of its UID: as an event names it, or as the record has it. */
const RENEW = {
  type: 'renew',
  params: ({ context, event }: Step): Renewal => {
    const next = 'source' in event ? successor(event) : nextOf(context);
    if (next === null) throw new Error(`nothing follows life ${context.life}`);
    return { next, causes: event.type === 'life.refused' ? event.causes : context.causes };
  },
} as const;
const RUN = { type: 'enter', params: running(null) } as const;
const END = { type: 'enter', params: ({ context }: Step) => ended(context) } as const;
const LEAVE = { type: 'enter', params: ({ context }: Step) => leaving(context) } as const;
const CREATE = { type: 'create', params: {} } as const;
/** Where its source only says it again, its worker may be gone. */
const UPDATE = {
  type: 'update',
  params: ({ event: { type, causes } }: Step & { event: Named & { type: string } }) =>
    ({ kind: type === 'life.added' ? 'create' : 'update', causes }) as const,
} as const;
const KILL = { type: 'kill', params: {} } as const;

/** A source names a pod without a worker. */
const NAMED = [
  { guard: 'mayBePutRight', target: '#forgotten', actions: ['explain', 'forget', RENEW] },
  { actions: ['redefine', 'explain'] },
] as const;
type Found = Step & { event: Extract<LifeEvent, { type: 'life.found' }> };
const WIND_DOWN = { type: 'create', params: ({ event: { listed } }: Found) => ({ pod: podFromListed(listed) }) } as const;
const FOUND_AGAIN = {
  target: '#failing',
  actions: [{ type: 'enter', params: ({ context, event }: Found) => failing(verdictOf(context), event.listed) }, 'reopen', WIND_DOWN],
} as const;
/** A pod on its way out ends sooner. */
const HURRY = {
  guard: 'hurries',
  actions: {
    type: 'kill',
    params: ({ event }: Step & { event: Extract<LifeEvent, { type: 'life.evicted' }> }) => ({
      graceOverrideSeconds: event.eviction.graceSeconds,
      causes: event.causes,
    }),
  },
} as const;

export const podLifeMachine = setup({
  types: { context: {} as Life, events: {} as LifeEvent, input: {} as Life },
  actions: {
    enter: assign((_, state: LifeState) => ({ state })),
    succeed: assign(({ context, event }) => ('source' in event ? { state: withNext(context, successor(event)) } : {})),
    stay: assign(({ context }) => ({ state: withNext(context, null) })),
    redefine: assign(({ event }) => ('pod' in event ? { pod: event.pod } : {})),
    explain: assign(({ context, event }) => ('causes' in event ? { causes: joinCauses(context.causes, event.causes) } : {})),
    claim: assign(({ event }) => ('source' in event ? { source: event.source } : {})),
    report: assign(({ event }) => ('worker' in event ? { worker: event.worker } : {})),
    restate: assign(({ context: { pod }, event }) => ('status' in event ? { pod: { ...pod, status: event.status } } : {})),
    await: assign(({ context, event }) => ('behind' in event ? { worker: waiting(context, event) } : {})),
    begin: assign({ worker: null }),
    reopen: assign(({ event }) => ('causes' in event ? { worker: null, causes: event.causes ?? [] } : {})),
    ...ACTS,
  },
  guards: {
    free: ({ event }) => 'behind' in event && event.behind === null,
    deleted: ({ event }) => 'pod' in event && isLeaving(event.pod),
    heard: ({ event }) => 'heard' in event && event.heard,
    untold: ({ context, event }) => 'heard' in event && !isTold(context, event.heard),
    hurries: ({ context, event }) => 'hurry' in event && event.hurry && !isRefused(context) && isTold(context, event.heard),
    stands: ({ context, event }) => 'pod' in event && stands(context, event.pod),
    redefined: ({ context, event }) => 'pod' in event && verdictOf(context) === null && !sameDesired(context.pod, event.pod),
    mayBePutRight: ({ context }) => mayBePutRight(context),
    failed: ({ context }) => verdictOf(context) !== null,
    isUnsaid: ({ context }) => verdictOf(context) === null,
    hasStopped: ({ context, event }) => 'worker' in event && hasStopped(event.worker) && !hasStopped(context.worker),
    wasRefused: ({ context }) => isRefused(context),
    wasEvicted: ({ context }) => evictionOf(context) !== null,
    hasNext: ({ context }) => nextOf(context) !== null,
    isLast: ({ context }) => nextOf(context) === null,
    /**
     * What another says about a readiness gate may make it Ready (pod lifecycle 7.8). A phase that is final ends what runs. A claim
     * that was made for the pod lets it start.
     */
    concerns: ({ context: { pod }, event }) =>
      'status' in event &&
      ((pod.spec.readinessGates?.length ?? 0) > 0 ||
        (isTerminal(event.status.phase) && !isTerminal(pod.status.phase)) ||
        !sameClaims(pod.status, event.status)),
  },
}).createMachine({
  id: 'podLife',
  meta: projecting<Life>(({ pod, source, life, renewed }) => ({ pod: podName(pod), source, life, renewed })),
  context: ({ input }) => input,
  initial: 'seen',
  on: { 'life.reconciled': { actions: 'restate' } },
  states: {
    seen: {
      on: {
        'life.turn': [
          { guard: 'free', target: '#running', actions: [RUN, CREATE] },
          { target: '#waiting', actions: [{ type: 'enter', params: { is: 'waiting' } }, 'await'] },
        ],
        'life.refused': {
          target: '#refused',
          actions: [
            { type: 'enter', params: ({ event }) => refused(event.refused) },
            { type: 'reject', params: ({ event }) => event.refused },
          ],
        },
        'life.found': {
          target: '#leaving',
          actions: [{ type: 'enter', params: ({ event: { listed } }) => ({ is: 'leaving', listed, verdict: null, next: null }) }, CREATE],
        },
        'life.leftAlone': { target: '#quarantined', actions: { type: 'enter', params: ({ event }) => quarantined(null, event.error) } },
      },
    },
    idle: {
      meta: { message: 'idle: it has no worker' },
      initial: 'waiting',
      on: {
        'life.added': [{ guard: 'stands', actions: 'redefine' }, ...NAMED],
        'life.changed': NAMED,
        'life.removed': { target: '#forgotten', actions: ['forget', { type: 'sweep', params: { why: 'was removed' } }, 'wake'] },
        'life.refused': [
          { guard: 'wasEvicted', actions: 'redefine' },
          { target: '#forgotten', actions: RENEW },
        ],
      },
      states: {
        waiting: {
          id: 'waiting',
          meta: { message: LIFE_STATES.waiting },
          on: {
            'life.turn': [{ guard: 'free', target: '#running', actions: [RUN, 'begin', CREATE] }, { actions: 'await' }],
            // A pod that its source has deleted waits for no other. One whose source only repeats it keeps its causes.
            'life.added': [{ guard: 'deleted', target: '#running', actions: [RUN, 'redefine', 'begin', CREATE] }, { actions: 'redefine' }],
            'life.changed': {
              guard: 'deleted',
              target: '#running',
              actions: [RUN, 'redefine', 'explain', 'begin', CREATE],
            },
          },
        },
        refused: {
          id: 'refused',
          meta: { message: LIFE_STATES.refused },
          on: { 'life.added': { guard: 'wasEvicted', actions: 'redefine' }, 'life.found': FOUND_AGAIN },
        },
        ended: {
          id: 'ended',
          meta: { message: LIFE_STATES.ended },
          on: {
            'life.found': [
              { guard: 'failed', ...FOUND_AGAIN },
              { target: '#running', actions: [{ type: 'enter', params: ({ event }) => running(event.listed) }, 'reopen', WIND_DOWN] },
            ],
          },
        },
        quarantined: {
          id: 'quarantined',
          meta: { message: LIFE_STATES.quarantined },
          on: {
            'life.found': { guard: 'wasRefused', ...FOUND_AGAIN },
            'life.reported': { actions: 'report' },
            'life.finished': {
              target: '#ended',
              actions: [END, 'report', 'wake'],
            },
            'life.redefined': { guard: 'redefined', target: '#forgotten', actions: 'forget' },
            'life.leftAlone': {
              guard: 'isUnsaid',
              actions: [{ type: 'enter', params: ({ event }) => quarantined(null, event.error) }, 'redefine', 'claim', 'reopen'],
            },
          },
        },
      },
    },
    working: {
      meta: { message: 'working: it has a worker' },
      initial: 'running',
      on: {
        'life.reported': [{ guard: 'hasStopped', actions: ['report', 'wake'] }, { actions: 'report' }],
        'life.reconciled': { guard: 'concerns', actions: ['restate', { type: 'update', params: { kind: 'sync' } }] },
        'life.added': [
          { guard: 'stands', actions: ['redefine', 'stay'] },
          { guard: 'mayBePutRight', actions: ['explain', 'succeed'] },
          // Its source says it again, and its worker may be gone.
          { actions: ['redefine', 'explain', UPDATE] },
        ],
        'life.changed': [{ guard: 'mayBePutRight', actions: ['explain', 'succeed'] }, { actions: ['redefine', 'explain', UPDATE] }],
        'life.refused': [
          { guard: 'wasEvicted', actions: 'redefine' },
          { guard: 'wasRefused', actions: ['claim', 'succeed'] },
          // An update asks for what this node cannot honour: the pod fails, as it would have when it was new.
          {
            target: '#failing',
            actions: [
              {
                type: 'enter',
                params: ({ context, event }) => failing({ kind: 'refused', refusal: refusedUpdate(event.refused) }, listedOf(context)),
              },
              {
                type: 'kill',
                params: ({ event }) => ({ status: { phase: 'Failed', ...refusedUpdate(event.refused) }, causes: event.why }),
              },
            ],
          },
        ],
        'life.removed': [
          { guard: 'heard', target: '#leaving', actions: [LEAVE, 'explain', KILL] },
          { target: '#leaving', actions: [LEAVE, 'explain'] },
        ],
        'life.finished': [
          { guard: 'hasNext', target: '#forgotten', actions: ['forget', RENEW, 'wake'] },
          { target: '#ended', actions: [END, 'report', 'wake'] },
        ],
        'life.quarantined': [
          { guard: 'hasNext', target: '#forgotten', actions: ['forget', RENEW, 'wake'] },
          {
            target: '#quarantined',
            actions: [{ type: 'enter', params: ({ context, event }) => quarantined(verdictOf(context), event.error) }, 'wake'],
          },
        ],
      },
      states: {
        running: {
          id: 'running',
          meta: { message: LIFE_STATES.running },
          on: {
            'life.evicted': {
              target: '#failing',
              actions: [
                { type: 'enter', params: ({ context, event: { eviction } }) => failing({ kind: 'evicted', eviction }, listedOf(context)) },
                'explain',
                {
                  type: 'kill',
                  params: ({ event: { eviction, causes } }) => ({
                    ...{ status: evictedStatus(eviction), graceOverrideSeconds: eviction.graceSeconds, causes },
                  }),
                },
              ],
            },
          },
        },
        failing: {
          id: 'failing',
          meta: { message: LIFE_STATES.failing },
          on: { 'life.evicted': HURRY },
        },
        leaving: {
          id: 'leaving',
          meta: { message: LIFE_STATES.leaving },
          on: {
            'life.reconciled': { actions: 'restate' },
            'life.evicted': HURRY,
            'life.added': [
              { guard: 'mayBePutRight', actions: ['explain', 'succeed'] },
              // Named again before its worker was told to wind it down: it goes on.
              { guard: 'untold', target: '#running', actions: [RUN, 'claim', 'redefine', 'explain', UPDATE] },
              { actions: ['claim', 'succeed'] },
            ],
            // What would have followed changes: another definition, or none any more.
            'life.changed': [{ guard: 'hasNext', actions: 'succeed' }, {}],
            'life.removed': [{ guard: 'hasNext', actions: 'stay' }, {}],
            'life.refused': { actions: ['claim', 'succeed'] },
            'life.finished': {
              guard: 'isLast',
              target: '#forgotten',
              actions: ['forget', { type: 'sweep', params: { why: 'has ended' } }, 'wake'],
            },
            'life.quarantined': { guard: 'isLast', target: '#forgotten', actions: ['forget', 'wake'] },
          },
        },
      },
    },
    forgotten: { id: 'forgotten', type: 'final' },
  },
});

export const stepLife = stepsOf<typeof podLifeMachine, LifeAct>(podLifeMachine);
