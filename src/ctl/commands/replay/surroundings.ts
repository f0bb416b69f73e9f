/** The process around a replay. */
import { createHash } from 'node:crypto';
import type { Surroundings } from '../../../replay/loose/run.ts';

const hash = (kind: 'md5' | 'sha256') => (text: string | Uint8Array) => createHash(kind).update(text).digest('hex');

export const surroundings: Surroundings = {
  hashes: { md5Hex: hash('md5'), sha256Hex: hash('sha256') },
  drain: () => new Promise((resolve) => void setImmediate(resolve)),
  afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
};
