/**
 * The life of one volume of one pod: set up, kept up to date, taken down. One operation at a time, none of them is cut
 * short; what is wanted may change meanwhile and is looked at when it ends. Each wait has a reason and a back-off.
 */

import { assign, sendParent } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { kindOf, type VolumeSource } from '../../pod/volumes/kinds.ts';
import type { Stand, VolumeRef } from '../../pod/volumes/volumePaths.ts';
import { type PodVolume, redefined, refreshes } from '../../pod/volumes/volumes.ts';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { isClaimProblem } from './claims.ts';

/** Back-off of failed volume operations (resources and volumes 8.1). */
const VOLUME_BACKOFF = { minMs: 500, maxMs: 122_000, factor: 2 } as const;
/** The kubelet asks for a claim that is not there, or not bound, at each sync of its pod: 12 times in 150 s. */
const CLAIM_WAIT_MS_MAX = 13_000;

export interface GrowJob {
  volume: PodVolume;
  pod: Pod;
}
/** `fixed`: it cannot grow while it stands here, so no look follows. */
export type GrowthOutcome = { kind: 'looked'; fixed: boolean } | { kind: 'failed'; message: string };

export interface SetUpJob {
  volume: PodVolume;
  pod: Pod;
  /** It was never mounted by this daemon: what a failure leaves half made is taken away again. */
  first: boolean;
}
/** Where a volume stands, where that does not follow from its name. */
export interface SetUpDone {
  at: string;
  /** What a claim's volume is called on disk. */
  stands?: Stand;
  /** No container can write it, whatever its mount says. */
  readOnly: boolean;
  /** It is a device, or a link to one. */
  device: boolean;
  /** Its driver wants it set up again at each refresh. */
  republish: boolean;
  /** Absent: the runtime may label its files. False: they have a label, or cannot be given one. */
  labelled?: false;
}

/** `mounted` is set up as wanted; `stale` is set up, and its last refresh failed; `uncertain` was found on disk. */
export type VolumePhase = 'mounting' | 'mounted' | 'stale' | 'failed' | 'uncertain' | 'unmounting' | 'unmountFailed' | 'gone';

export interface VolumeInput {
  ref: VolumeRef;
  /** Null: found on disk by a daemon that does not know yet whether anybody wants it. */
  job: { volume: PodVolume; pod: Pod } | null;
}
export interface VolumeContext {
  ref: VolumeRef;
  job: { volume: PodVolume; pod: Pod } | null;
  wanted: boolean;
  /** The definition or what it draws on may have changed while an operation was under way. */
  again: boolean;
  everMounted: boolean;
  /** The last setting up that succeeded. */
  done: SetUpDone | null;
  attempts: number;
  error: string;
  waitMs: number;
  /** It stands, and does not grow until it is set up anew. */
  fixed: boolean;
}
export type VolumeEvent =
  | { type: 'volume.want'; volume: PodVolume; pod: Pod }
  /** `changed`: what its files are made of is another than before. */
  | { type: 'volume.refresh'; volume: PodVolume; pod: Pod; changed?: boolean }
  /** Something that was missing may be there now. */
  | { type: 'volume.retry' }
  /** Its pod is synced: time to see whether its claim has grown. */
  | { type: 'volume.look' }
  | { type: 'volume.unwant' };
export interface VolumeChanged {
  type: 'volume.changed';
  key: string;
  phase: VolumePhase;
  error: string;
  done: SetUpDone | null;
}

const keyOf = (ref: VolumeRef): string => `${ref.uid}/${ref.plugin}/${ref.name}`;

/** There is something to do at a refresh. */
function renews(context: VolumeContext, source: VolumeSource): boolean {
  return refreshes(source) || context.done?.republish === true;
}

