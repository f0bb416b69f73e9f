/** A terminal of `actorctl` that keeps what it is told. */
import { Readable } from 'node:stream';
import type { CtlIo } from '@actorlet/ctl/src/io.ts';

export function toldTo(): CtlIo & { told(): string } {
  let text = '';
  const say = (more: string): void => {
    text += more;
  };
  return {
    ...{ argv: [], env: {}, columns: 0, stdin: Readable.from([]), signal: new AbortController().signal },
    ...{ out: say, err: say, outBytes: () => undefined, errBytes: () => undefined },
    exists: () => false,
    nowMs: () => 0,
    told: () => text,
  };
}
