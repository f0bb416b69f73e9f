/** Ports with a way of their own into a recording: chance, and pages of figures. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Entropy, Metrics } from '@actorlet/kubelet/ports/ports.ts';
import type { Json, Now } from './entries.ts';
import type { Masked } from './secrets/masks.ts';
import { bytesJson } from './values.ts';

/** What a recording offers them. */
export interface Asker {
  /** False: nothing is written any more. */
  readonly on: boolean;
  /** A value of the tree. `whole`: before anything secret is hidden in it. */
  out(value: unknown): Masked & { whole: Json };
  asked(name: string, args: readonly unknown[], now: Now): void;
  nextCall(): number;
  deliver(head: 'settled' | 'failed', rest: string, act: () => void): void;
}

/** Longer ones are keys. */
const NAME_BYTES_MAX = 4;

/** Numbers that no seed makes. */
export function recordedChance(chance: () => number, asker: Asker): () => number {
  return () => {
    const value = chance();
    if (asker.on) asker.asked('rng.next', [], { value });
    return value;
  };
}

/** Digests are the same in a replay, but where they are of something secret. `hashes`: in place of those of the texts. */
export function recordedEntropy(entropy: Entropy, asker: Asker, hashes?: Pick<Entropy, 'md5Hex' | 'sha256Hex'>): Entropy {
  const keys: string[] = [];
  const digest =
    (name: 'md5Hex' | 'sha256Hex') =>
    (text: string | Uint8Array): string => {
      const result = (hashes ?? entropy)[name](text);
      if (!asker.on || (typeof text === 'string' && keys.some((key) => text.includes(key)))) return result;
      const { whole, masks } = asker.out(text);
      const plain = typeof text === 'string' ? text : bytesJson(text);
      if (hashes !== undefined || masks.length > 0 || JSON.stringify(whole) !== JSON.stringify(plain))
        asker.asked(`entropy.${name}`, [text], { value: result });
      return result;
    };
  return {
    bytes: (count) => {
      const bytes = entropy.bytes(count);
      // A replay makes keys of its own: nothing that goes out shows them, or a digest under them.
      if (count > NAME_BYTES_MAX) keys.push(bytes.reduce((hex, byte) => hex + byte.toString(16).padStart(2, '0'), ''));
      else if (asker.on) asker.asked('entropy.bytes', [count], { value: bytesJson(bytes) });
      return bytes;
    },
    md5Hex: digest('md5Hex'),
    sha256Hex: digest('sha256Hex'),
  };
}

/** A page of figures is an answer by whose text nothing decides: only when it came is written. */
export function recordedMetrics(metrics: Metrics, asker: Asker): Metrics {
  return {
    ...metrics,
    render: (wanted) => {
      const page = metrics.render(wanted);
      if (!asker.on) return page;
      asker.asked('metrics.render', [], 'later');
      const call = asker.nextCall();
      return new Promise((resolve, reject) => {
        page.then(
          (text) => asker.deliver('settled', `${call},""`, () => resolve(text)),
          (error: unknown) => asker.deliver('failed', `${call},${JSON.stringify(messageOf(error))}`, () => reject(error)),
        );
      });
    },
  };
}