function jobOf(context: VolumeContext): { job: SetUpJob } {
  if (context.job === null) throw new Error(`volume ${keyOf(context.ref)}: set up without a definition`);
  return { job: { ...context.job, first: !context.everMounted } };
}
function growJobOf(context: VolumeContext): { job: GrowJob } {
  const { volume, pod } = jobOf(context).job;
  return { job: { volume, pod } };
}
const error = (context: VolumeContext): string => context.error;
function failedMount(context: VolumeContext): { pod: Pod; volume: PodVolume; message: string } {
  const { pod, volume } = jobOf(context).job;
  return { pod, volume, message: context.error };
}

const LOOKED = { type: 'noteLook', params: ({ event }: { event: { output: GrowthOutcome } }) => ({ outcome: event.output }) } as const;
const MOUNTED = { type: 'noteMounted', params: ({ event }: { event: { output: SetUpDone | null } }) => ({ done: event.output }) } as const;
/** Its pod went while it was set up. */
const UNWANTED = { guard: 'unwanted', target: 'unmounting', actions: ['beginAnew'] } as const;
/** Its pod came while it was taken down. */
const WANTED = { guard: 'wanted', target: 'mounting', actions: ['beginAnew'] } as const;
const failed = <const State extends string>(target: State) =>
  ({ target, actions: [{ type: 'noteFailure', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) }] }) as const;
/** The volume is being worked on: it looks afterwards at what came. */
const BUSY = {
  'volume.want': { actions: ['take', 'later'] },
  'volume.refresh': { actions: ['take', 'later'] },
  'volume.unwant': { actions: ['unwant'] },
} as const;
const LET_GO = { target: 'unmounting', actions: ['unwant', 'beginAnew'] } as const;
/** A failed set-up is tried again after a wait, or when its sources changed: what it lacked may be there then. */
const failedSetUp = <const Again extends string>(again: Again, phase: VolumePhase) =>
  ({
    entry: [
      { type: 'sayMountFailed', params: ({ context }: { context: VolumeContext }) => failedMount(context) },
      { type: 'tell', params: { phase } },
    ],
    after: { wait: { target: again } },
    on: {
      'volume.want': { actions: ['take'] },
      'volume.refresh': [{ guard: 'sourceChanged', target: again, actions: ['take', 'beginAnew'] }, { actions: ['take'] }],
      'volume.unwant': LET_GO,
    },
  }) as const;
/** Nothing is being done with it. */
const STANDS = {
  'volume.want': [{ guard: 'changed', target: 'refreshing', actions: ['take'] }, { actions: ['take'] }],
  'volume.refresh': { guard: 'refreshes', target: 'refreshing', actions: ['take'] },
  'volume.unwant': LET_GO,
} as const;

const { setup, facts } = setupWith();

