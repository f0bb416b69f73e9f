/** The process around a replay. */
import { hash } from 'node:crypto';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { observer } from '@actorlet/observe/src/observer.ts';
import { whoActs } from '@actorlet/process/src/acting.ts';
import type { Surroundings } from '@actorlet/replay/src/lenient/run.ts';
import type { CtlIo } from '../../io.ts';

const hashed = (kind: 'md5' | 'sha256') => (text: string | Uint8Array) => hash(kind, text, 'hex');

/** A run of the node ends with {@link CtlError} once `signal` aborts. */
export function surroundings({ signal }: Pick<CtlIo, 'signal'>): Surroundings {
  return {
    hashes: { md5Hex: hashed('md5'), sha256Hex: hashed('sha256') },
    async drain() {
      // Ctrl-C is heard in a turn of the event loop, and this is one.
      await new Promise((resolve) => void setImmediate(resolve));
      if (signal.aborted) throw new CtlError(EXIT.interrupted, 'interrupted');
    },
    extensions: [observer],
    who: whoActs,
    afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
  };
}
