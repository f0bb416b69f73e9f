/** Daemons of the simulation while they are recorded. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { runSim, type SimOptions, type SimResult } from '@actorlet/sim/src/index.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Entry, Header } from '../../src/entries.ts';
import { InputRecording } from '../../src/record.ts';

export interface Recorded {
  node: SimNode;
  lines: string[];
}

/** What is done to the first daemon, so long after it was made; it may inject faults. */
interface ByHand {
  atMs: number;
  act(node: Node): Promise<void>;
}

/** @param below Changes the ports below the recording. @param flags More of what each daemon is started with. */
export async function recorded(
  o: SimOptions,
  byHand?: ByHand,
  below: (ports: Ports) => Ports = (ports) => ports,
  flags: Partial<NodeConfig['flags']> = {},
): Promise<{ daemons: Recorded[]; result: SimResult }> {
  const all: Recorded[] = [];
  const result = await runSim({
    ...o,
    between(node: SimNode, config: NodeConfig, ports: Ports) {
      // The daemon is made with this very object.
      Object.assign(config.flags, flags, byHand === undefined ? {} : { faultInjection: true });
      const one: Recorded = { node, lines: [] };
      all.push(one);
      const recording = new InputRecording(below(ports), {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => one.lines.push(line) > 0,
        ended() {},
      });
      return {
        ports: recording.ports,
        wrap(made: Node) {
          const around = recording.around(made);
          if (byHand !== undefined && all.length === 1) ports.clock.setTimeout(() => void byHand.act(around), byHand.atMs);
          return around;
        },
      };
    },
  });
  return { daemons: all, result };
}

export const headerOf = ({ lines }: Recorded) => JSON.parse(lines[0] ?? '') as Header;
export function entriesOf({ lines }: Recorded): () => Entry | null {
  let at = 1;
  return () => (at < lines.length ? entryOfLine(lines[at++] ?? '') : null);
}
