/** Sizes of images by their names, and how long a pull of one takes. Pure. */

import type { HollowOptions } from '@actorlet/runtimes/src/hollow/index.ts';
import { globToRegExp } from '@actorlet/shown/src/match.ts';
import type { ImageSpec } from '../spec/groups.ts';

type Find = NonNullable<HollowOptions['image']>;

/** Every name exists; the first entry that matches says its size. */
export function imagesOf(images: readonly ImageSpec[]): (bytesPerSecond: number | null) => Find {
  const entries = images.map(({ name, sizeBytes }) => ({ patterns: name.map(globToRegExp), sizeBytes }));
  return (bytesPerSecond) => (name) => {
    const sizeBytes = entries.find(({ patterns }) => patterns.some((p) => p.test(name)))?.sizeBytes;
    if (sizeBytes === undefined) return {};
    return { sizeBytes, life: bytesPerSecond === null ? {} : { pullDelayMs: (sizeBytes / bytesPerSecond) * 1_000 } };
  };
}
