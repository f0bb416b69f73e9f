/** Images of a hollow runtime: which names exist, what was pulled, and how an id is made from a name. */

import type { Image } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CODE, imageTag, nanos, RuntimeRefusal } from '../../shared/model.ts';
import { annotatedLife, DEFAULT_LIFE } from '../life.ts';
import type { Shared } from '../state.ts';
import type { HollowImage } from '../types.ts';

const MiB = 1024 * 1024;

/** Same name, same id, on every run: 256 bits from eight FNV-1a passes. An identity, not a digest of anything. */
export function imageId(tag: string): string {
  let hex = '';
  for (let round = 0; round < 8; round++) {
    let h = (0x811c9dc5 ^ Math.imul(round, 0x9e3779b1)) >>> 0;
    for (let i = 0; i < tag.length; i++) h = Math.imul(h ^ tag.charCodeAt(i), 0x01000193) >>> 0;
    hex += h.toString(16).padStart(8, '0');
  }
  return `sha256:${hex}`;
}

/** Every pull finds its image, unless the options say otherwise. */
export class Images {
  readonly #o: Shared;
  readonly #byId = new Map<string, Image>();
  /** Tags that the runtime says must stay. */
  readonly #pinned: ReadonlySet<string>;

  constructor(o: Shared) {
    this.#o = o;
    this.#pinned = new Set(o.options.pinned?.map(imageTag));
    for (const name of o.options.images ?? []) this.#add(name, this.known(name));
  }

  all(): Image[] {
    return [...this.#byId.values()];
  }

  /** By id or by name; undefined when it was not pulled. */
  #find(ref: string): Image | undefined {
    return this.#byId.get(ref) ?? this.#byId.get(imageId(imageTag(ref)));
  }

  #add(name: string, known: HollowImage | undefined): Image {
    const tag = imageTag(name);
    const id = imageId(tag);
    const size = String(known?.sizeBytes ?? MiB);
    const pinned = this.#pinned.has(tag);
    const image: Image = { id, repoTags: [tag], repoDigests: [], size, uid: null, username: '', spec: null, pinned };
    this.#byId.set(id, image);
    return image;
  }

  /** What a pull of this name finds; undefined = nothing. */
  known(name: string): HollowImage | undefined {
    const { options } = this.#o;
    return options.image === undefined ? {} : options.image(name);
  }

  /** An image marked as present gets into the store when it is first asked for. */
  present(name: string): Image | undefined {
    const found = this.#find(name);
    if (found !== undefined || name.startsWith('sha256:')) return found;
    const known = this.known(name);
    return known?.present === true ? this.#add(name, known) : undefined;
  }

  /** A container was made from it. */
  held(name: string): Image {
    return this.#find(name) ?? this.#add(name, this.known(name));
  }

  list({ filter }: CriRequest<'ListImages'>): CriResponse<'ListImages'> {
    const wanted = filter?.image?.image;
    if (!wanted) return { images: this.all() };
    const found = this.#find(wanted);
    return { images: found === undefined ? [] : [found] };
  }

  status({ image }: CriRequest<'ImageStatus'>): CriResponse<'ImageStatus'> {
    return { image: this.present(image.image) ?? null, info: {} };
  }

  async pull({ image, sandboxConfig }: CriRequest<'PullImage'>): Promise<CriResponse<'PullImage'>> {
    const { state, timing } = this.#o;
    const known = this.known(image.image);
    const life = { ...DEFAULT_LIFE, ...known?.life, ...annotatedLife(sandboxConfig?.annotations, null, 0) };
    const delay = timing.wait(timing.stretched(life.pullDelayMs, life.jitter));
    if (delay !== undefined) await delay;
    if (life.pullError !== '') throw new RuntimeRefusal(CODE.unknown, life.pullError);
    if (known === undefined) throw new RuntimeRefusal(CODE.notFound, `failed to resolve image ${JSON.stringify(image.image)}: not found`);
    state.counts.pulls++;
    return { imageRef: this.#add(image.image, known).id };
  }

  remove({ image }: CriRequest<'RemoveImage'>): CriResponse<'RemoveImage'> {
    const found = this.#find(image.image);
    if (found !== undefined) this.#byId.delete(found.id);
    return {};
  }

  fsInfo(): CriResponse<'ImageFsInfo'> {
    const images = this.all();
    const used = images.reduce((sum, i) => sum + Number(i.size), 0);
    const fs = {
      timestamp: nanos(this.#o.timing.clock.wallMs()),
      fsId: { mountpoint: '/var/lib/hollow' },
      usedBytes: { value: String(used) },
      inodesUsed: { value: String(images.length) },
    };
    const { layerDir } = this.#o.options;
    const layers = layerDir === undefined ? fs : { ...fs, fsId: { mountpoint: layerDir } };
    return { imageFilesystems: [fs], containerFilesystems: [layers] };
  }
}
