/** Input of a command that gets its terminal a moment after its start. */
import type { ChildProcess } from 'node:child_process';
import { Transform, Writable } from 'node:stream';

/**
 * Until the output begins with `opens`, input waits: a terminal that is not raw yet would take Ctrl-C and the end for its own.
 * `opens` is no output of the command, and left out of it.
 */
export function afterOpening(child: ChildProcess, opens: string): { output: NodeJS.ReadableStream | null; input: Writable } {
  const { stdin, stdout } = child;
  let open = opens === '' || stdout === null;
  let waiting: (() => void) | null = null;
  const once = (work: () => void): void => {
    if (open) work();
    else waiting = work;
  };
  const input = new Writable({
    write: (chunk: Buffer, _encoding, done) =>
      once(() => {
        if (stdin?.writable === true) stdin.write(chunk, () => done());
        else done();
      }),
    final: (done) =>
      once(() => {
        stdin?.end();
        done();
      }),
  });
  if (open || stdout === null) return { output: stdout, input };
  const mark = Buffer.from(opens);
  let head: Buffer = Buffer.alloc(0);
  const output = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (open) return done(null, chunk);
      head = Buffer.concat([head, chunk]);
      if (head.length < mark.length) return done();
      open = true;
      waiting?.();
      done(null, head.subarray(0, mark.length).equals(mark) ? head.subarray(mark.length) : head);
    },
    flush: (done) => done(null, open ? undefined : head),
  });
  stdout.pipe(output);
  return { output, input };
}
