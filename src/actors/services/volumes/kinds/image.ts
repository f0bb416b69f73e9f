/** `image`: the worker pulls it, and the runtime mounts it. */

import type { Image } from '../../../../machines/pod/volumes/kinds/image.ts';
import type { InlineActs } from '../kind.ts';

export const image: { inline: InlineActs<Image> } = { inline: { setUp: () => Promise.resolve(null) } };
