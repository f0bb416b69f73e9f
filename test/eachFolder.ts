/** A folder of its own for each test of a file, removed after it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

export function eachFolder(given: (dir: string) => unknown): void {
  let dir = '';
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'actorlet-test-'));
    given(dir);
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
}
