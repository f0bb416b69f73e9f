/** What tests that `actorctl replay --to-test` wrote run. */
import { fileURLToPath } from 'node:url';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { expect } from 'vitest';
import { replayed } from './replayed.ts';

/** Fails where a node of this checkout does something else than what is recorded in the file. */
export async function livesAgain(file: URL): Promise<void> {
  const { header, next, more } = await openInputs(fileURLToPath(file));
  const { divergence, failure } = await replayed(header, next, more);
  expect({ divergence, failure }).toEqual({ divergence: null, failure: null });
}
