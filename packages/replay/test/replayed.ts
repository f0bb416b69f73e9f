/** Runs the tree of this checkout on a recording. */
import { createHash } from 'node:crypto';
import type { Entry, Header } from '../src/entries.ts';
import { type Replayed, replay } from '../src/player/replay.ts';
import { silentLogger, silentMetrics } from '../src/player/silent.ts';

const hashed = (kind: string) => (text: string | Uint8Array) => createHash(kind).update(text).digest('hex');

export function replayed(header: Header, next: () => Entry | null, more?: () => Promise<void> | null): Promise<Replayed> {
  return replay({
    ...{ header, next, ...(more === undefined ? {} : { more }) },
    own: { log: silentLogger, metrics: silentMetrics },
    entropy: { md5Hex: hashed('md5'), sha256Hex: hashed('sha256') },
    drain: () => new Promise((resolve) => void setImmediate(resolve)),
  });
}
