/** Reads and writes checkpoint files; one write per name at a time, the newest value wins, failed writes are retried. */

import {
  CHECKPOINT_BYTES_MAX,
  decodeCheckpoint,
  encodeCheckpoint,
  isCheckpointName,
  isKubelets,
} from '../../machines/foundation/checkpoint.ts';
import type { CheckpointFound } from '../../machines/foundation/messages.ts';
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

type StorePorts = Pick<Ports, 'fs' | 'clock' | 'entropy'>;
interface StoreOptions {
  dir: string;
  root: string;
  log: Logger;
}

/** `dir` is `<root-dir>/actorlet/state`, `root` the root directory; made (0700) when first written. */
export function createCheckpointStore(ports: StorePorts, o: StoreOptions): CheckpointStore {
  return new Slots(ports, o);
}

/** What is put, and when it is written. */
class Slots implements CheckpointStore {
  readonly #clock: StorePorts['clock'];
  readonly #log: Logger;
  readonly #files: CheckpointFiles;
  readonly #slots = new Map<string, Slot>();

  constructor(ports: StorePorts, o: StoreOptions) {
    this.#clock = ports.clock;
    this.#log = o.log;
    this.#files = new CheckpointFiles(ports, o);
  }

  put(name: string, value: unknown): void {
    const known = this.#slots.get(name);
    if (known === undefined && (!isCheckpointName(name) || this.#slots.size >= NAMES_MAX)) {
      this.#log.error({ name }, `checkpoint refused: ${isCheckpointName(name) ? `more than ${NAMES_MAX} names` : 'not a valid name'}`);
      return;
    }
    const slot = known ?? { value, dirty: true, writing: null, retryMs: RETRY_MIN_MS, timer: undefined };
    slot.value = value;
    slot.dirty = true;
    this.#slots.set(name, slot);
    void this.#save(name, slot);
  }

  async get(name: string): Promise<CheckpointFound> {
    if (!isCheckpointName(name)) throw new Error(`${JSON.stringify(name)} is not a checkpoint name`);
    const slot = this.#slots.get(name);
    return slot === undefined ? this.#files.read(name) : { found: true, value: slot.value };
  }

  async flush(): Promise<string[]> {
    await Promise.all([...this.#slots].filter(([, s]) => s.dirty || s.writing !== null).map(([name, slot]) => this.#save(name, slot)));
    return [...this.#slots].filter(([, s]) => s.dirty).map(([name]) => name);
  }

  dispose(): void {
    for (const slot of this.#slots.values()) this.#clock.clearTimeout(slot.timer);
  }

  #save(name: string, slot: Slot): Promise<void> {
    if (slot.writing !== null) return slot.writing;
    this.#clock.clearTimeout(slot.timer);
    slot.writing = this.#write(name, slot).finally(() => {
      slot.writing = null;
    });
    return slot.writing;
  }

  async #write(name: string, slot: Slot): Promise<void> {
    while (slot.dirty) {
      slot.dirty = false;
      try {
        await this.#files.write(name, slot.value);
        slot.retryMs = RETRY_MIN_MS;
      } catch (error) {
        slot.dirty = true;
        this.#log.error(
          { file: this.#files.pathOf(name), err: messageOf(error), retryMs: slot.retryMs },
          'checkpoint could not be written; will try again',
        );
        slot.timer = this.#clock.setTimeout(() => void this.#save(name, slot), slot.retryMs);
        slot.retryMs = Math.min(RETRY_MAX_MS, slot.retryMs * 2);
        return;
      }
    }
  }
}

/** One file per name. */
class CheckpointFiles {
  readonly #ports: StorePorts;
  readonly #o: StoreOptions;
  readonly #own: LastingFolder;
  readonly #root: LastingFolder;

  constructor(ports: StorePorts, o: StoreOptions) {
    this.#ports = ports;
    this.#o = o;
    this.#own = new LastingFolder(ports.fs, o.dir, { mode: 0o700, root: o.root });
    this.#root = new LastingFolder(ports.fs, o.root, { mode: 0o700, root: o.root });
  }

  pathOf(name: string): string {
    return isKubelets(name) ? `${this.#o.root}/${name}` : `${this.#o.dir}/${name}.json`;
  }

  async write(name: string, value: unknown): Promise<void> {
    const bytes = this.#encode(name, value);
    if (bytes === null) return;
    const { fs } = this.#ports;
    const path = this.pathOf(name);
    const [folder, dir] = isKubelets(name) ? [this.#root, this.#o.root] : [this.#own, this.#o.dir];
    const tmp = `${dir}/.${path.slice(dir.length + 1)}.tmp`;
    await inTurn(fs, path, async () => {
      await folder.make();
      await fs.writeFile(tmp, bytes, { mode: 0o600, fsync: true });
      await fs.rename(tmp, path);
      await fs.fsyncDir(dir);
    });
  }

  /** A file that cannot be understood is set aside. */
  async read(name: string): Promise<CheckpointFound> {
    const { fs } = this.#ports;
    const path = this.pathOf(name);
    let bytes: Uint8Array;
    try {
      bytes = await inTurn(fs, path, () => fs.readFile(path, { bytesMax: CHECKPOINT_BYTES_MAX, own: true }));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return { found: false };
      if (codeOf(error) !== 'EFBIG' && codeOf(error) !== 'EINVAL') throw error;
      await this.#setAside(name, 'corrupt', messageOf(error));
      return { found: false };
    }
    const read = decodeCheckpoint(name, new TextDecoder().decode(bytes), this.#sha);
    if (read.ok) return { found: true, value: read.value };
    await this.#setAside(name, read.kind, read.why);
    return { found: false };
  }

  readonly #sha = (text: string): string => this.#ports.entropy.sha256Hex(text);

  /** null, and a log line, for what can never be written: trying again would not help. */
  #encode(name: string, value: unknown): Uint8Array | null {
    try {
      const bytes = new TextEncoder().encode(encodeCheckpoint(name, value, this.#sha));
      if (bytes.length <= CHECKPOINT_BYTES_MAX) return bytes;
      throw new Error(`${bytes.length} bytes, at most ${CHECKPOINT_BYTES_MAX} are kept`);
    } catch (error) {
      this.#o.log.error({ file: this.pathOf(name), err: messageOf(error) }, 'checkpoint refused: the file keeps the document before it');
      return null;
    }
  }

  async #setAside(name: string, kind: string, why: string): Promise<void> {
    const from = this.pathOf(name);
    const to = `${from}.${kind}-${this.#ports.clock.wallMs()}`;
    await this.#ports.fs.rename(from, to);
    this.#o.log.error(
      { file: from, movedTo: to, why },
      `checkpoint is ${kind} and was set aside; what it held is rebuilt from runtime and API`,
    );
  }
}
