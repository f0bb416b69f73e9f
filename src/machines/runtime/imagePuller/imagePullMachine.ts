/**
 * One image that a container of a pod waits for: it is looked for in the runtime and, by the pull policy, pulled. Credentials
 * never enter it. Pods that want the same image with the same credentials share a pull: each has a machine of its own.
 */
import { assign, fromPromise, sendParent, setup } from 'xstate';
import { podName, projecting } from '../../xstate/projection.ts';
import { providing, unprovided } from '../../xstate/provide.ts';
import type { ImageEvent, ImageResult } from './messages.ts';

export interface ImageRequest {
  /** Unique within one incarnation of the image puller. */
  id: number;
  event: ImageEvent;
}
export interface Settled {
  result: ImageResult;
  /** Until the next pull for this pod is allowed; 0: no back-off is in force. */
  backOffMs: number;
}
/** Given by `actors/runtime/imagePuller`. Null: nothing is settled yet, go on. */
export interface ImagePullIo {
  /** Asks the runtime, and decides by the pull policy and the back-off. */
  look(request: ImageRequest): Promise<Settled | null>;
  /** Collects the credentials of the pod and of the node. */
  collectCredentials(request: ImageRequest): Promise<Settled | null>;
  /** Joins a pull or begins one; calls `began` when its turn has come. */
  pull(request: ImageRequest, began: () => void): Promise<Settled>;
  answer(request: ImageRequest, result: ImageResult): void;
}
export interface ImagePullInput {
  /** Of its machine. */
  id: string;
  request: ImageRequest;
}
/** To the image puller: it has answered, and stays until its back-off is over. */
export interface BackingOff {
  type: 'pull.backingOff';
  /** Of its machine. */
  id: string;
  key: string;
}
/** To the image puller: it has come to its end. */
export interface PullEnded {
  type: 'pull.ended';
  id: string;
}
interface ImagePullContext {
  id: string;
  /** Null once it is answered: it holds credentials. */
  request: ImageRequest | null;
  key: string;
  pod: string;
  container: string;
  image: string;
  policy: string;
  settled: Settled | null;
}
type Done = { event: { output: Settled | null } };

/** Of the container that asks. */
export const requestKey = ({ uid, container }: ImageEvent): string => `${uid}/${container}`;
const settles = { type: 'settles', params: ({ event }: Done) => ({ settled: event.output }) } as const;
const take = { type: 'take', params: ({ event }: Done) => ({ settled: event.output }) } as const;
const inputOf = ({ context: { id, request } }: { context: ImagePullContext }): ImagePullInput => {
  if (request === null) throw new Error('image pull: the request is answered already');
  return { id, request };
};
type PullInput = ImagePullInput & { began(): void };

export const imagePullMachine = setup({
  types: { context: {} as ImagePullContext, input: {} as ImagePullInput, events: {} as { type: 'pull.began' } },
  actors: {
    look: unprovided<Settled | null, ImagePullInput>(),
    collectCredentials: unprovided<Settled | null, ImagePullInput>(),
    pull: unprovided<Settled, PullInput>(),
  },
  actions: {
    take: assign((_, { settled }: { settled: Settled | null }) => ({ settled })),
    answer: (_) => {},
    sayBackingOff: sendParent(({ context: { id, key } }): BackingOff => ({ type: 'pull.backingOff', id, key })),
    sayEnded: sendParent(({ context: { id } }): PullEnded => ({ type: 'pull.ended', id })),
    forgetRequest: assign({ request: null }),
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
  context: ({ input: { id, request } }) => {
    const { podRef, container, image, policy } = request.event;
    const key = requestKey(request.event);
    return { id, request, key, pod: podName({ metadata: podRef }), container, image, policy, settled: null };
  },
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
        input: ({ context, self }) => ({ ...inputOf({ context }), began: () => self.send({ type: 'pull.began' }) }),
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
      entry: ['answer'],
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
      entry: ['forgetRequest'],
      after: { backOff: { target: 'failed' } },
    },
    failed: { type: 'final', entry: ['sayEnded'] },
  },
});

export const imagePullWith = (io: ImagePullIo): typeof imagePullMachine =>
  providing(imagePullMachine, {
    actors: {
      look: fromPromise<Settled | null, ImagePullInput>(({ input }) => io.look(input.request)),
      collectCredentials: fromPromise<Settled | null, ImagePullInput>(({ input }) => io.collectCredentials(input.request)),
      pull: fromPromise<Settled, PullInput>(({ input }) => io.pull(input.request, input.began)),
    },
    actions: {
      answer: ({ context: { request, settled } }) => {
        if (request !== null && settled !== null) io.answer(request, settled.result);
      },
    },
  });
