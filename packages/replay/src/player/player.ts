/** A recording is played to a node of this checkout. In which order, and with which answers, is the matching's. */

import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import type { Extend } from '@actorlet/kubelet/actors/extension.ts';
import { createNode, type Node, type NodeOptions } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import type { Header } from '../entries.ts';
import { Hand } from '../outside.ts';
import { podOf } from '../told/podOf.ts';
import { revive } from '../values.ts';
import { type Matching, makerOf, portsOf } from './ports.ts';

export interface PlayInput {
  readonly header: Pick<Header, 'ports' | 'options'>;
  readonly config: NodeConfig;
  readonly own: Pick<Ports, 'log' | 'metrics'>;
  /** Resolves once every promise that can settle has settled. */
  drain(): Promise<void>;
  /** Awaited before each input, where it is not null. */
  more?: (() => Promise<void> | null) | undefined;
  /** What stands before the node, as a recording does. */
  between?(ports: Ports, options: object): { readonly ports: Ports; readonly options: unknown; around(node: Node): Node };
  /** What the recorded node had beside fault injection and bundles of deaths. */
  readonly extensions?: readonly Extend[] | undefined;
  /** More of what the node is given. */
  readonly given?: Partial<NodeOptions> | undefined;
  /** Hears of each step, after it is compared. */
  step?: ((e: SupervisionEvent, node: Node) => void) | undefined;
  /** The node was made, and is not started yet. */
  made?: ((node: Node) => void) | undefined;
}

/** What one input leads to that is no input: a node may spin. */
const CATCH_UP_MAX = 1_000;

export class Player {
  readonly #matching: Matching;
  readonly #o: PlayInput;
  readonly #given: ReturnType<NonNullable<PlayInput['between']>>;
  #hand: Hand | null = null;
  /** What came before the node was made, which may take longer than then. */
  readonly #waiting: ((hand: Hand) => void)[] = [];
  /** Null before it is made. */
  node: Node | null = null;
  /** Why the node could not be made; null. */
  failure: string | null = null;

  constructor(matching: Matching, o: PlayInput) {
    this.#matching = matching;
    this.#o = o;
    const ports = portsOf(o.header.ports, matching, o.own);
    const options = revive(o.header.options, makerOf(matching)) as object;
    this.#given = o.between?.(ports, options) ?? { ports, options, around: (node) => node };
    matching.onHand = (input, value) => {
      if (input[0] === 'told' && input[2] === 'create') void this.#create();
      else if (this.#hand === null) this.#waiting.push((hand) => hand.take(input, value));
      else this.#hand.take(input, value);
    };
  }

  /** Gives the node its next input, with all that comes of it. False: there is none. */
  async next(): Promise<boolean> {
    const matching = this.#matching;
    if (matching.isOver) return false;
    await this.#o.more?.();
    if (!matching.deliver()) return false;
    await this.#o.drain();
    for (let i = 0; i < CATCH_UP_MAX && matching.catchUp?.() === true; i++) await this.#o.drain();
    matching.settled?.();
    return true;
  }

  async #create(): Promise<void> {
    const matching = this.#matching;
    const { ports, options, around } = this.#given;
    try {
      const node = await createNode(this.#o.config, ports, {
        ...(options as NodeOptions),
        extensions: [faultInjection, deathBundles, shownPages, ...(this.#o.extensions ?? [])],
        ...this.#o.given,
      });
      this.node = node;
      matching.plays?.(node.tree, (path, said) => podOf(node, path, said));
      node.tree.observe((e) => {
        matching.step?.(e);
        this.#o.step?.(e, node);
      });
      this.#o.made?.(node);
      const hand = new Hand(around(node));
      this.#hand = hand;
      for (const take of this.#waiting) take(hand);
    } catch (error) {
      this.failure = messageOf(error);
    }
  }
}
