/** How admission goes about it: who was not admitted at first sight is looked at again. */
import { assign, fromPromise, setup } from 'xstate';
import type { Pod } from '../../k8s.ts';
import { podName, projecting, some } from '../../projection.ts';
import type { AdmissionEvent, PodOpEvent } from '../../protocol.ts';
import type { Refusal } from './admission.ts';

/** How often a pod that was not admitted at first sight is looked at again. */
const LOOK_AGAIN_MS = 500;
/** How often changes of resources that do not fit are looked at again. */
const RESIZES_AGAIN_MS = 2_000;

export interface Deferred {
  pod: Pod;
  event: PodOpEvent;
  sinceMonoMs: number;
  /**
   * `later`: something has to be looked at first. `room`: others make room for it, which nobody else gets. `allocating`: it
   * fits, and is being handed out what its containers are to have alone; nobody else gets its room. `readmitting`: the same,
   * of a pod that runs here already.
   */
  verdict: 'later' | 'room' | 'allocating' | 'readmitting';
}
export function isWait(verdict: Refusal | Deferred['verdict']): verdict is Deferred['verdict'] {
  return typeof verdict === 'string';
}
export function keepsRoom({ verdict }: Deferred): boolean {
  return verdict !== 'later';
}
/** What nobody has judged yet. One that room is made for was, and one that is being handed out something: nothing of it is here. */
export function undecided(deferred: readonly Deferred[]): string[] {
  return deferred.filter((d) => d.verdict === 'later' || d.verdict === 'readmitting').map((d) => d.pod.metadata.uid);
}
export interface AdmissionContext {
  /** Admitted here, perhaps not in the view yet. */
  recent: ReadonlyMap<string, Pod>;
  deferred: readonly Deferred[];
  /** A change of resources waits for room. */
  resizes: boolean;
}

/** To itself, before anything else: what judging came to. */
export interface Judged {
  type: 'admission.judged';
  known: Partial<AdmissionContext>;
}

export const admissionMachine = setup({
  types: { context: {} as AdmissionContext, events: {} as AdmissionEvent | Judged },
  actors: { load: fromPromise<void>(() => Promise.resolve()) },
  actions: {
    /** Judges the pods of an operation. Like `retry` it ends with `admission.judged`. */
    take: (_, _p: { event: PodOpEvent }) => {},
    /** Judges again what waits. */
    retry: () => {},
  },
  guards: {
    waiting: ({ context }) => context.deferred.length > 0,
    nothingWaits: ({ context }) => context.deferred.length === 0,
    resizesWait: ({ context }) => context.resizes,
    noResizeWaits: ({ context }) => !context.resizes,
  },
}).createMachine({
  id: 'admission',
  meta: projecting<AdmissionContext>(({ recent, deferred, resizes }) => ({
    admitted: some(recent.values(), podName),
    deferred: some(deferred, ({ pod, verdict }) => `${podName(pod)}: ${verdict}`),
    resizes,
  })),
  context: { recent: new Map(), deferred: [], resizes: false },
  initial: 'loading',
  on: {
    'pods.op': { actions: { type: 'take', params: ({ event }) => ({ event }) } },
    'admission.judged': { actions: assign(({ event }) => event.known) },
  },
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading what pods were granted before the daemon started' },
      invoke: { src: 'load', onDone: 'ready', onError: 'ready' },
      // Of a config that ended with the admission before this one. The next config starts after this state, and sends every pod.
      on: { 'pods.op': {} },
    },
    ready: {
      meta: { reason: 'Ready', message: 'every pod seen so far was judged' },
      always: [
        { guard: 'waiting', target: 'lookingAgain' },
        { guard: 'resizesWait', target: 'holdingResizes' },
      ],
    },
    holdingResizes: {
      meta: { reason: 'ResizePending', message: 'a change of resources does not fit, or cannot be; waiting for room' },
      always: [
        { guard: 'waiting', target: 'lookingAgain' },
        { guard: 'noResizeWaits', target: 'ready' },
      ],
      after: { [RESIZES_AGAIN_MS]: { target: 'holdingResizes', reenter: true, actions: ['retry'] } },
    },
    lookingAgain: {
      meta: {
        reason: 'LookingAgain',
        message:
          'a pod does not fit, but it may run here already, the node may have changed, or others make room for it; or it is being handed out CPUs or devices. Waiting for the first listing of the runtime, the next look at the node, the end of those others, or an answer',
      },
      always: { guard: 'nothingWaits', target: 'ready' },
      on: { 'admission.look': { target: 'lookingAgain', reenter: true, actions: ['retry'] } },
      after: { [LOOK_AGAIN_MS]: { target: 'lookingAgain', reenter: true, actions: ['retry'] } },
    },
  },
});
