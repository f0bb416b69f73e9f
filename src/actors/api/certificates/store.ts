/**
 * Certificates on disk, in the reference's layout (boot-and-node 6.5): `PREFIX-TIME.pem` holds chain and key, and the link
 * `PREFIX-current.pem` leads to the newest. A crash at any moment leaves the old pair or the new one, never half of one.
 */
import { ifThere, unlinkIfThere } from '../../../ports/ifThere.ts';
import type { HostFs } from '../../../ports/ports.ts';

const PEM_BYTES_MAX = 1 << 20;
const SECRET_MODE = 0o600;
const DIR_MODE = 0o755;

export class CertificateStore {
  readonly #fs: HostFs;
  readonly #dir: string;
  readonly #prefix: string;

  constructor(fs: HostFs, o: { dir: string; prefix: string }) {
    this.#fs = fs;
    this.#dir = o.dir;
    this.#prefix = o.prefix;
  }

  get current(): string {
    return `${this.#dir}/${this.#prefix}-current.pem`;
  }
  get #updated(): string {
    return `${this.#dir}/${this.#prefix}-updated.pem`;
  }
  /** Key of a first request that was not answered yet. */
  get draft(): string {
    return `${this.#dir}/${this.#prefix}.key.tmp`;
  }

  /** Null when there is none. */
  async read(): Promise<Uint8Array | null> {
    const there = await this.#read(this.current);
    if (there !== null) return there;
    // The reference removes the old link before it renames the new one; one that died in between is completed here.
    if ((await this.#kind(this.current)) !== null || (await this.#kind(this.#updated)) !== 'symlink') return null;
    await this.#fs.rename(this.#updated, this.current);
    await this.#fs.fsyncDir(this.#dir);
    return this.#read(this.current);
  }

  /** Certificate of the older layout, `PREFIX.crt` with `PREFIX.key` beside it. */
  get older(): string {
    return `${this.#dir}/${this.#prefix}.crt`;
  }
  /** Chain and key of the older layout; null unless both are there. */
  async readOlder(): Promise<Uint8Array | null> {
    const [chain, key] = await Promise.all([this.#read(this.older), this.#read(`${this.#dir}/${this.#prefix}.key`)]);
    if (chain === null || key === null) return null;
    return new TextEncoder().encode(`${new TextDecoder().decode(chain).trimEnd()}\n${new TextDecoder().decode(key)}`);
  }

  async write(pem: Uint8Array, wallMs: number): Promise<void> {
    await this.#fs.mkdirp(this.#dir, DIR_MODE);
    const kind = await this.#kind(this.current);
    if (kind !== null && kind !== 'symlink')
      throw new Error(`${this.current} is no symbolic link; move it away, the node puts a link to its newest certificate there`);
    const file = `${this.#dir}/${this.#prefix}-${stamp(wallMs)}.pem`;
    await this.writeSecret(file, pem);
    await this.#drop(this.#updated);
    await this.#fs.symlink(file, this.#updated);
    await this.#fs.rename(this.#updated, this.current);
    await this.#fs.fsyncDir(this.#dir);
  }

  readDraft(): Promise<Uint8Array | null> {
    return this.#read(this.draft);
  }
  async writeDraft(key: Uint8Array): Promise<void> {
    await this.#fs.mkdirp(this.#dir, DIR_MODE);
    await this.writeSecret(this.draft, key);
  }
  dropDraft(): Promise<void> {
    return this.#drop(this.draft);
  }

  /** For nobody but the owner from its first moment on, whole or not at all, and on disk when this resolves. */
  async writeSecret(path: string, data: string | Uint8Array): Promise<void> {
    const beside = `${path}.new`;
    await this.#drop(beside);
    await this.#fs.writeFile(beside, data, { mode: SECRET_MODE, fsync: true, exclusive: true });
    await this.#fs.rename(beside, path);
    await this.#fs.fsyncDir(path.slice(0, Math.max(1, path.lastIndexOf('/'))));
  }

  #read(path: string): Promise<Uint8Array | null> {
    return ifThere(this.#fs.readFile(path, { bytesMax: PEM_BYTES_MAX }));
  }
  async #kind(path: string): Promise<string | null> {
    return (await ifThere(this.#fs.lstat(path)))?.kind ?? null;
  }
  #drop(path: string): Promise<void> {
    return unlinkIfThere(this.#fs, path);
  }
}

/** Local time, as in the reference. */
function stamp(wallMs: number): string {
  const d = new Date(wallMs);
  const two = (n: number): string => String(n).padStart(2, '0');
  const parts = [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
  return parts.map(two).join('-');
}
