/** A seed of the simulation as recordings of inputs: what failed there is run and looked at like a node's. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { replayed } from '../replayed.ts';
import { toldTo } from '../toldTo.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-seed-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('a seed that fails is written daemon by daemon, and each does the same again', async () => {
  const io = toldTo();
  // No time to come to rest in: a violation.
  await recordSeed(io, { seed: 8, minutes: 0.2, pods: 3, restMinutesMax: 0 }, dir);
  expect(io.told()).toContain('comes-to-rest: still so 0 virtual minutes after');
  const files = readdirSync(dir).sort();
  expect(files[0]).toBe('seed-8-n1-1.inputs.zst');
  for (const file of files) {
    const { header, next, more } = await openInputs(join(dir, file));
    const { divergence, failure, inputs } = await replayed(header, next, more);
    expect({ divergence, failure }).toEqual({ divergence: null, failure: null });
    expect(inputs).toBeGreaterThan(20);
  }
});
