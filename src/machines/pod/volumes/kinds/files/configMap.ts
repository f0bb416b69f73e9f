/** `configMap`: files of a ConfigMap, on the disk. */

import { honouredOfApi } from '../../../fieldRule.ts';
import type { InlineKind } from '../../kind.ts';
import { FILES, type Files, files, OBJECT, object } from './files.ts';

export const configMap: { inline: InlineKind<Files> } = {
  inline: {
    ...FILES,
    plugin: 'kubernetes.io~configmap',
    fields: { configMap: (content) => files(content, { memory: false, sources: [object('configMap', content, 'name')] }) },
    rules: honouredOfApi(...['name', 'defaultMode', ...OBJECT].map((k) => `configMap.${k}`)),
    fromApi: true,
    onDisk: () => true,
  },
};
