/** Daemons of the simulation, recorded and run again: each does exactly what it did, and what is changed shows by name. */
import { expect, it } from 'vitest';
import { rotating } from '../../../../test/rotation.ts';
import type { Header } from '../../src/entries.ts';
import { replayed } from '../replayed.ts';
import { entriesOf, headerOf, recorded } from './recordedSim.ts';

const PARTS = 5;

// Kills, faults of ports and mailboxes, questions from outside, tokens, credentials for registries; 1 and 4: nodes of a cluster.
it.each(rotating('simulated daemons', [9, 1, 14, 4, 32], PARTS))('seed %i: each daemon does again what it did', async (seed) => {
  const { daemons: all, result: run } = await recorded({ seed, minutes: 0.4, pods: 5 });
  expect(run.violation).toBeNull();
  let inputs = 0;
  for (const one of all) {
    const result = await replayed(headerOf(one), entriesOf(one));
    expect({ ...result, steps: [] }).toMatchObject({ divergence: null, failure: null });
    inputs += result.inputs;
  }
  expect(inputs).toBeGreaterThan(1_000);
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
