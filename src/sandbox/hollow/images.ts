/** The hollow runtime's image store: which names exist, what was pulled, and how an id is made from a name. */
import type { Image } from '../../machines/cri.ts';
import { imageTag } from '../shared/model.ts';
import type { HollowLife } from './life.ts';

/** What an image name is worth in this world. */
export interface HollowImage {
  /** Present without a pull. Default false. */
  present?: boolean;
  /** Default 1 MiB. */
  sizeBytes?: number;
  /** Life of every container made from it, unless annotations or the script say otherwise. */
  life?: Partial<HollowLife>;
}

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

export interface ImageStore {
  /** By id or by name; undefined when it was not pulled. */
  find(ref: string): Image | undefined;
  add(name: string, sizeBytes: number): Image;
  remove(ref: string): void;
  list(): Image[];
}

/** `pinned`: names of images that the runtime says must stay. */
export function createImageStore(pinned: readonly string[] = []): ImageStore {
  const kept = new Set(pinned.map(imageTag));
  const byId = new Map<string, Image>();
  const find = (ref: string): Image | undefined => byId.get(ref) ?? byId.get(imageId(imageTag(ref)));
  return {
    find,
    add(name, sizeBytes) {
      const tag = imageTag(name);
      const id = imageId(tag);
      const image: Image = {
        id,
        repoTags: [tag],
        repoDigests: [],
        size: String(sizeBytes),
        uid: null,
        username: '',
        spec: null,
        pinned: kept.has(tag),
      };
      byId.set(id, image);
      return image;
    },
    remove(ref) {
      const image = find(ref);
      if (image !== undefined) byId.delete(image.id);
    },
    list: () => [...byId.values()],
  };
}
