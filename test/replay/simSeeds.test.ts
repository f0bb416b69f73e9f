/** Daemons of the simulation, recorded and run again: each does exactly what it did, and what is changed shows by name. */
import { expect, it } from 'vitest';
import type { Node } from '../../src/actors/node.ts';
import type { NodeConfig } from '../../src/machines/config/config.ts';
import type { Ports } from '../../src/ports/ports.ts';
import { entryOf } from '../../src/replay/check.ts';
import type { Entry, Header } from '../../src/replay/entries.ts';
import { InputRecording } from '../../src/replay/record.ts';
import { runSim, type SimOptions } from '../../src/sim/index.ts';
import type { SimNode } from '../../src/sim/world/node/types.ts';
import { replayed } from './replayed.ts';

interface Recorded {
  node: SimNode;
  lines: string[];
}

async function recorded(o: SimOptions): Promise<Recorded[]> {
  const all: Recorded[] = [];
  const result = await runSim({
    ...o,
    between(node: SimNode, config: NodeConfig, ports: Ports) {
      const one: Recorded = { node, lines: [] };
      all.push(one);
      const recording = new InputRecording(ports, {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => one.lines.push(line) > 0,
        ended() {},
      });
      return {
        ports: recording.ports,
        wrap(made: Node) {
          made.tree.observe((e) => recording.step(e));
          const { tree } = made;
          const kill = tree.kill.bind(tree);
          tree.kill = (path, by) => recording.killed(path, () => kill(path, by));
          return {
            ...made,
            start: () => recording.told('start', () => made.start()),
            stop: () => recording.told('stop', () => made.stop()),
          };
        },
      };
    },
  });
  expect(result.violation).toBeNull();
  expect([...result.faults.keys()].filter((kind) => /^(?:mailbox|ask)\./.test(kind))).toEqual([]);
  return all;
}

const headerOf = ({ lines }: Recorded) => JSON.parse(lines[0] ?? '') as Header;
function entriesOf({ lines }: Recorded): () => Entry | null {
  let at = 1;
  return () => (at < lines.length ? entryOf(JSON.parse(lines[at++] ?? '')) : null);
}

// Seeds whose faults come through the ports alone: those of mailboxes do not.
it.each([8, 9])('seed %i: each daemon does again what it did', async (seed) => {
  const all = await recorded({ seed, minutes: 0.4, pods: 5 });
  let inputs = 0;
  for (const one of all) {
    const result = await replayed(headerOf(one), entriesOf(one));
    expect({ ...result, steps: [] }).toMatchObject({ divergence: null, failure: null });
    inputs += result.inputs;
  }
  expect(inputs).toBeGreaterThan(2_000);
  // Another decision shows at once, and by name.
  const [first] = all;
  if (first === undefined) throw new Error('no daemon ran');
  const header = headerOf(first) as unknown as { config: { config: { fileCheckFrequency: number } } };
  header.config.config.fileCheckFrequency += 1_000;
  const changed = await replayed(header as unknown as Header, entriesOf(first));
  expect(changed.divergence).toMatchObject({
    was: expect.stringMatching(/^a timer of \d+ ms$/),
    now: expect.stringMatching(/^a timer of \d+ ms$/),
  });
});
