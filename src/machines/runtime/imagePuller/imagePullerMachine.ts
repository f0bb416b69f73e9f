/** Statechart of the image puller: idle, or pulling a number of images. Each request is a machine of its own. */
import { assign } from 'xstate';
import { podName, projecting } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { type BackingOff, imagePullMachine, type PullBegan, type PullEnded, requestKey } from './imagePullMachine.ts';
import type { ImageEvent, ImageRemovedEvent } from './messages.ts';

/** How often old back-off entries are forgotten. */
const COLLECT_MS = 60_000;

export type PullerEvent =
  | ImageEvent
  | ImageRemovedEvent
  /** The number of pulls waiting or running has changed. */
  | { type: 'pulls.changed'; active: number }
  | { type: 'puller.broken'; error: Error };
export interface PullerContext {
  active: number;
  lastId: number;
  /** Machines that stay until a back-off is over, by the container that asked. */
  backingOff: ReadonlyMap<string, string>;
}
/** What comes with each event. */
export interface PullerFacts {
  /** What is being pulled and for how long. */
  readonly progress: string;
}

const { setup } = setupWith<PullerFacts>();
const effects = setup({
  types: { context: {} as PullerContext, events: {} as PullerEvent | BackingOff | PullEnded | PullBegan },
  actors: { pull: imagePullMachine },
  actions: {
    /** Learns where `pulls.changed` goes. */
    attach: unprovidedAction(),
    collect: unprovidedAction(),
    forget: unprovidedAction<{ imageRef: string }>(),
    /** Keeps the request under its number. */
    accept: unprovidedAction<{ request: number; event: ImageEvent }>(),
  },
});

const deciding = effects.extend({
  actions: {
    begin: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'image.ensure') return;
      const id = context.lastId + 1;
      const before = context.backingOff.get(requestKey(event));
      if (before !== undefined) enqueue.stopChild(before);
      enqueue.assign({ lastId: id, backingOff: without(context.backingOff, before) });
      const { podRef, container, image, policy } = event;
      const pod = podName({ metadata: podRef });
      const name = `${pod}/${container}#${id}`;
      enqueue({ type: 'accept', params: { request: id, event } });
      enqueue.spawnChild('pull', { id: name, input: { id: name, request: id, key: requestKey(event), pod, container, image, policy } });
    }),
    tellBegan: effects.enqueueActions(({ event, enqueue }) => {
      if (event.type === 'pull.began') enqueue.sendTo(event.id, event);
    }),
    noteBackingOff: assign(({ context, event }) =>
      event.type === 'pull.backingOff' ? { backingOff: new Map(context.backingOff).set(event.key, event.id) } : {},
    ),
    end: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'pull.ended') return;
      enqueue.stopChild(event.id);
      enqueue.assign({ backingOff: without(context.backingOff, event.id) });
    }),
    fail: (_, { error }: { error: Error }) => {
      throw error;
    },
  },
});

export const imagePullerMachine = deciding.createMachine({
  id: 'imagePuller',
  meta: projecting<PullerContext>(({ active, lastId, backingOff }) => ({ active, requests: lastId, backingOff: backingOff.size })),
  context: () => ({ active: 0, lastId: 0, backingOff: new Map() }),
  entry: ['attach'],
  initial: 'idle',
  on: {
    'image.ensure': { actions: 'begin' },
    'image.removed': { actions: { type: 'forget', params: ({ event: { imageRef } }) => ({ imageRef }) } },
    'puller.broken': { actions: { type: 'fail', params: ({ event: { error } }) => ({ error }) } },
    'pulls.changed': [
      { guard: ({ event }) => event.active > 0, target: '.pulling', actions: assign({ active: ({ event }) => event.active }) },
      { target: '.idle', actions: assign({ active: 0 }) },
    ],
    'pull.began': { actions: 'tellBegan' },
    'pull.backingOff': { actions: 'noteBackingOff' },
    'pull.ended': { actions: 'end' },
  },
  states: {
    idle: {
      meta: { reason: 'Idle', message: 'no image is being pulled' },
      after: { [COLLECT_MS]: { target: 'idle', reenter: true, actions: 'collect' } },
    },
    pulling: {
      meta: { reason: 'Pulling', message: (_: PullerContext, { progress }: PullerFacts) => progress },
    },
  },
});

function without(known: PullerContext['backingOff'], id: string | undefined): PullerContext['backingOff'] {
  return id === undefined ? known : new Map([...known].filter(([, of]) => of !== id));
}
