/** The process around a replay. */
import { hash } from 'node:crypto';
import type { Surroundings } from '../../../replay/loose/run.ts';

const hashed = (kind: 'md5' | 'sha256') => (text: string | Uint8Array) => hash(kind, text, 'hex');

export const surroundings: Surroundings = {
  hashes: { md5Hex: hashed('md5'), sha256Hex: hashed('sha256') },
  drain: () => new Promise((resolve) => void setImmediate(resolve)),
  afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
};
