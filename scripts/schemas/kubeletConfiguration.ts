/** JSON Schema of KubeletConfiguration files: the table of `src/machines/config`, with the defaults of this node. */
import { defaultKubeletConfiguration } from '../../src/machines/config/defaults.ts';
import { GATES } from '../../src/machines/config/gateTable.ts';
import { KUBELET_CONFIGURATION } from '../../src/machines/config/schema.ts';
import { toV1beta1 } from '../../src/machines/config/v1beta1.ts';
import { type Dialect, fieldSchemas, type JsonSchema, objectSchema } from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: true, nullsInMaps: false, nonEmpty: false, zeroDuration: false, zeroIsUnset: true };

export function kubeletConfigurationSchema(): JsonSchema {
  const fields = fieldSchemas(KUBELET_CONFIGURATION, DIALECT);
  const { featureGates, ...defaults } = toV1beta1(defaultKubeletConfiguration());
  return {
    title: 'KubeletConfiguration',
    description: 'What actorlet takes with --config, and the files below --config-dir.',
    ...objectSchema(
      {
        apiVersion: { const: 'kubelet.config.k8s.io/v1beta1' },
        kind: { const: 'KubeletConfiguration' },
        ...withDefaults({ ...fields, featureGates: gatesSchema() }, defaults),
      },
      ['apiVersion', 'kind'],
    ),
  };
}

function withDefaults(fields: JsonSchema, defaults: Readonly<Record<string, unknown>>): JsonSchema {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const value = defaults[name];
      return [name, value === undefined ? field : { ...(field as JsonSchema), default: value }];
    }),
  );
}

function gatesSchema(): JsonSchema {
  const gates = Object.entries(GATES).map(([name, { stage, default: on, locked }]) => [
    name,
    { description: `${stage}, default ${on}${locked ? ', locked' : ''}.`, ...(locked ? { const: on } : { type: 'boolean' }) },
  ]);
  const groups = ['AllAlpha', 'AllBeta'].map((name) => [name, { description: 'All gates of that stage.', type: 'boolean' }]);
  return { type: ['object', 'null'], properties: Object.fromEntries([...gates, ...groups]), additionalProperties: false };
}
