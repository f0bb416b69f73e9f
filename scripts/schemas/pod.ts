/**
 * JSON Schema of manifests: the shape of the Pod API (`podTable.ts`), as far as this node honours or ignores its fields
 * without an API server (`fieldTable.ts`).
 */
import { podShape } from '../../src/machines/kube/podTable.ts';
import { childOf, MANIFEST_RULES, type RuleNode } from '../../src/machines/pods/admission/supported.ts';
import type { Shape } from '../../src/machines/shape/shape.ts';
import {
  type Dialect,
  decorated,
  entrySchema,
  fieldSchema,
  type JsonSchema,
  jsonSchemaOf,
  objectSchema,
  requiredOf,
} from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: true, nullsInMaps: true, nonEmpty: false, zeroDuration: false, zeroIsUnset: true };

export function podManifestSchema(): JsonSchema {
  const { metadata, spec } = podShape.fields;
  return {
    title: 'Pod',
    description: 'A manifest that this node takes: a Pod in the folder staticPodPath, or from staticPodURL.',
    ...objectSchema(
      {
        apiVersion: { const: 'v1' },
        kind: { const: 'Pod' },
        metadata: jsonSchemaOf(metadata, DIALECT),
        spec: valueSchema(spec, childOf(MANIFEST_RULES, 'spec')),
        status: { description: 'Not read: the node makes the status.' },
      },
      ['apiVersion', 'kind', 'metadata', 'spec'],
    ),
  };
}

/** A field with its rule; undefined where no manifest may have it. */
function ruledField(shape: Shape, rules: RuleNode | undefined): JsonSchema | undefined {
  if (rules === undefined) return undefined;
  const { leaf } = rules;
  if (leaf === null) return decorated(valueSchema(shape, rules), shape, DIALECT);
  if (leaf.only !== undefined) return decorated({ type: 'string', enum: leaf.only }, shape, DIALECT);
  if (leaf.refused !== undefined) return emptyField(`this node refuses it: ${leaf.refused}`);
  if (leaf.leftAlone !== undefined) return emptyField(`it has no effect here: ${leaf.leftAlone}`);
  const field = fieldSchema(shape, DIALECT);
  return leaf.ignored === undefined ? field : { description: `Has no effect: ${leaf.ignored}.`, ...field };
}

/** Empty values change nothing, so they are taken. */
function emptyField(text: string): JsonSchema {
  return { description: `Must be empty: ${text}.`, enum: [null, '', [], {}], errorMessage: text, doNotSuggest: true };
}

function valueSchema(shape: Shape, rules: RuleNode | undefined): JsonSchema {
  if (rules === undefined || rules.leaf !== null) return jsonSchemaOf(shape, DIALECT);
  switch (shape.t) {
    case 'list':
      return { type: 'array', items: valueSchema(shape.of, childOf(rules, '[*]')) };
    case 'map':
      return keysSchema(entrySchema(shape, DIALECT), rules);
    case 'object': {
      const fields = Object.entries(shape.fields).flatMap(([name, field]) => {
        const schema = ruledField(field, childOf(rules, name));
        return schema === undefined ? [] : [[name, schema] as const];
      });
      return objectSchema(Object.fromEntries(fields), requiredOf(shape.fields));
    }
    default:
      throw new Error(`a ${shape.t} has nothing below it that a rule could be about`);
  }
}

/** A map of which only some keys can be honoured. */
function keysSchema(of: JsonSchema, rules: RuleNode): JsonSchema {
  const names: Record<string, unknown> = {};
  const patterns: Record<string, unknown> = {};
  for (const [key, { leaf }] of rules.children) {
    // Plugins of devices may have resources of their own, which have a domain.
    if (key === '*/*') patterns['/'] = of;
    else if (leaf?.refused !== undefined || leaf?.leftAlone !== undefined) continue;
    else if (key.endsWith('*')) patterns[`^${key.slice(0, -1)}`] = of;
    else names[key] = of;
  }
  return {
    type: 'object',
    properties: names,
    ...(Object.keys(patterns).length === 0 ? {} : { patternProperties: patterns }),
    additionalProperties: false,
  };
}
