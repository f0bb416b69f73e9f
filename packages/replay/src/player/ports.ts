/** The ports of a recording as a tree is given them, and what crosses there. What is answered, and when, is the matching's. */
import type { SupervisionEvent, Tree } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { Clock, Entropy, Ports, Yield } from '@actorlet/kubelet/ports/ports.ts';
import { OWN_WAY } from '../border.ts';
import type { ByHand, Json } from '../entries.ts';
import type { Place } from '../secrets/doors.ts';
import type { PodOf } from '../told/report.ts';
import { bytesJson, cross, type Maker, revive } from '../values.ts';
import { collecting } from './silent.ts';

export type Fn = (...args: unknown[]) => unknown;

/** `value` gives the values of its line as the node gets them. */
export type OnHand = (input: ByHand, value: (json: Json) => unknown) => void;

/**
 * How what the tree does finds its place in the recording. `exact/`: in its order, and compared with it. `lenient/`: each call has
 * the answer that it, or one like it, had.
 */
export interface Matching {
  readonly clock: Clock;
  readonly yield: Yield;
  /** Digests, and random bytes. */
  readonly entropy: Entropy;
  /** A number of chance. */
  drawn(): number;
  /** The tree calls function number `fn` of the outside. */
  ask(fn: number, name: string, args: unknown[]): unknown;
  /** A promise among values. */
  promise(call: number): unknown;
  signal(id: number): AbortSignal;
  /** Nothing more can be played. */
  readonly isOver: boolean;
  /** What is done to the node by hand. */
  onHand: OnHand;
  /** Gives the node its next input. False: there is none. */
  deliver(): boolean;
  /** Does one thing that is no input. False: there is nothing to do. */
  catchUp?(): boolean;
  /** To be called once all promises have run. */
  settled?(): void;
  /** The tree that it plays to, once it is made. */
  plays?(tree: Pick<Tree, 'registry'>, podOf: PodOf): void;
  /** A step of one of the node's actors. */
  step?(e: SupervisionEvent): void;
}

export function makerOf(by: Matching): Maker {
  return {
    fn:
      (id, name) =>
      (...args) =>
        by.ask(id, name, args),
    promise: (call) => by.promise(call),
    signal: (id) => by.signal(id),
  };
}

/** @param ports Those of the recording. @throws where it has one that none can have. */
export function portsOf(ports: Json, by: Matching, own: Pick<Ports, 'log' | 'metrics'>): Ports {
  const made = revive(ports, makerOf(by)) as Record<string, object>;
  for (const name of OWN_WAY)
    if (name !== 'handling' && name in made) throw new Error(`the recording has a port ${name} that none can have`);
  const handling = made.handling === undefined ? {} : { handling: { ...made.handling, of: <T>(_subject: string, fn: () => T): T => fn() } };
  const metrics = collecting(own.metrics, () => by.ask(-1, 'metrics.render', []) as Promise<string>);
  const { clock, entropy } = by;
  const ways = { ...own, metrics, rng: { next: () => by.drawn() }, clock, yield: by.yield, entropy };
  return { ...made, ...handling, ...ways } as unknown as Ports;
}

const NOWHERE: Place = { key: '', door: 'open' };

/** What the tree says. Its functions are numbered from `from` on, in the order in which a recording numbers them. */
export function crossed(value: unknown, from = 0): { json: Json; fns: readonly Fn[]; signals: readonly AbortSignal[] } {
  const fns: Fn[] = [];
  const signals: AbortSignal[] = [];
  const { json } = cross(
    value,
    {
      text: (text) => text,
      bytes: bytesJson,
      door: () => 'open',
      fn: (fn) => ({ json: { $: 'i', v: from + fns.push(fn) - 1 }, other: fn }),
      promise: (promise) => ({ json: { $: 'p' }, other: promise }),
      signal: (signal) => {
        signals.push(signal);
        return { json: { $: 'a' }, other: signal };
      },
    },
    NOWHERE,
  );
  return { json, fns, signals };
}