export const volumeMachine = setup({
  types: { context: {} as VolumeContext, events: {} as VolumeEvent, input: {} as VolumeInput },
  actors: {
    /** Does nothing where nothing is to be done: it is repeated at each refresh and after each restart. */
    setUp: unprovided<SetUpDone | null, { job: SetUpJob }>(),
    /** May be given up at any time: a call of a driver goes on, and taking down waits for it. */
    grow: unprovided<GrowthOutcome, { job: GrowJob }>(),
    /** Succeeds where there is nothing left. */
    tearDown: unprovided<void, { ref: VolumeRef }>(),
  },
  actions: {
    tell: sendParent(
      ({ context }, params: { phase: VolumePhase }): VolumeChanged => ({
        type: 'volume.changed',
        key: keyOf(context.ref),
        phase: params.phase,
        error: context.error,
        done: context.done,
      }),
    ),
    take: assign(({ context, event }) => {
      if (event.type !== 'volume.want' && event.type !== 'volume.refresh') return {};
      return { job: { volume: event.volume, pod: event.pod }, wanted: context.wanted || event.type === 'volume.want' };
    }),
    unwant: assign({ wanted: false }),
    later: assign({ again: true }),
    /** Another operation than the one that failed is not held back for it (trap 46). */
    beginAnew: assign({ attempts: 0, error: '' }),
    clearAgain: assign({ again: false }),
    noteMounted: assign((_, params: { done: SetUpDone | null }) => ({
      everMounted: true,
      attempts: 0,
      error: '',
      done: params.done,
    })),
    noteFailure: assign(({ context }, params: { error: unknown }) => ({
      error: messageOf(params.error),
      attempts: context.attempts + 1,
      waitMs:
        Math.min(
          VOLUME_BACKOFF.minMs * VOLUME_BACKOFF.factor ** Math.min(context.attempts, 16),
          isClaimProblem(messageOf(params.error)) ? CLAIM_WAIT_MS_MAX : VOLUME_BACKOFF.maxMs,
        ) *
        (1 + 0.1 * facts().random),
    })),
    noteLook: assign((_, { outcome }: { outcome: GrowthOutcome }) => ({
      attempts: 0,
      error: '',
      fixed: outcome.kind === 'looked' && outcome.fixed,
    })),
    sayGrowthFailed: unprovidedAction<{ pod: Pod; message: string }>(),
    sayMountFailed: unprovidedAction<{ pod: Pod; volume: PodVolume; message: string }>(),
    sayTearDownFailed: unprovidedAction<{ ref: VolumeRef; message: string }>(),
  },
  delays: { wait: ({ context }) => context.waitMs },
  guards: {
    found: ({ context }) => context.job === null,
    wanted: ({ context }) => context.wanted,
    unwanted: ({ context }) => !context.wanted,
    /** One that its driver refreshes is compared with its claim then. */
    grows: ({ context: { fixed, job, done } }) =>
      !fixed && done?.republish !== true && job !== null && kindOf(job.volume.source).grows?.(job.volume.source) === true,
    growthFailed: (_, { outcome }: { outcome: GrowthOutcome }) => outcome.kind === 'failed',
    askedAgain: ({ context }) => context.again && context.job !== null && renews(context, context.job.volume.source),
    sourceChanged: ({ event }) => event.type === 'volume.refresh' && event.changed === true && refreshes(event.volume.source),
    refreshes: ({ context, event }) => event.type === 'volume.refresh' && renews(context, event.volume.source),
    changed: ({ context, event }) =>
      event.type === 'volume.want' &&
      renews(context, event.volume.source) &&
      (context.job === null || redefined(context.job.pod, event.pod)),
  },
}).createMachine({
  id: 'volume',
  meta: projecting<VolumeContext>(({ ref, wanted, again, everMounted, done, attempts, error, waitMs }) => ({
    ...{
      uid: ref.uid,
      plugin: ref.plugin,
      name: ref.name,
      wanted,
      again,
      everMounted,
      at: done?.at ?? null,
      attempts,
      error,
      waitMs,
    },
  })),
  context: ({ input }) => ({
    ref: input.ref,
    job: input.job,
    wanted: input.job !== null,
    again: false,
    everMounted: false,
    done: null,
    attempts: 0,
    error: '',
    waitMs: 0,
    fixed: false,
  }),
  initial: 'starting',
  states: {
    starting: { always: [{ guard: 'found', target: 'uncertain' }, { target: 'mounting' }] },
    uncertain: {
      meta: { reason: 'Uncertain', message: 'found on disk after a restart; waiting to learn whether its pod is still wanted' },
      entry: [{ type: 'tell', params: { phase: 'uncertain' } }],
      on: { 'volume.want': { target: 'mounting', actions: ['take'] }, 'volume.unwant': { target: 'unmounting', actions: ['unwant'] } },
    },
    mounting: {
      meta: { reason: 'Mounting', message: 'being set up' },
      entry: ['clearAgain', { type: 'tell', params: { phase: 'mounting' } }],
      invoke: {
        src: 'setUp',
        input: ({ context }) => jobOf(context),
        onDone: [
          UNWANTED,
          {
            guard: 'askedAgain',
            target: 'refreshing',
            actions: [MOUNTED],
          },
          { target: 'mounted', actions: [MOUNTED] },
        ],
        onError: [UNWANTED, failed('mountFailed')],
      },
      on: BUSY,
    },
    mountFailed: {
      ...failedSetUp('mounting', 'failed'),
      meta: { reason: 'MountFailed', message: error },
      on: { ...failedSetUp('mounting', 'failed').on, 'volume.retry': { target: 'mounting', actions: ['beginAnew'] } },
    },
    mounted: {
      meta: { reason: 'Mounted', message: '' },
      entry: [{ type: 'tell', params: { phase: 'mounted' } }],
      on: { ...STANDS, 'volume.look': { guard: 'grows', target: 'growing' } },
    },
    /** Containers have it meanwhile: to them it is mounted. */
    growing: {
      meta: { reason: 'Growing', message: 'its size is compared with that of its claim, and grown where it is less' },
      entry: ['clearAgain'],
      invoke: {
        src: 'grow',
        input: ({ context }) => growJobOf(context),
        onDone: [
          {
            guard: { type: 'growthFailed', params: ({ event }) => ({ outcome: event.output }) },
            target: 'growFailed',
            actions: [
              { type: 'noteFailure', params: ({ event }) => ({ error: event.output.kind === 'failed' ? event.output.message : '' }) },
            ],
          },
          { guard: 'askedAgain', target: 'refreshing', actions: [LOOKED] },
          { target: 'mounted', actions: [LOOKED] },
        ],
        onError: failed('growFailed'),
      },
      on: { ...BUSY, 'volume.unwant': LET_GO },
    },
    growFailed: {
      meta: { reason: 'GrowFailed', message: error },
      entry: [
        { type: 'sayGrowthFailed', params: ({ context }) => ({ pod: jobOf(context).job.pod, message: context.error }) },
        { type: 'tell', params: { phase: 'mounted' } },
      ],
      after: { wait: { target: 'growing' } },
      on: { ...STANDS, 'volume.retry': { target: 'growing', actions: ['beginAnew'] } },
    },
    refreshing: {
      meta: { reason: 'Refreshing', message: 'its content is compared with what it should be' },
      entry: ['clearAgain'],
      invoke: {
        src: 'setUp',
        input: ({ context }) => jobOf(context),
        onDone: [UNWANTED, { guard: 'askedAgain', target: 'refreshing', reenter: true }, { target: 'mounted', actions: [MOUNTED] }],
        onError: [UNWANTED, failed('refreshFailed')],
      },
      on: BUSY,
    },
    /** What is there stays and counts as mounted: containers go on with the content they have. */
    refreshFailed: {
      ...failedSetUp('refreshing', 'stale'),
      meta: { reason: 'RefreshFailed', message: error },
    },
    unmounting: {
      meta: { reason: 'Unmounting', message: 'being taken down' },
      entry: [{ type: 'tell', params: { phase: 'unmounting' } }, assign({ everMounted: false, fixed: false })],
      invoke: {
        src: 'tearDown',
        input: ({ context: { ref } }) => ({ ref }),
        onDone: [WANTED, { target: 'gone' }],
        onError: [WANTED, failed('unmountFailed')],
      },
      on: { 'volume.want': { actions: ['take'] }, 'volume.unwant': { actions: ['unwant'] } },
    },
    unmountFailed: {
      meta: { reason: 'UnmountFailed', message: error },
      entry: [
        { type: 'sayTearDownFailed', params: ({ context: { ref, error } }) => ({ ref, message: error }) },
        { type: 'tell', params: { phase: 'unmountFailed' } },
      ],
      after: { wait: { target: 'unmounting' } },
      on: { 'volume.want': { target: 'mounting', actions: ['take', 'beginAnew'] } },
    },
    gone: { type: 'final', entry: [{ type: 'tell', params: { phase: 'gone' } }] },
  },
});
