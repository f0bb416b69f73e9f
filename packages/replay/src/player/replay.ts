/** Runs the tree of this checkout on a recording, in the time of the recording. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { configOf } from '../border.ts';
import { Exact } from '../exact/exact.ts';
import type { Divergence, Parted } from '../told/divergence.ts';
import { Player, type PlayInput } from './player.ts';
import type { PlayerInput } from './watch.ts';

export interface ReplayInput extends PlayerInput, Pick<PlayInput, 'own' | 'drain' | 'step' | 'extensions'> {
  /** Awaited before each input, where it is not null: `next` needs it. */
  more?(): Promise<void> | null;
  /** Called at each step of an actor; true ends the replay after the input that the step belongs to. */
  stopAt?(step: Extract<SupervisionEvent, { kind: 'transition' }>, node: Node): boolean;
  /** The node as the replay leaves it. */
  leaves?: ((node: Node) => void) | undefined;
  /** What the inspection page shows is kept beside the node. */
  lookedAt?: boolean;
}
/** The actor at `path` is in state `to` from now on. */
interface Step {
  readonly path: string;
  readonly to: string;
}
/** Where a replay stopped before the end of the recording. */
export interface Stop extends Step {
  readonly node: Node;
  readonly wallMs: number;
}
export interface Replayed {
  /** The first one. */
  readonly divergence: Divergence | null;
  /** One of each kind. Without `goesOn` the first alone. */
  readonly divergences: readonly Divergence[];
  /** The first one as entries. */
  readonly parted: Parted | null;
  readonly inputs: number;
  /** Milliseconds of the recording that were lived through. */
  readonly ms: number;
  /** Why the recording ends; null: it was cut off, as by a kill, or not read to its end. */
  readonly endedBecause: string | null;
  /** The last of the flight recorder, oldest first. */
  readonly steps: readonly string[];
  /** Why the node could not be made, which it could then. */
  readonly failure: string | null;
  /** Null: it ran to the end. */
  readonly stopped: Stop | null;
}

const STEPS_SHOWN = 12;

export async function replay(o: ReplayInput): Promise<Replayed> {
  return await new Replay(o).run();
}

/** A replay that stands at a moment. */
export class Replay {
  readonly #o: ReplayInput;
  readonly #exact: Exact;
  readonly #player: Player;
  #stopped: Stop | null = null;

  constructor(o: ReplayInput) {
    this.#o = o;
    const exact = new Exact(o);
    this.#exact = exact;
    this.#player = new Player(exact, {
      ...{ ...o, config: configOf(o.header.config) },
      given: { ...(o.lookedAt === true ? { onlooker: { clock: exact.still } } : {}), acting: o.who?.acting },
      step: (e, node) => {
        o.step?.(e, node);
        if (e.kind !== 'transition' || this.#stopped !== null || o.stopAt?.(e, node) !== true) return;
        this.#stopped = { path: e.path, to: e.to, node, wallMs: exact.wallMs };
      },
    });
  }

  /** Null before it is made. */
  get node(): Node | null {
    return this.#player.node;
  }
  get wallMs(): number {
    return this.#exact.wallMs;
  }
  /** When the next input comes; null at the end, or where it stopped. */
  get nextWallMs(): number | null {
    return this.#exact.isOver || this.#stopped !== null ? null : this.#exact.nextWallMs;
  }

  /** Gives the node its next input. False: it is at its end, diverged, or stopped. */
  async step(): Promise<boolean> {
    return this.#stopped === null && (await this.#player.next());
  }

  async run(): Promise<Replayed> {
    while (await this.step());
    this.#exact.end();
    const { divergence, divergences, parted, inputs, endedBecause, monoMs } = this.#exact;
    const { node, failure } = this.#player;
    const steps = node?.recorder(STEPS_SHOWN) ?? [];
    if (node !== null) this.#o.leaves?.(node);
    const ms = monoMs - this.#o.header.monoMs;
    return { divergence, divergences, parted, inputs, endedBecause, ms, steps, failure, stopped: this.#stopped };
  }
}
