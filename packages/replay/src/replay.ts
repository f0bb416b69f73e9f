/** Runs the tree of this checkout on a recording, in the time of the recording. */
import { createNode, type Node, type NodeOptions } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Entropy, Ports } from '@actorlet/kubelet/ports/ports.ts';
import { configOf } from './border.ts';
import type { Entry, Header } from './entries.ts';
import { Hand } from './outside.ts';
import type { Divergence, Parted } from './player/divergence.ts';
import { Player } from './player/play.ts';
import { podOf } from './player/podOf.ts';
import type { PlayerWatch } from './player/watch.ts';
import type { WhoActs } from './seen/whose.ts';

export interface ReplayInput {
  header: Header;
  /** Null at the end. */
  next(): Entry | null;
  /** Awaited before each input, where it is not null: `next` needs it. */
  more?(): Promise<void> | null;
  own: Pick<Ports, 'log' | 'metrics'>;
  entropy: Pick<Entropy, 'md5Hex' | 'sha256Hex'>;
  /** Resolves once every promise that can settle has settled. */
  drain(): Promise<void>;
  /** Called at each step of an actor; true ends the replay after the input that the step belongs to. */
  stopAt?(step: Extract<SupervisionEvent, { kind: 'transition' }>, node: Node): boolean;
  /** Hears what crosses between the tree and its ports. */
  watch?: PlayerWatch;
  /** The node as the replay leaves it. */
  leaves?(node: Node): void;
  /** Tells whose doing something is. */
  who?: WhoActs;
  /** At a divergence it goes on, and tells of those that come after it. */
  goesOn?: boolean;
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

/** What one input leads to beyond the recording: a node that went another way may spin. */
const BEYOND_MAX = 1_000;

export async function replay(o: ReplayInput): Promise<Replayed> {
  return await new Replay(o).run();
}

/** A replay that stands at a moment. */
export class Replay {
  readonly #o: ReplayInput;
  readonly #player: Player;
  #node: Node | null = null;
  #hand: Hand | null = null;
  #failure: string | null = null;
  #stopped: Stop | null = null;

  constructor(o: ReplayInput) {
    this.#o = o;
    this.#player = new Player(o);
    this.#player.onHand = (input, value) => {
      if (input[0] === 'told' && input[2] === 'create') void this.#create();
      else this.#hand?.take(input, value);
    };
  }

  /** Null before it is made. */
  get node(): Node | null {
    return this.#node;
  }
  get wallMs(): number {
    return this.#player.wallMs;
  }
  /** When the next input comes; null at the end, or where it stopped. */
  get nextWallMs(): number | null {
    return this.#isOver ? null : this.#player.nextWallMs;
  }

  /** Gives the node its next input. False: it is at its end, diverged, or stopped. */
  async step(): Promise<boolean> {
    if (this.#isOver) return false;
    await this.#o.more?.();
    if (!this.#player.deliver()) return false;
    await this.#o.drain();
    for (let i = 0; i < BEYOND_MAX && this.#player.catchUp(); i++) await this.#o.drain();
    this.#player.settled();
    return true;
  }

  async run(): Promise<Replayed> {
    const player = this.#player;
    while (await this.step());
    player.end();
    const { divergence, divergences, parted, inputs, endedBecause, monoMs } = player;
    const steps = this.#node?.recorder(STEPS_SHOWN) ?? [];
    if (this.#node !== null) this.#o.leaves?.(this.#node);
    const ms = monoMs - this.#o.header.monoMs;
    return { divergence, divergences, parted, inputs, endedBecause, ms, steps, failure: this.#failure, stopped: this.#stopped };
  }

  get #isOver(): boolean {
    return this.#player.isOver || this.#stopped !== null;
  }

  async #create(): Promise<void> {
    const player = this.#player;
    try {
      const options = player.options as NodeOptions;
      const onlooker = this.#o.lookedAt === true ? { onlooker: { clock: player.still } } : {};
      const node = await createNode(configOf(this.#o.header.config), player.ports, {
        ...options,
        ...onlooker,
        acting: this.#o.who?.acting,
      });
      this.#node = node;
      this.#hand = new Hand(node);
      player.plays(node.tree, (path, said) => podOf(node, path, said));
      node.tree.observe((e) => {
        player.step(e);
        if (e.kind !== 'transition' || this.#stopped !== null || this.#o.stopAt?.(e, node) !== true) return;
        this.#stopped = { path: e.path, to: e.to, node, wallMs: player.wallMs };
      });
    } catch (error) {
      this.#failure = messageOf(error);
    }
  }
}
