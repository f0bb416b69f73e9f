/** `downwardAPI`: files that say what the pod is, in memory. */

import { honoured } from '../../../fieldRule.ts';
import type { InlineKind } from '../../kind.ts';
import { DOWNWARD_ITEM, defaultItems, downwardItems, FILES, type Files, files } from './files.ts';

export const downwardApi: { inline: InlineKind<Files> } = {
  inline: {
    ...FILES,
    plugin: 'kubernetes.io~downward-api',
    fields: {
      downwardAPI: (content) => files(content, { memory: true, sources: [{ kind: 'downwardAPI', items: downwardItems(content.items) }] }),
    },
    rules: honoured('downwardAPI.defaultMode', ...DOWNWARD_ITEM.map((k) => `downwardAPI.items[*].${k}`)),
    defaults: (content) => {
      FILES.defaults(content);
      defaultItems(content);
    },
  },
};
