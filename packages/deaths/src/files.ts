/** Bundles on disk: one file each, mode 0600, in a folder of the node's own. */

import { DEATH_FILE, type DeathHead } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { listIfThere, unlinkIfThere } from '@actorlet/kubelet/ports/ifThere.ts';
import { LastingFolder } from '@actorlet/kubelet/ports/lastingFolder.ts';
import type { HostFs, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { inTurn } from '@actorlet/kubelet/ports/turns.ts';
import { readHead } from '@actorlet/shown/src/deaths/bundle.ts';

/** The head of a bundle is its first line; its title is bounded. */
const HEAD_BYTES_MAX = 16 * 1024;
const NEWLINE = 0x0a;
/** More files than that are not ours. */
const FILES_MAX = 5_000;
const TMP = /^\..*\.tmp$/;

export class BundleFiles {
  readonly #fs: HostFs;
  readonly #dir: string;
  readonly #folder: LastingFolder;
  readonly #log: Logger;

  constructor(fs: HostFs, o: { dir: string; rootDir: string; log: Logger }) {
    this.#fs = fs;
    this.#dir = o.dir;
    this.#log = o.log;
    this.#folder = new LastingFolder(fs, o.dir, { mode: 0o700, root: o.rootDir });
  }

  /** Heads of all bundles. What a crash left half written goes; a file that is none of ours stays. @throws where the folder is not ours */
  async heads(): Promise<DeathHead[]> {
    const names = (await listIfThere(this.#fs, this.#dir)).slice(0, FILES_MAX);
    if (names.length === 0) return [];
    await this.#ours();
    const heads: DeathHead[] = [];
    for (const name of names) {
      if (TMP.test(name)) await unlinkIfThere(this.#fs, `${this.#dir}/${name}`);
      const [, id] = DEATH_FILE.exec(name) ?? [];
      if (id === undefined) continue;
      const head = await this.#head(name);
      if (head?.id === id) heads.push(head);
    }
    return heads;
  }

  async write(id: string, text: string): Promise<void> {
    const path = `${this.#dir}/${id}.json`;
    const tmp = `${this.#dir}/.${id}.tmp`;
    await inTurn(this.#fs, this.#dir, async () => {
      await this.#folder.make();
      await this.#ours();
      try {
        await this.#fs.writeFile(tmp, text, { mode: 0o600, fsync: true });
        await this.#fs.rename(tmp, path);
      } catch (error) {
        await unlinkIfThere(this.#fs, tmp).catch(() => undefined);
        throw error;
      }
      await this.#fs.fsyncDir(this.#dir);
    });
  }

  async remove(id: string): Promise<void> {
    await inTurn(this.#fs, this.#dir, () => unlinkIfThere(this.#fs, `${this.#dir}/${id}.json`));
  }

  /** A link there would lead to a folder of somebody else. */
  async #ours(): Promise<void> {
    const { kind } = await this.#fs.lstat(this.#dir);
    if (kind !== 'dir') throw new Error(`${this.#dir} is no folder but a ${kind}: nothing is written there`);
  }

  /** Null: it is damaged, and not read again. */
  async #head(name: string): Promise<DeathHead | null> {
    const path = `${this.#dir}/${name}`;
    try {
      const file = await this.#fs.openRead(path, { within: [this.#dir] });
      try {
        const bytes = await file.read(0, HEAD_BYTES_MAX);
        const end = bytes.indexOf(NEWLINE);
        const head = end < 0 ? null : readHead(new TextDecoder().decode(bytes.subarray(0, end)));
        if (head === null) this.#log.warn({ file: path }, 'a bundle of a death cannot be read; it is left alone');
        return head;
      } finally {
        await file.close();
      }
    } catch (error) {
      if (codeOf(error) !== 'ENOENT')
        this.#log.warn({ file: path, err: messageOf(error) }, 'a bundle of a death cannot be read; it is left alone');
      return null;
    }
  }
}
