/** The state file of a provider, in the node's root directory: written aside, then put in place. */
import { messageOf } from '../../machines/text/errors.ts';
import { textIfThere } from '../../ports/ifThere.ts';
import { LastingFolder } from '../../ports/lastingFolder.ts';
import { inTurn } from '../../ports/turns.ts';
import type { ActorCtx } from '../supervision/types.ts';

const FILE_MODE = 0o600;
const DIR_MODE = 0o750;

interface StateFileOptions {
  rootDir: string;
  name: string;
  bytesMax: number;
  /** In messages: `CPUs`. */
  what: string;
}

export class StateFile {
  readonly path: string;
  readonly #ctx: Pick<ActorCtx, 'ports' | 'log'>;
  readonly #o: StateFileOptions;
  readonly #folder: LastingFolder;

  constructor(ctx: Pick<ActorCtx, 'ports' | 'log'>, o: StateFileOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.path = `${o.rootDir}/${o.name}`;
    this.#folder = new LastingFolder(ctx.ports.fs, o.rootDir, { mode: DIR_MODE, root: o.rootDir });
  }

  /** Null: there is none. Rejects where it cannot be read. */
  async read(): Promise<string | null> {
    const { fs } = this.#ctx.ports;
    return this.#inTurn(() => textIfThere(fs, this.path, this.#o.bytesMax));
  }

  async write(text: string): Promise<void> {
    const { rootDir, name, what } = this.#o;
    const { fs } = this.#ctx.ports;
    const aside = `${rootDir}/.${name}.tmp`;
    try {
      await this.#inTurn(async () => {
        await this.#folder.make();
        await fs.writeFile(aside, text, { mode: FILE_MODE, fsync: true });
        await fs.rename(aside, this.path);
        await fs.fsyncDir(rootDir);
      });
    } catch (error) {
      const fields = { file: this.path, err: messageOf(error) };
      this.#ctx.log.error(fields, `the record of allocated ${what} cannot be written; no ${what} are allocated until it can`);
      throw error;
    }
  }

  /** What a killed manager still writes is over first: its ledger is older. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.#ctx.ports.fs, this.path, work);
  }
}
