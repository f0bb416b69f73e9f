/** The hook by which StartContainer hears that a container's command runs, with a real shell. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readyHook } from '../../src/oci/bundle/spec.ts';

it('the hook of a started container reads all that the runtime writes to it, then says so', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'oci-hook-'));
  try {
    const file = join(dir, "it's $HOME ready");
    const { path, args } = readyHook('/bin/sh', file);
    const hook = spawn(path, args.slice(1), { stdio: ['pipe', 'ignore', 'inherit'] });
    const broken: unknown[] = [];
    hook.stdin.on('error', (error) => broken.push(error));
    // More than a pipe holds: who does not read it breaks it.
    hook.stdin.end('x'.repeat(1024 * 1024));
    expect(await once(hook, 'exit')).toEqual([0, null]);
    expect(broken).toEqual([]);
    expect(readFileSync(file, 'utf8')).toBe('up\n');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
