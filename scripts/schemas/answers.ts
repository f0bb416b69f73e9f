/** JSON Schema of what `actorctl -o json` prints of `why`, `healthz`, `recorder`, `deaths`, `death` and `disagreements`. */
import { DEATH_HEAD, ENTRY, HEALTH, LEDGER, WHY } from '@actorlet/shown/src/answers.ts';
import { type Dialect, fieldSchemas, type JsonSchema, objectSchema, requiredOf } from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: false, nullsInMaps: false, nonEmpty: false, zeroDuration: false, zeroIsUnset: false };

/** Fields may come: a reader leaves alone what it does not know. */
function answer(fields: Parameters<typeof requiredOf>[0]): JsonSchema {
  const closed = JSON.stringify(objectSchema(fieldSchemas(fields, DIALECT), requiredOf(fields)));
  return JSON.parse(closed, (key, value: unknown) => (key === 'additionalProperties' && value === false ? undefined : value)) as JsonSchema;
}

/** A bundle: what the list shows of it, and parts that may be more from release to release. */
function death(): JsonSchema {
  const parts = Object.fromEntries(
    ['why', 'next', 'causes', 'steps', 'calls', 'containers', 'probes', 'usage', 'kernel', 'events', 'cut'].map((name) => [
      name,
      { type: 'array' },
    ]),
  );
  const objects = Object.fromEntries(['death', 'log', 'node', 'replay', 'limits'].map((name) => [name, { type: 'object' }]));
  const properties = { format: { const: 1 }, head: answer(DEATH_HEAD), keptAtMs: { type: 'integer' }, ...parts, ...objects };
  return { type: 'object', required: Object.keys(properties), properties };
}

export function answersSchema(): JsonSchema {
  const definitions = {
    ...{ why: answer(WHY), healthz: answer(HEALTH), recorder: { type: 'array', items: answer(ENTRY) } },
    ...{ deaths: { type: 'array', items: answer(DEATH_HEAD) }, death: death(), disagreements: answer(LEDGER) },
  };
  const names = Object.keys(definitions);
  return {
    title: 'actorctl -o json',
    description: `What \`actorctl\` prints of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}. Fields may be added; none goes or changes its meaning before 1.0.0.`,
    definitions,
    anyOf: names.map((name) => ({ $ref: `#/definitions/${name}` })),
  };
}
