/** The recording of a node like the quick start's: five pods, of which one crashes again and again. */
import { surroundings } from '@actorlet/ctl/src/commands/replay/surroundings.ts';
import { pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../../../../test/integration/virtualNode.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Entry, Header } from '../../src/entries.ts';
import { silentLogger, silentMetrics } from '../../src/player/silent.ts';
import { InputRecording } from '../../src/record.ts';
import { toldTo } from '../toldTo.ts';

export const OWN = { log: silentLogger, metrics: silentMetrics };
export const AROUND = surroundings(toldTo());

/** Its lines. It is told to stop at the end. `manifests`: more pods. `before`: it is not started yet. `hollow`: of its runtime. */
export function quickStart(
  minutes: number,
  { manifests = {}, before = () => {}, hollow = {} }: Pick<VirtualNodeOptions, 'manifests' | 'before' | 'hollow'> = {},
): Promise<string[]> {
  const crasher = pod('crasher', { life: 'run=1s,exit=3' });
  const pods = {
    ...manifests,
    'crasher.yaml': crasher,
    'init.yaml': pod('init', { inits: [{}, {}], lives: { 'init-0': 'run=1s', 'init-1': 'run=1s' } }),
  };
  return recordedNode({ before, manifests: pods, hollow: { latencyMs: () => 20, ...hollow } }, async (h) => {
    for (const name of ['steady', 'graceful', 'second']) h.write(`${name}.yaml`, pod(name));
    await h.advance(minutes * 60_000);
  });
}

/** The lines of the recording of a node's last daemon: it is told to stop once `live` is over. */
export async function recordedNode(o: VirtualNodeOptions, live: (h: VirtualNode) => Promise<void>): Promise<string[]> {
  let lines: string[] = [];
  let recording: InputRecording | undefined;
  await using h = await virtualNode({
    hollow: { latencyMs: () => 20 },
    ...o,
    between(config, ports) {
      const own: string[] = [];
      lines = own;
      recording = new InputRecording(ports, {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => own.push(line) > 0,
        ended() {},
      });
      const made = recording;
      return { ports: made.ports, wrap: (node) => made.around(node) };
    },
  });
  await live(h);
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
