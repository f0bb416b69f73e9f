/** Input of a command that gets its terminal a moment after its start. */
import type { ChildProcess } from 'node:child_process';
import { Transform } from 'node:stream';

/**
 * Until the output begins with `opens`, input waits: a terminal that is not raw yet would take Ctrl-C and the end for its own.
 * `opens` is no output of the command, and left out of it.
 */
export function afterOpening(child: ChildProcess, opens: string): { output: NodeJS.ReadableStream | null; input(bytes: Buffer): void } {
  const { stdin, stdout } = child;
  /** An empty one is the end. */
  const send = (bytes: Buffer): void => void (bytes.length === 0 ? stdin?.end() : stdin?.write(bytes));
  if (opens === '' || stdout === null) return { output: stdout, input: send };
  const mark = Buffer.from(opens);
  const waiting: Buffer[] = [];
  let head: Buffer = Buffer.alloc(0);
  let open = false;
  const output = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (open) return done(null, chunk);
      head = Buffer.concat([head, chunk]);
      if (head.length < mark.length) return done();
      open = true;
      for (const bytes of waiting) send(bytes);
      done(null, head.subarray(0, mark.length).equals(mark) ? head.subarray(mark.length) : head);
    },
    flush: (done) => done(null, open ? undefined : head),
  });
  stdout.pipe(output);
  return {
    output,
    input(bytes) {
      if (open) send(bytes);
      else waiting.push(bytes);
    },
  };
}
