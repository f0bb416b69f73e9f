/** `secret`: files of a Secret, in memory. */

import { honouredOfApi } from '../../../fieldRule.ts';
import type { InlineKind } from '../../kind.ts';
import { FILES, type Files, files, OBJECT, object } from './files.ts';

export const secret: { inline: InlineKind<Files> } = {
  inline: {
    ...FILES,
    plugin: 'kubernetes.io~secret',
    fields: { secret: (content) => files(content, { memory: true, sources: [object('secret', content, 'secretName')] }) },
    rules: honouredOfApi(...['secretName', 'defaultMode', ...OBJECT].map((k) => `secret.${k}`)),
    fromApi: true,
  },
};
