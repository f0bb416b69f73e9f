/** Splits the body of a watch into its lines. */
import type { Readable } from 'node:stream';

/** An object of the API is at most a few MiB; a line beyond this is no object. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;

/** Pieces of a line that are kept apart: each costs more than its bytes, and to join them costs all that is there. */
const PIECES_MAX = 1024;

/** Whole lines only: a stream that is cut, or ends inside a line, throws and the rest of it is dropped. `ended` runs once. */
export async function* watchLines(body: Readable, ended: () => void): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  /** The line that has not ended: its beginning, and what came after that. A peer may send it byte by byte. */
  let begun = '';
  let pieces: string[] = [];
  let chars = 0;
  const whole = (): string => {
    const line = begun + pieces.join('');
    [begun, pieces, chars] = ['', [], 0];
    return line;
  };
  try {
    for await (const chunk of body) {
      const text = decoder.decode(Buffer.from(chunk), { stream: true });
      let from = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        pieces.push(text.slice(from, at));
        from = at + 1;
        const line = whole().trim();
        if (line !== '') yield line;
      }
      pieces.push(text.slice(from));
      chars += text.length - from;
      if (chars > LINE_BYTES_MAX) throw new Error(`a line of the watch is longer than ${LINE_BYTES_MAX} bytes`);
      if (pieces.length < PIECES_MAX) continue;
      begun += pieces.join('');
      pieces = [];
    }
    if (whole().trim() !== '') throw new Error('the watch ended inside a line');
  } finally {
    // Also when the reader stopped early.
    body.destroy();
    ended();
  }
}
