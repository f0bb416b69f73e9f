/** The recording of a node like the quick start's: five pods, of which one crashes again and again. */
import { surroundings } from '@actorlet/ctl/src/commands/replay/surroundings.ts';
import { pod, type VirtualNodeOptions, virtualNode } from '../../../../test/integration/virtualNode.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Entry, Header } from '../../src/entries.ts';
import { silentLogger, silentMetrics } from '../../src/player/silent.ts';
import { InputRecording } from '../../src/record.ts';
import { toldTo } from '../toldTo.ts';

export const OWN = { log: silentLogger, metrics: silentMetrics };
export const AROUND = surroundings(toldTo());

/** Its lines. It is told to stop at the end. `manifests`: more pods. `before`: it is not started yet. */
export async function quickStart(
  minutes: number,
  { manifests = {}, before = () => {} }: Pick<VirtualNodeOptions, 'manifests' | 'before'> = {},
): Promise<string[]> {
  const lines: string[] = [];
  let recording: InputRecording | undefined;
  const crasher = pod('crasher', { life: 'run=1s,exit=3' });
  await using h = await virtualNode({
    before,
    manifests: {
      ...manifests,
      'crasher.yaml': crasher,
      'init.yaml': pod('init', { inits: [{}, {}], lives: { 'init-0': 'run=1s', 'init-1': 'run=1s' } }),
    },
    hollow: { latencyMs: () => 20 },
    between(config, ports) {
      recording = new InputRecording(ports, {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => lines.push(line) > 0,
        ended() {},
      });
      const made = recording;
      return { ports: made.ports, wrap: (node) => made.around(node) };
    },
  });
  for (const name of ['steady', 'graceful', 'second']) h.write(`${name}.yaml`, pod(name));
  await h.advance(minutes * 60_000);
  let stopped = false;
  void h.node.stop().then(() => {
    stopped = true;
  });
  await h.until('it stops', () => stopped);
  recording?.end('the daemon ended');
  return lines;
}

export function inputsOf(lines: readonly string[]): { header: Header; entries(): () => Entry | null } {
  return {
    header: JSON.parse(lines[0] ?? '') as Header,
    entries() {
      let at = 1;
      return () => (at < lines.length ? entryOfLine(lines[at++] ?? '') : null);
    },
  };
}
