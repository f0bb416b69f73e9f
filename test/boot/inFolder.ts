/** Tests that are given a temporary folder: `it('reads it', async ({ dir }) => ...)`. */
import { test } from 'vitest';
import { tempDir } from './helpers.ts';

export const it = test.extend('dir', async ({ task: _ }, { onCleanup }) => {
  const dir = tempDir();
  onCleanup(() => dir[Symbol.dispose]());
  return dir;
});
