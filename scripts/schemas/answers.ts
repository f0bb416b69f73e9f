/** JSON Schema of what `actorctl -o json` prints of `why`, `healthz` and `recorder`. */
import { ENTRY, HEALTH, WHY } from '../../src/machines/shown/answers.ts';
import { type Dialect, fieldSchemas, type JsonSchema, objectSchema, requiredOf } from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: false, nullsInMaps: false, nonEmpty: false, zeroDuration: false, zeroIsUnset: false };

/** Fields may come: a reader leaves alone what it does not know. */
function answer(fields: Parameters<typeof requiredOf>[0]): JsonSchema {
  const closed = JSON.stringify(objectSchema(fieldSchemas(fields, DIALECT), requiredOf(fields)));
  return JSON.parse(closed, (key, value: unknown) => (key === 'additionalProperties' && value === false ? undefined : value)) as JsonSchema;
}

export function answersSchema(): JsonSchema {
  return {
    title: 'actorctl -o json',
    description: 'What `actorctl why`, `healthz` and `recorder` print. Fields may be added; none goes or changes its meaning before 1.0.0.',
    definitions: { why: answer(WHY), healthz: answer(HEALTH), recorder: { type: 'array', items: answer(ENTRY) } },
    anyOf: ['why', 'healthz', 'recorder'].map((name) => ({ $ref: `#/definitions/${name}` })),
  };
}
