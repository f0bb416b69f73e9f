/**
 * One image that a container of a pod waits for: it is looked for in the runtime and, by the pull policy, pulled. Credentials
 * never enter it. Pods that want the same image with the same credentials share a pull: each has a machine of its own.
 */
import { assign, sendParent, setup } from 'xstate';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import type { ImageEvent, ImageResult } from './messages.ts';

export interface Settled {
  result: ImageResult;
  /** Until the next pull for this pod is allowed; 0: no back-off is in force. */
  backOffMs: number;
}
/** What an image is wanted for. */
interface ImageWish {
  key: string;
  pod: string;
  container: string;
  image: string;
  policy: string;
}
export interface ImagePullInput extends ImageWish {
  /** Id of the machine of this pull. */
  id: string;
  /** Number of the request. The actor keeps the request itself: it holds credentials, and where the answer goes. */
  request: number;
}
/** To the image puller: it has answered, and stays until its back-off is over. */
export interface BackingOff {
  type: 'pull.backingOff';
  /** Id of the machine of this pull. */
  id: string;
  key: string;
}
/** To the image puller: it has come to its end. */
export interface PullEnded {
  type: 'pull.ended';
  id: string;
}
/** To the image puller, and from it to the machine: the turn of this pull has come. */
export interface PullBegan {
  type: 'pull.began';
  id: string;
}
interface ImagePullContext extends ImagePullInput {
  settled: Settled | null;
}
type Done = { event: { output: Settled | null } };

/** The container that asks. */
export const requestKey = ({ uid, container }: ImageEvent): string => `${uid}/${container}`;
const settles = { type: 'settles', params: ({ event }: Done) => ({ settled: event.output }) } as const;
const take = { type: 'take', params: ({ event }: Done) => ({ settled: event.output }) } as const;
const inputOf = ({ context: { id, request } }: { context: ImagePullContext }): PullInput => ({ id, request });
export interface PullInput {
  id: string;
  request: number;
}

export const imagePullMachine = setup({
  types: { context: {} as ImagePullContext, input: {} as ImagePullInput, events: {} as PullBegan },
  actors: {
    look: unprovided<Settled | null, PullInput>(),
    collectCredentials: unprovided<Settled | null, PullInput>(),
    pull: unprovided<Settled, PullInput>(),
  },
  actions: {
    take: assign((_, { settled }: { settled: Settled | null }) => ({ settled })),
    answer: unprovidedAction<{ request: number; settled: Settled | null }>(),
    sayBackingOff: sendParent(({ context: { id, key } }): BackingOff => ({ type: 'pull.backingOff', id, key })),
    sayEnded: sendParent(({ context: { id } }): PullEnded => ({ type: 'pull.ended', id })),
  },
  guards: {
    settles: (_, { settled }: { settled: Settled | null }) => settled !== null,
    isPulled: ({ context: { settled } }) => settled?.result.ok === true && settled.result.pulled,
    isPresent: ({ context: { settled } }) => settled?.result.ok === true,
    backsOff: ({ context: { settled } }) => (settled?.backOffMs ?? 0) > 0,
  },
  delays: { backOff: ({ context }) => context.settled?.backOffMs ?? 0 },
}).createMachine({
  id: 'imagePull',
  meta: projecting<ImagePullContext>(({ image, policy, pod, container, settled }) => ({
    ...{ image, policy, pod, container },
    failure: settled === null || settled.result.ok ? null : { ...settled.result.failure },
    backOffMs: settled?.backOffMs ?? 0,
  })),
  context: ({ input }) => ({ ...input, settled: null }),
  initial: 'looking',
  states: {
    looking: {
      meta: { reason: 'Looking', message: (c: ImagePullContext) => `asking the runtime for ${c.image}` },
      invoke: {
        src: 'look',
        input: inputOf,
        onDone: [{ guard: settles, target: 'settling', actions: [take] }, { target: 'collectingCredentials' }],
      },
    },
    collectingCredentials: {
      meta: { reason: 'CollectingCredentials', message: (c: ImagePullContext) => `collecting credentials for ${c.image}` },
      invoke: {
        src: 'collectCredentials',
        input: inputOf,
        onDone: [{ guard: settles, target: 'settling', actions: [take] }, { target: 'pulling' }],
      },
    },
    pulling: {
      invoke: {
        src: 'pull',
        input: inputOf,
        onDone: { target: 'settling', actions: [take] },
      },
      initial: 'queued',
      states: {
        queued: {
          meta: { reason: 'Queued', message: (c: ImagePullContext) => `${c.image} waits for its turn behind other pulls` },
          on: { 'pull.began': { target: 'running' } },
        },
        running: { meta: { reason: 'Pulling', message: (c: ImagePullContext) => `pulling ${c.image}` } },
      },
    },
    settling: {
      entry: [{ type: 'answer', params: ({ context: { request, settled } }) => ({ request, settled }) }],
      always: [
        { guard: 'isPulled', target: 'pulled' },
        { guard: 'isPresent', target: 'present' },
        { guard: 'backsOff', target: 'backingOff', actions: ['sayBackingOff'] },
        { target: 'failed' },
      ],
    },
    pulled: { type: 'final', entry: ['sayEnded'] },
    present: { type: 'final', entry: ['sayEnded'] },
    /** The container asks again meanwhile; that is another request, which takes the place of this one. */
    backingOff: {
      meta: {
        reason: 'ImagePullBackOff',
        message: ({ image, settled }: ImagePullContext) =>
          `no pull of ${image} for this pod before the back-off is over${settled === null || settled.result.ok ? '' : `: ${settled.result.failure.message}`}`,
      },
      after: { backOff: { target: 'failed' } },
    },
    failed: { type: 'final', entry: ['sayEnded'] },
  },
});
