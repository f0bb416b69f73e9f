/** The real journal: a program that is given arguments as they are, and is ended when nobody reads on or its time is over. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { createJournal } from '../../../src/boot/dependencies/machine/journal.ts';
import { eachFolder } from '../../eachFolder.ts';

let dir: string;
eachFolder((made) => (dir = made));

function program(script: string): string {
  const path = join(dir, 'journalctl');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}
const call = (timeoutMs = 60_000, signal = new AbortController().signal) => ({ timeoutMs, signal });
async function all(output: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
/** Of a program that has written its id. */
async function isGone(): Promise<void> {
  const pid = Number(await vi.waitFor(() => readFileSync(join(dir, 'pid'), 'utf8').trim() || Promise.reject(new Error('not yet')), 30_000));
  await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), 30_000);
}
const ENDLESS = 'echo $$ > "$(dirname "$0")/pid"\necho begun\nexec sleep 1000';

it('gives what is printed, errors among it, of a program that is given its arguments as they are', async () => {
  const journal = createJournal(program('for a; do printf "[%s]" "$a"; done; echo " and more" >&2; exit 1'));
  const text = await all(journal.read(['--grep=$(id); a "b"', '--lines=3'], call()));
  expect(text).toContain('[--grep=$(id); a "b"][--lines=3]');
  expect(text).toContain(' and more\n');
});
it('gives much of it whole', async () => {
  const journal = createJournal(program('i=0; while [ $i -lt 20000 ]; do echo "line $i of a long journal"; i=$((i+1)); done'));
  const lines = (await all(journal.read([], call()))).trim().split('\n');
  expect([lines.length, lines.at(-1)]).toEqual([20_000, 'line 19999 of a long journal']);
});
it('throws where there is no such program', async () => {
  await expect(all(createJournal(join(dir, 'none')).read([], call()))).rejects.toThrow('cannot be run');
});
it('is ended at its limit, with what there was until then', async () => {
  const text = await all(createJournal(program(ENDLESS)).read([], call(5_000)));
  expect(text).toMatch(/^(begun\n)?$/);
  // A machine that is slow enough has not even begun it.
  if (text !== '') await isGone();
});
it('is ended when nobody reads on', async () => {
  for await (const chunk of createJournal(program(ENDLESS)).read([], call())) {
    expect(Buffer.from(chunk).toString()).toBe('begun\n');
    break;
  }
  await isGone();
});
it('is ended with its request, and not begun for one that is gone', async () => {
  const request = new AbortController();
  const reading = all(createJournal(program(ENDLESS)).read([], call(60_000, request.signal)));
  await vi.waitFor(() => expect(existsSync(join(dir, 'pid'))).toBe(true), 30_000);
  request.abort();
  await reading;
  await isGone();
  rmSync(join(dir, 'pid'));
  expect(await all(createJournal(program(ENDLESS)).read([], call(60_000, request.signal)))).toBe('');
  expect(existsSync(join(dir, 'pid'))).toBe(false);
});
