/** Runs the tree of this checkout in a loose world, and records it anew. */
import { createNode, type Node, type NodeOptions } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { configOf } from '../border.ts';
import type { AfterMicrotasks } from '../inbox.ts';
import { Hand } from '../outside.ts';
import { InputRecording } from '../record.ts';
import { type LooseInput, LooseWorld } from './world.ts';

/** What this code may not reach itself. */
export interface Surroundings {
  readonly hashes: LooseInput['hashes'];
  /** Resolves once every promise that can settle has settled. */
  drain(): Promise<void>;
  readonly afterMicrotasks: AfterMicrotasks;
}

export interface LooseRunInput extends LooseInput {
  readonly around: Surroundings;
  /** In place of the recorded one. */
  readonly config?: NodeConfig;
  /** Monotonic time at which it ends. */
  readonly endMs: number;
  /** Gets the lines of the new recording, which is made only where somebody wants it. */
  readonly line?: ((line: string, at: { atMs: number; order: number | null }) => void) | undefined;
  /** Asked after each step; true ends the run. */
  ended?(node: Node | null): boolean;
  step?(e: SupervisionEvent, node: Node, nowMs: number): void;
  /** The node was made, and is not started yet. */
  made?(node: Node): void;
}

export interface LooseRun {
  readonly node: Node | null;
  readonly world: LooseWorld;
  /** Why the node could not be made or started. */
  readonly failure: string | null;
}

/** A world in which one thing follows another without time passing. */
const STEPS_PER_MS_MAX = 100_000;

export async function runLoosely(o: LooseRunInput): Promise<LooseRun> {
  const world = new LooseWorld(o);
  const config = o.config ?? configOf(o.edit.into(o.header.config));
  const recording = o.line === undefined ? null : recorded(world, config, o);
  world.begin();
  let node: Node | null = null;
  let hand: Hand | null = null;
  let failure: string | null = null;
  /** What came before the node was made, which may take longer than then. */
  const waiting: ((hand: Hand) => void)[] = [];
  const created = async (): Promise<void> => {
    try {
      const ports = looking(recording?.ports ?? world.ports, world);
      node = await createNode(config, ports, (recording?.options ?? world.options) as NodeOptions);
      const made = node;
      made.tree.observe((e) => o.step?.(e, made, world.time.nowMs));
      o.made?.(made);
      const taken = new Hand(recording === null ? node : recording.around(node));
      hand = taken;
      for (const take of waiting) take(taken);
    } catch (error) {
      failure = messageOf(error);
    }
  };
  world.onHand = (input, value) => {
    if (input[0] === 'told' && input[2] === 'create') void created();
    else if (hand === null) waiting.push((made) => made.take(input, value));
    else hand.take(input, value);
  };
  await lived(world, o, () => node);
  return { node, world, failure };
}

/** Only looks of the tree move the clock, and not those of what records it. */
function looking(ports: Ports, { time }: LooseWorld): Ports {
  const { clock } = ports;
  const looked = <T>(of: () => T) => {
    return () => {
      time.look();
      return of();
    };
  };
  return { ...ports, clock: { ...clock, monoMs: looked(() => clock.monoMs()), wallMs: looked(() => clock.wallMs()) } };
}

function recorded(world: LooseWorld, config: NodeConfig, o: LooseRunInput): InputRecording {
  const { header, around, line } = o;
  // Its own digests are of what the tree says; only the tree gets those of the recorded names.
  const entropy = { bytes: (count: number) => world.ports.entropy.bytes(count), ...around.hashes };
  return new InputRecording(
    { ...world.ports, entropy },
    {
      ...{ config, options: world.options as object, versions: { actorlet: header.actorlet, node: header.node } },
      ...{ afterMicrotasks: around.afterMicrotasks, hashes: world.hashes, chance: () => world.ports.rng.next(), hasStandIns: true },
      write: (text) => {
        line?.(text, { atMs: world.time.nowMs, order: world.time.order });
        return true;
      },
      ended() {},
    },
  );
}

async function lived(world: LooseWorld, { around, endMs, ended }: LooseRunInput, node: () => Node | null): Promise<void> {
  let atMs = world.time.nowMs;
  let steps = 0;
  while (ended?.(node()) !== true && world.time.step(endMs)) {
    await around.drain();
    steps = world.time.nowMs === atMs ? steps + 1 : 0;
    atMs = world.time.nowMs;
    if (steps > STEPS_PER_MS_MAX) throw new Error(`${STEPS_PER_MS_MAX} steps without time: the node spins`);
  }
}
