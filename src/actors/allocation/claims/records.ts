/** `dra_manager_state` on disk: which claims pods use. One write at a time, each of all that changed since the one before. */

import { CLAIMS_BYTES_MAX, CLAIMS_FILE, decodeClaims, encodeClaims } from '../../../machines/allocation/claims/checkpoint.ts';
import type { ClaimRecord } from '../../../machines/allocation/claims/types.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { inTurn } from '../../../ports/turns.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** Mode of the file, from the reference. */
const RECORD_MODE = 0o600;

type Ctx = Pick<ActorCtx, 'ports' | 'log' | 'signal' | 'incarnation'>;

export class ClaimRecords {
  readonly #ctx: Ctx;
  readonly #folder: string;
  /** As on disk, or about to be. */
  #wanted: ReadonlyMap<string, ClaimRecord> = new Map();
  #isWritten = true;

  constructor(ctx: Ctx, folder: string) {
    this.#ctx = ctx;
    this.#folder = folder;
  }

  get all(): ReadonlyMap<string, ClaimRecord> {
    return this.#wanted;
  }
  get file(): string {
    return `${this.#folder}/${CLAIMS_FILE}`;
  }

  /** Rejects where the disk cannot be read; what cannot be believed is logged, and holds nothing. */
  async read(): Promise<ReadonlyMap<string, ClaimRecord>> {
    let bytes: Uint8Array;
    try {
      bytes = await this.#inTurn(() => this.#ctx.ports.fs.readFile(this.file, { bytesMax: CLAIMS_BYTES_MAX, own: true }));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return new Map();
      if (codeOf(error) === 'EFBIG' || codeOf(error) === 'EINVAL') return this.#unbelievable(error);
      throw error;
    }
    try {
      this.#wanted = decodeClaims(new TextDecoder().decode(bytes));
      return this.#wanted;
    } catch (error) {
      return this.#unbelievable(error);
    }
  }

  #unbelievable(error: unknown): ReadonlyMap<string, ClaimRecord> {
    const what = 'the record of ResourceClaims cannot be believed: claims of pods that have ended meanwhile stay prepared';
    this.#ctx.log.warn({ file: this.file, err: messageOf(error) }, what);
    return new Map();
  }

  /** Settles when it is on disk. Rejects where it cannot be written: then it is as before. */
  async put(key: string, record: ClaimRecord | null): Promise<void> {
    const before = this.#wanted.get(key);
    this.#set(key, record);
    try {
      await this.#inTurn(() => this.#write());
    } catch (error) {
      if (this.#wanted.get(key) === (record ?? undefined)) this.#set(key, before ?? null);
      throw error;
    }
  }

  /** What it says beside what is on disk has changed. */
  note(key: string, record: ClaimRecord): void {
    if (this.#wanted.has(key)) this.#wanted = new Map([...this.#wanted, [key, record]]);
  }

  #set(key: string, record: ClaimRecord | null): void {
    const all = new Map(this.#wanted);
    if (record === null) all.delete(key);
    else all.set(key, record);
    this.#wanted = all;
    this.#isWritten = false;
  }

  /** What a killed manager still writes is over first: its record is older. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.#ctx.ports.fs, this.file, work);
  }

  async #write(): Promise<void> {
    const { ports, signal, incarnation } = this.#ctx;
    // A write that waited for its turn may have been done by the one before it. The next manager writes what it knows.
    if (this.#isWritten || signal.aborted) return;
    this.#isWritten = true;
    const text = encodeClaims(this.#wanted.values());
    const tmp = `${this.#folder}/.${CLAIMS_FILE}.${incarnation}`;
    try {
      const bytes = Buffer.byteLength(text);
      if (bytes > CLAIMS_BYTES_MAX) throw new Error(`${this.file} would have ${bytes} bytes, ${CLAIMS_BYTES_MAX} at most`);
      await ports.fs.writeFile(tmp, text, { mode: RECORD_MODE, fsync: true });
      if (signal.aborted) return;
      await ports.fs.rename(tmp, this.file);
      await ports.fs.fsyncDir(this.#folder);
    } catch (error) {
      this.#isWritten = false;
      throw error;
    }
  }
}
