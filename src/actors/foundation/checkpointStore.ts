/** Reads and writes checkpoint files; one write per name at a time, the newest value wins, failed writes are retried. */

import { CHECKPOINT_BYTES_MAX, decodeCheckpoint, encodeCheckpoint, isCheckpointName } from '../../machines/foundation/checkpoint.ts';
import type { CheckpointFound } from '../../machines/protocol.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { LastingFolder } from '../../ports/lastingFolder.ts';
import type { Logger, Ports } from '../../ports/ports.ts';
import { inTurn } from '../../ports/turns.ts';

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 60_000;
/** More names than the whole node needs: beyond it somebody makes them up. */
const NAMES_MAX = 64;

interface Slot {
  /** What readers get. */
  value: unknown;
  /** `value` is newer than the file. */
  dirty: boolean;
  writing: Promise<void> | null;
  retryMs: number;
  timer: unknown;
}

export interface CheckpointStore {
  /** Never throws; a refused put is logged with its reason. */
  put(name: string, value: unknown): void;
  /** Rejects when the disk cannot be read, or the name is not one. */
  get(name: string): Promise<CheckpointFound>;
  /** Tries to write everything that is dirty, once; resolves with the names that could not be written. */
  flush(): Promise<string[]>;
  dispose(): void;
}

/** `dir` is `<root-dir>/actorlet/state`, `root` the root directory; made (0700) when first written. */
export function createCheckpointStore(
  ports: Pick<Ports, 'fs' | 'clock' | 'entropy'>,
  o: { dir: string; root: string; log: Logger },
): CheckpointStore {
  const { fs, clock, entropy } = ports;
  const folder = new LastingFolder(fs, o.dir, { mode: 0o700, root: o.root });
  const slots = new Map<string, Slot>();
  const sha = (text: string) => entropy.sha256Hex(text);
  const fileOf = (name: string) => `${o.dir}/${name}.json`;

  /** null, and a log line, for what can never be written: trying again would not help. */
  const encode = (name: string, value: unknown): Uint8Array | null => {
    try {
      const bytes = new TextEncoder().encode(encodeCheckpoint(name, value, sha));
      if (bytes.length <= CHECKPOINT_BYTES_MAX) return bytes;
      throw new Error(`${bytes.length} bytes, at most ${CHECKPOINT_BYTES_MAX} are kept`);
    } catch (error) {
      o.log.error({ file: fileOf(name), err: messageOf(error) }, 'checkpoint refused: the file keeps the document before it');
      return null;
    }
  };
  const write = async (name: string, value: unknown) => {
    const bytes = encode(name, value);
    if (bytes === null) return;
    const tmp = `${o.dir}/.${name}.json.tmp`;
    await inTurn(fs, fileOf(name), async () => {
      await folder.make();
      await fs.writeFile(tmp, bytes, { mode: 0o600, fsync: true });
      await fs.rename(tmp, fileOf(name));
      await fs.fsyncDir(o.dir);
    });
  };

  const save = (name: string, slot: Slot): Promise<void> => {
    if (slot.writing !== null) return slot.writing;
    clock.clearTimeout(slot.timer);
    const run = async () => {
      while (slot.dirty) {
        slot.dirty = false;
        try {
          await write(name, slot.value);
          slot.retryMs = RETRY_MIN_MS;
        } catch (error) {
          slot.dirty = true;
          o.log.error(
            { file: fileOf(name), err: messageOf(error), retryMs: slot.retryMs },
            'checkpoint could not be written; will try again',
          );
          slot.timer = clock.setTimeout(() => void save(name, slot), slot.retryMs);
          slot.retryMs = Math.min(RETRY_MAX_MS, slot.retryMs * 2);
          return;
        }
      }
    };
    slot.writing = run().finally(() => {
      slot.writing = null;
    });
    return slot.writing;
  };

  const setAside = async (name: string, kind: string, why: string) => {
    const from = fileOf(name);
    const to = `${from}.${kind}-${clock.wallMs()}`;
    await fs.rename(from, to);
    o.log.error({ file: from, movedTo: to, why }, `checkpoint is ${kind} and was set aside; what it held is rebuilt from runtime and API`);
  };

  return {
    put(name, value) {
      const known = slots.get(name);
      if (known === undefined && (!isCheckpointName(name) || slots.size >= NAMES_MAX)) {
        o.log.error({ name }, `checkpoint refused: ${isCheckpointName(name) ? `more than ${NAMES_MAX} names` : 'not a valid name'}`);
        return;
      }
      const slot = known ?? { value, dirty: true, writing: null, retryMs: RETRY_MIN_MS, timer: undefined };
      slot.value = value;
      slot.dirty = true;
      slots.set(name, slot);
      void save(name, slot);
    },
    async get(name) {
      if (!isCheckpointName(name)) throw new Error(`${JSON.stringify(name)} is not a checkpoint name`);
      const slot = slots.get(name);
      if (slot !== undefined) return { found: true, value: slot.value };
      let bytes: Uint8Array;
      try {
        bytes = await inTurn(fs, fileOf(name), () => fs.readFile(fileOf(name), { bytesMax: CHECKPOINT_BYTES_MAX }));
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return { found: false };
        if (codeOf(error) !== 'EFBIG') throw error;
        await setAside(name, 'corrupt', `larger than ${CHECKPOINT_BYTES_MAX} bytes`);
        return { found: false };
      }
      const read = decodeCheckpoint(name, new TextDecoder().decode(bytes), sha);
      if (read.ok) return { found: true, value: read.value };
      await setAside(name, read.kind, read.why);
      return { found: false };
    },
    async flush() {
      await Promise.all([...slots].filter(([, s]) => s.dirty || s.writing !== null).map(([name, slot]) => save(name, slot)));
      return [...slots].filter(([, s]) => s.dirty).map(([name]) => name);
    },
    dispose() {
      for (const slot of slots.values()) clock.clearTimeout(slot.timer);
    },
  };
}
