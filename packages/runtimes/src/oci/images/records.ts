/** Images on disk: a folder for each, `<hex of its id>/{record.json,rootfs/}`, that appears whole by a rename. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Image } from '@actorlet/kubelet/machines/wire/cri.ts';
import { replaceText } from '../../process/store/store.ts';
import { parseName } from './names.ts';

/** What a container takes from its image. */
export interface ImageConfig {
  env: string[];
  entrypoint: string[];
  cmd: string[];
  user: string;
  workingDir: string;
  stopSignal: string;
}
export interface ImageRecord {
  /** `sha256:…` of its configuration. */
  id: string;
  tags: string[];
  /** `repository@sha256:…`. */
  digests: string[];
  /** Size of its unpacked root file system. */
  bytes: number;
  inodes: number;
  config: ImageConfig;
}

export class Records {
  readonly #dir: string;
  readonly #all = new Map<string, ImageRecord>();

  /** `dir` is made. What cannot be read is removed: it can be pulled again. */
  constructor(dir: string, warn: (message: string) => void) {
    this.#dir = dir;
    rmSync(this.staging, { recursive: true, force: true });
    mkdirSync(this.staging, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(dir)) {
      if (name === 'staging') continue;
      try {
        const record = JSON.parse(readFileSync(join(dir, name, 'record.json'), 'utf8')) as ImageRecord;
        if (this.folder(record.id) !== join(dir, name)) throw new Error(`it is of image ${record.id}`);
        this.#all.set(record.id, record);
      } catch (error) {
        warn(`image ${join(dir, name)} cannot be used and is removed: ${(error as Error).message}`);
        rmSync(join(dir, name), { recursive: true, force: true });
      }
    }
  }

  get staging(): string {
    return join(this.#dir, 'staging');
  }
  get folderOfAll(): string {
    return this.#dir;
  }
  folder(id: string): string {
    return join(this.#dir, id.replace(/^sha256:/, ''));
  }
  rootfs(id: string): string {
    return join(this.folder(id), 'rootfs');
  }

  list(): ImageRecord[] {
    return [...this.#all.values()];
  }

  /** By id, name or digest. */
  find(ref: string): ImageRecord | undefined {
    const byId = this.#all.get(ref) ?? this.#all.get(`sha256:${ref}`);
    if (byId !== undefined) return byId;
    const name = parseName(ref);
    if (name === null) return undefined;
    const digest = name.digest === null ? null : `${name.repository}@${name.digest}`;
    return this.list().find((r) => (digest === null ? r.tags.includes(name.full) : r.digests.includes(digest)));
  }

  /** `from` holds `rootfs/`, and becomes the image's folder. A name leads to one image only. */
  add(record: ImageRecord, from: string): void {
    const known = this.#all.get(record.id);
    if (known !== undefined) {
      this.name(known, record);
      return;
    }
    this.#untag(record.tags, record.id);
    replaceText(join(from, 'record.json'), JSON.stringify(record));
    renameSync(from, this.folder(record.id));
    this.#all.set(record.id, record);
  }

  /** Further names of an image that is there. */
  name(record: ImageRecord, more: Pick<ImageRecord, 'tags' | 'digests'>): void {
    this.#untag(more.tags, record.id);
    const before = record.tags.length + record.digests.length;
    record.tags = [...new Set([...record.tags, ...more.tags])];
    record.digests = [...new Set([...record.digests, ...more.digests])];
    if (record.tags.length + record.digests.length !== before) this.#save(record);
  }

  async remove(record: ImageRecord): Promise<void> {
    this.#all.delete(record.id);
    // Renamed first: half an image is never found.
    const gone = join(this.staging, `removed-${record.id.slice(7, 19)}-${Date.now()}`);
    renameSync(this.folder(record.id), gone);
    await rm(gone, { recursive: true, force: true });
  }

  #untag(tags: readonly string[], unless: string): void {
    for (const other of this.list()) {
      if (other.id === unless || !other.tags.some((t) => tags.includes(t))) continue;
      other.tags = other.tags.filter((t) => !tags.includes(t));
      this.#save(other);
    }
  }

  #save(record: ImageRecord): void {
    replaceText(join(this.folder(record.id), 'record.json'), JSON.stringify(record));
  }
}

/** As the CRI shows it. A user that is no number is a name, which `runAsNonRoot` cannot decide by. */
export function imageOf(r: ImageRecord): Image {
  const user = r.config.user.split(':')[0] ?? '';
  const uid = /^\d+$/.test(user) ? { value: user } : user === '' ? { value: '0' } : null;
  return {
    ...{ id: r.id, repoTags: r.tags, repoDigests: r.digests, size: String(r.bytes) },
    ...{ uid, username: uid === null ? user : '', spec: { image: r.id }, pinned: false },
  };
}
