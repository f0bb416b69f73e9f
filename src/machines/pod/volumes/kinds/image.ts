/** `image`: an image that the worker pulls and the runtime mounts. */

import { defaultPullPolicy } from '../../../kube/pullPolicy.ts';
import type { PullPolicy } from '../../../kube/words.ts';
import { built, refused } from '../../../result.ts';
import { textOf } from '../../../shape/lenient.ts';
import { honoured } from '../../fieldRule.ts';
import type { InlineKind } from '../kind.ts';

export interface Image {
  kind: 'image';
  reference: string;
  policy: PullPolicy;
}

export const image: { inline: InlineKind<Image> } = {
  inline: {
    kind: 'image',
    plugin: 'kubernetes.io~image',
    fields: {
      image: (content) => {
        const reference = textOf(content.reference);
        if (reference === '') return refused('image.reference must be set');
        return built({ kind: 'image', reference, policy: pullPolicy(textOf(content.pullPolicy)) });
      },
    },
    rules: honoured('image.reference', 'image.pullPolicy'),
    stands: 'nowhere',
    foreign: false,
    refreshes: false,
    defaults: (content) => {
      content.pullPolicy ||= defaultPullPolicy(textOf(content.reference));
    },
    mounted: () => ({ hostPath: '', readOnly: true, managed: true, image: true }),
    image: ({ reference, policy }) => ({ reference, policy }),
  },
};

function pullPolicy(value: string): PullPolicy {
  return value === 'Always' || value === 'Never' ? value : 'IfNotPresent';
}
