/** The folder of device plugins: the record of who holds which devices, and what else is in it. */

import { CHECKPOINT_FILE, decodeCheckpoint, encodeCheckpoint } from '../../../machines/allocation/devices/checkpoint.ts';
import type { Allocation, DeviceLedger } from '../../../machines/allocation/devices/types.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { ifThere, unlinkIfThere } from '../../../ports/ifThere.ts';
import { inTurn } from '../../../ports/turns.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** Mode of the folder, from the reference, as are the names of the files. */
const FOLDER_MODE = 0o750;
const RECORD_MODE = 0o600;
/** More than that is not read again, so it is not written either: without its record a node gives devices of running pods to others. */
export const RECORD_BYTES_MAX = 16 * 1024 * 1024;

export class DeviceRecords {
  private readonly ctx: Pick<ActorCtx, 'ports' | 'log' | 'signal' | 'incarnation'>;
  private readonly folder: string;
  private wanted: Pick<DeviceLedger, 'allocations' | 'resources'> | null = null;

  constructor(ctx: Pick<ActorCtx, 'ports' | 'log' | 'signal' | 'incarnation'>, folder: string) {
    this.ctx = ctx;
    this.folder = folder;
  }

  /** Null: there is none. Rejects where the disk cannot be read; what cannot be believed is said, and holds nothing. */
  async read(): Promise<{ allocations: Allocation[]; resources: string[] } | null> {
    const path = `${this.folder}/${CHECKPOINT_FILE}`;
    const unbelievable = (error: unknown) => {
      const err = messageOf(error);
      this.ctx.log.warn({ file: path, err }, 'the record of devices cannot be believed: who holds which of them is not known');
      return { allocations: [], resources: [] };
    };
    let bytes: Uint8Array;
    try {
      bytes = await this.inTurn(() => this.ctx.ports.fs.readFile(path, { bytesMax: RECORD_BYTES_MAX, own: true }));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      if (codeOf(error) === 'EFBIG' || codeOf(error) === 'EINVAL') return unbelievable(error);
      throw error;
    }
    try {
      return decodeCheckpoint(new TextDecoder().decode(bytes));
    } catch (error) {
      return unbelievable(error);
    }
  }

  /**
   * Sockets of an earlier daemon and of its plugins: that theirs goes is what tells them to register again (trap 28).
   * And the file `DEPRECATION` of an earlier agent: where it is, plugins made with the kubelet's library do not register here.
   */
  clear(): Promise<void> {
    // A record that is being written lies under another name until it is renamed.
    return this.inTurn(() => this.empty());
  }

  private async empty(): Promise<void> {
    const { fs } = this.ctx.ports;
    await fs.mkdirp(this.folder, FOLDER_MODE);
    for (const name of await fs.readdir(this.folder)) {
      if (name === CHECKPOINT_FILE) continue;
      const path = `${this.folder}/${name}`;
      const there = await ifThere(fs.lstat(path));
      if (there !== null && there.kind !== 'dir') await unlinkIfThere(fs, path);
    }
  }

  /** Until it is on disk, or something newer is. Rejects where it cannot be written: the next call tries again. */
  save(ledger: Pick<DeviceLedger, 'allocations' | 'resources'>): Promise<void> {
    this.wanted = ledger;
    return this.inTurn(() => this.write());
  }

  /** What a killed manager still writes is over first: its record is older. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.ctx.ports.fs, `${this.folder}/${CHECKPOINT_FILE}`, work);
  }

  private async write(): Promise<void> {
    const { ports, signal, incarnation } = this.ctx;
    const { fs } = ports;
    const ledger = this.wanted;
    if (ledger === null || signal.aborted) return;
    this.wanted = null;
    const tmp = `${this.folder}/.${CHECKPOINT_FILE}.${incarnation}`;
    try {
      const text = encodeCheckpoint(ledger);
      const bytes = Buffer.byteLength(text);
      if (bytes > RECORD_BYTES_MAX) throw new Error(`it would have ${bytes} bytes, ${RECORD_BYTES_MAX} at most`);
      await fs.mkdirp(this.folder, FOLDER_MODE);
      // One write holds all that changed since the write before.
      await fs.writeFile(tmp, text, { mode: RECORD_MODE, fsync: true });
      // The next manager writes what it knows.
      if (signal.aborted) return;
      await fs.rename(tmp, `${this.folder}/${CHECKPOINT_FILE}`);
      await fs.fsyncDir(this.folder);
    } catch (error) {
      this.wanted ??= ledger;
      throw error;
    }
  }
}
