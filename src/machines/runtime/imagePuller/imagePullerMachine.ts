/** Statechart of the image puller: idle, or pulling a number of images. The pulls themselves are promises. Pure. */
import { assign, setup } from 'xstate';
import type { ImageEvent, ImageRemovedEvent } from '../../protocol.ts';

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
  /** What is being pulled and for how long; asked when somebody looks. */
  progress: () => string;
}

export const imagePullerMachine = setup({
  types: { context: {} as PullerContext, events: {} as PullerEvent, input: {} as Pick<PullerContext, 'progress'> },
  actions: {
    ensure: () => {},
    collect: () => {},
    forget: () => {},
    fail: (_, params: { error: Error }) => {
      throw params.error;
    },
  },
}).createMachine({
  id: 'imagePuller',
  context: ({ input }) => ({ active: 0, progress: input.progress }),
  initial: 'idle',
  on: {
    'image.ensure': { actions: 'ensure' },
    'image.removed': { actions: 'forget' },
    'puller.broken': { actions: { type: 'fail', params: ({ event }) => ({ error: event.error }) } },
    'pulls.changed': [
      { guard: ({ event }) => event.active > 0, target: '.pulling', actions: assign({ active: ({ event }) => event.active }) },
      { target: '.idle', actions: assign({ active: 0 }) },
    ],
  },
  states: {
    idle: {
      meta: { reason: 'Idle', message: 'no image is being pulled' },
      after: { [COLLECT_MS]: { target: 'idle', reenter: true, actions: 'collect' } },
    },
    pulling: {
      meta: { reason: 'Pulling', message: ({ progress }: PullerContext) => progress() },
    },
  },
});
