/** Splits the body of a watch into its lines. */
import type { Readable } from 'node:stream';

/** An object of the API is at most a few MiB; a line beyond this is no object. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;

/** Whole lines only: a stream that is cut, or ends inside a line, throws and the rest of it is dropped. `ended` runs once. */
export async function* watchLines(body: Readable, ended: () => void): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const chunk of body) {
      rest += decoder.decode(Buffer.from(chunk), { stream: true });
      let from = 0;
      for (let at = rest.indexOf('\n'); at >= 0; at = rest.indexOf('\n', from)) {
        const line = rest.slice(from, at).trim();
        from = at + 1;
        if (line !== '') yield line;
      }
      rest = rest.slice(from);
      if (rest.length > LINE_BYTES_MAX) throw new Error(`a line of the watch is longer than ${LINE_BYTES_MAX} bytes`);
    }
    if (rest.trim() !== '') throw new Error('the watch ended inside a line');
  } finally {
    // Also when the reader stopped early.
    body.destroy();
    ended();
  }
}
