/** Input of commands in a terminal that is not there at once. */
import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { afterOpening } from '../src/process/streaming/terminalInput.ts';

const sh = (script: string) => spawn('sh', ['-c', script]);

it('keeps input and its end until the output begins with the mark, and leaves the mark out', async () => {
  const child = sh('printf "\\006up\\006"; printf "> "; cat');
  const { output, input } = afterOpening(child, '\u0006up\u0006');
  input.end('hello\n');
  expect(await text(output ?? Readable.from([]))).toBe('> hello\n');
});

it('passes on what comes instead of the mark, short or long', async () => {
  for (const said of ['no', 'no such program'])
    expect(await text(afterOpening(sh(`printf '%s' '${said}'`), '\u0006up\u0006').output ?? Readable.from([]))).toBe(said);
});

it('waits for nothing where there is no mark', async () => {
  const { output, input } = afterOpening(sh('cat'), '');
  input.end('x');
  expect(await text(output ?? Readable.from([]))).toBe('x');
});
