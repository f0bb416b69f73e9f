/** Lines of a watch, in whatever pieces they come. */
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { watchLines } from '../../../src/boot/dependencies/kube/lines.ts';

async function linesOf(pieces: Iterable<Uint8Array>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of watchLines(Readable.from(pieces), () => {})) lines.push(line);
  return lines;
}
function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

it.each([1, 2, 7, 1_000])('come whole from pieces of %i bytes', async (size) => {
  const long = `{"b":"${'äöü€'.repeat(2_000)}"}`;
  expect(await linesOf(cut(bytesOf(`{"a":1}\n\n ${long} \n{}\n`), size))).toEqual(['{"a":1}', long, '{}']);
});

it('are refused where one is longer than any object, or has no end', async () => {
  const part = bytesOf('x'.repeat(1024 * 1024));
  await expect(linesOf(Array.from({ length: 17 }, () => part))).rejects.toThrow('longer than');
  await expect(linesOf([bytesOf('{}\n{')])).rejects.toThrow('ended inside a line');
});

/** Each piece looked at together with all before it would take minutes. */
it('cost no more in small pieces than their bytes', async () => {
  const text = `"${'x'.repeat(8 * 1024 * 1024)}"`;
  const began = performance.now();
  expect(await linesOf(cut(bytesOf(`${text}\n`), 64))).toEqual([text]);
  expect(performance.now() - began).toBeLessThan(20_000);
}, 600_000);
