/** Runs the tree of this checkout on a recording without its order, and records it anew. */
import type { Extend } from '@actorlet/kubelet/actors/extension.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { configOf } from '../border.ts';
import type { AfterMicrotasks } from '../inbox.ts';
import { Player, type PlayInput } from '../player/player.ts';
import { InputRecording } from '../record.ts';
import type { WhoActs } from '../seen/whose.ts';
import { Lenient, type LenientInput } from './lenient.ts';

/** What this code may not reach itself. */
export interface Surroundings {
  readonly hashes: LenientInput['hashes'];
  /** Resolves once every promise that can settle has settled. */
  drain(): Promise<void>;
  readonly afterMicrotasks: AfterMicrotasks;
  /** As of {@link PlayInput}. */
  readonly extensions?: readonly Extend[];
  /** Tells whose doing something is, in one run. */
  who(): WhoActs;
}

/** `order`: number of the recorded input that the tree has. */
type LineHeard = (line: string, at: { atMs: number; order: number | null }) => void;

export interface LenientRunInput extends Omit<LenientInput, 'ended'> {
  readonly around: Surroundings;
  /** In place of the recorded one. */
  readonly config?: NodeConfig;
  /** Gets the lines of the new recording, which is made only where somebody wants it. */
  readonly line?: LineHeard | undefined;
  /** Asked after each step; true ends the run. */
  ended?(node: Node | null): boolean;
  step?(e: SupervisionEvent, node: Node, nowMs: number): void;
  readonly own: Pick<Ports, 'log' | 'metrics'>;
  readonly made?: PlayInput['made'];
}

export async function runLeniently(o: LenientRunInput): Promise<{ player: Player; lenient: Lenient }> {
  const { edit, header, ended, step, line } = o;
  const lenient: Lenient = new Lenient({ ...o, ended: ended === undefined ? undefined : () => ended(player.node) });
  const config = o.config ?? configOf(edit.into(header.config));
  const player: Player = new Player(lenient, {
    ...{ config, own: o.own, header: { ports: edit.into(header.ports), options: edit.into(header.options) } },
    drain: () => o.around.drain(),
    extensions: o.around.extensions,
    between: (ports, options) => {
      const recording = line === undefined ? null : recorded(lenient, { ...o, config, ports, options, line });
      lenient.begin();
      return {
        ports: looking(recording?.ports ?? ports, lenient),
        options: recording?.options ?? options,
        around: (node) => recording?.around(node) ?? node,
      };
    },
    step: (e, node) => step?.(e, node, lenient.time.nowMs),
    made: o.made,
  });
  while (await player.next());
  return { player, lenient };
}

/** Only looks of the tree move the clock, and not those of what records it. */
function looking(ports: Ports, { time }: Lenient): Ports {
  const { clock } = ports;
  const looked = <T>(of: () => T) => {
    return () => {
      time.look();
      return of();
    };
  };
  return { ...ports, clock: { ...clock, monoMs: looked(() => clock.monoMs()), wallMs: looked(() => clock.wallMs()) } };
}

function recorded(
  lenient: Lenient,
  o: Required<Pick<LenientRunInput, 'config' | 'header' | 'around'>> & { ports: Ports; options: object; line: LineHeard },
): InputRecording {
  const { header, around, config, options } = o;
  // Its own digests are of what the tree says; only the tree gets those of the recorded names.
  const entropy = { bytes: (count: number) => lenient.entropy.bytes(count), ...around.hashes };
  return new InputRecording(
    { ...o.ports, entropy },
    {
      ...{ config, options, versions: { actorlet: header.actorlet, node: header.node }, afterMicrotasks: around.afterMicrotasks },
      ...{ hashes: lenient.hashes, chance: () => lenient.drawn(), hasStandIns: true },
      write: (text) => {
        o.line(text, { atMs: lenient.time.nowMs, order: lenient.time.order });
        return true;
      },
      ended() {},
    },
  );
}
