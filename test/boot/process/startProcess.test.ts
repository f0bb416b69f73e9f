/** Processes that cannot be started: every caller is told, and nothing ends the daemon. */
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createJournal } from '../../../src/boot/dependencies/machine/journal.ts';
import { MountBatches } from '../../../src/boot/dependencies/mounts/mountBatches.ts';
import { runHelper } from '../../../src/boot/dependencies/mounts/mounter.ts';
import { runProgram } from '../../../src/boot/dependencies/program.ts';

const PROJECT = join(import.meta.dirname, '../../..');
const SRC = join(PROJECT, 'src');
const PACKAGES = join(PROJECT, 'packages');
const call = () => ({ timeoutMs: 20_000, signal: new AbortController().signal });
/** More than the 128 KiB that Linux takes as one argument: `spawn` throws E2BIG. */
const LONG = 'x'.repeat(200_000);

describe('an argument that the kernel refuses (E2BIG thrown by spawn)', () => {
  it('fails that mount alone: those of its batch are done', async () => {
    const batches = new MountBatches();
    const results = await Promise.allSettled([
      batches.run(['true'], call()),
      batches.run(['true', LONG], call()),
      batches.run(['true', 'a\0b'], call()),
      batches.run(['true'], call()),
    ]);
    expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'EIO', message: expect.stringContaining('E2BIG') } });
    expect(results[2]).toMatchObject({ reason: { code: 'EINVAL', message: expect.stringContaining('zero byte') } });
  });

  it('splits a batch whose calls are long, so that none of them fails', async () => {
    const batches = new MountBatches();
    await Promise.all(Array.from({ length: 6 }, () => batches.run(['true', 'x'.repeat(40_000)], call())));
  });

  it('is told by a helper, a credential program and journalctl', async () => {
    await expect(runHelper('/bin/true', [LONG], call())).rejects.toMatchObject({ code: 'EIO', message: /E2BIG/ });
    const program = { command: '/bin/true', args: [LONG], env: {} };
    await expect(runProgram(program, { clock: createClock(), limitMs: 20_000 })).rejects.toThrow('cannot be run: E2BIG');
    const read = async () => {
      for await (const _ of createJournal('/bin/true').read([LONG], call()));
    };
    await expect(read()).rejects.toThrow('E2BIG');
  });
});

/** Opens files until none are left, then asks for everything that starts a process. */
const WITHOUT_DESCRIPTORS = `
import { openSync } from 'node:fs';
import { createClock } from '${SRC}/boot/dependencies/clock.ts';
import { createJournal } from '${SRC}/boot/dependencies/machine/journal.ts';
import { MountBatches } from '${SRC}/boot/dependencies/mounts/mountBatches.ts';
import { runHelper } from '${SRC}/boot/dependencies/mounts/mounter.ts';
import { runProgram } from '${SRC}/boot/dependencies/program.ts';
import { acquireLock } from '${PACKAGES}/runtimes/src/process/store/lock.ts';
const call = { timeoutMs: 20000, signal: new AbortController().signal };
process.on('uncaughtException', (e) => { process.stdout.write('UNCAUGHT ' + e.message + '\\n'); });
try { for (;;) openSync('/dev/null'); } catch {}
const journal = async () => { for await (const _ of createJournal('/bin/true').read([], call)); };
const all = await Promise.allSettled([
  new MountBatches().run(['true'], call),
  runHelper('/bin/true', [], call),
  runProgram({ command: '/bin/true', args: [], env: {} }, { clock: createClock(), limitMs: 20000 }),
  journal(),
  acquireLock('/nowhere', () => {}),
]);
for (const one of all) process.stdout.write((one.status === 'rejected' ? one.reason.message : one.status) + '\\n');
setTimeout(() => process.exit(0), 50);
`;

it('no file descriptors left: each caller is told EMFILE, and nothing is uncaught', async () => {
  const args = ['-c', 'ulimit -n 120; exec "$0" --input-type=module -e "$1"', process.execPath, WITHOUT_DESCRIPTORS];
  const { stdout } = await promisify(execFile)('/bin/sh', args, { timeout: 60_000 });
  const lines = stdout.trim().split('\n');
  expect(lines).toHaveLength(5);
  for (const line of lines) expect(line).toMatch(/^(?!UNCAUGHT).*EMFILE/);
});

it('processes are started in one place', () => {
  const files = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts'], { cwd: PROJECT });
  const own = files.filter((name) =>
    /import (?!type).*\b(?:spawn|fork)\b.* from 'node:child_process'/.test(readFileSync(join(PROJECT, name), 'utf8')),
  );
  expect(own).toEqual(['packages/process/src/startProcess.ts']);
});
