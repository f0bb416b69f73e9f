/** JSON Schema of scenario files: the tables of `packages/faults`, one definition for each kind of fault. */
import { FAULT_KIND_NAMES, FAULT_KINDS, type FaultField, type FaultKind } from '@actorlet/faults/src/kinds.ts';
import { FAULTS_MAX } from '@actorlet/faults/src/read/decode.ts';
import {
  DURATION,
  LASTING,
  METADATA,
  SCENARIO_API_VERSION,
  SCENARIO_KIND,
  SELECT,
  SIMULATION,
  WHEN,
  WORKLOAD,
  WORKLOAD_KINDS,
  WORKLOAD_WHEN,
} from '@actorlet/faults/src/table.ts';
import { type Dialect, fieldSchema, fieldSchemas, type JsonSchema, objectSchema, requiredOf } from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: false, nullsInMaps: false, nonEmpty: true, zeroDuration: true, zeroIsUnset: false };

export function scenarioSchema(): JsonSchema {
  return {
    title: SCENARIO_KIND,
    description: 'Faults for `actorctl sim --scenario FILE` and `actorctl inject -f FILE`.',
    ...objectSchema(
      {
        apiVersion: { const: SCENARIO_API_VERSION },
        kind: { const: SCENARIO_KIND },
        metadata: objectSchema(fieldSchemas(METADATA, DIALECT), requiredOf(METADATA)),
        spec: {
          ...objectSchema(
            {
              duration: fieldSchema(DURATION, DIALECT),
              faults: {
                description: 'What is done to the node, and when.',
                type: 'array',
                maxItems: FAULTS_MAX,
                items: byKind(FAULT_KIND_NAMES, 'fault'),
              },
              simulation: {
                description: 'For the simulation only; a running daemon ignores it.',
                ...objectSchema(
                  {
                    ...fieldSchemas(SIMULATION, DIALECT),
                    workload: {
                      description: 'Pods of the scenario itself, in place of drawn ones.',
                      type: 'array',
                      items: byKind(WORKLOAD_KINDS, 'workload'),
                    },
                  },
                  [],
                ),
              },
            },
            [],
          ),
          anyOf: [{ required: ['faults'] }, { required: ['simulation'] }],
        },
      },
      ['apiVersion', 'kind', 'metadata', 'spec'],
    ),
    definitions: {
      ...Object.fromEntries(FAULT_KIND_NAMES.map((kind) => [`fault.${kind}`, faultSchema(kind)])),
      ...Object.fromEntries(WORKLOAD_KINDS.map((kind) => [`workload.${kind}`, workloadSchema(kind)])),
    },
  };
}

/** An object whose `kind` decides about the other fields. */
function byKind(kinds: readonly string[], prefix: string): JsonSchema {
  return {
    type: 'object',
    required: ['kind'],
    properties: { kind: { enum: kinds } },
    allOf: kinds.map((kind) => ({
      if: { properties: { kind: { const: kind } }, required: ['kind'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { $ref: `#/definitions/${prefix}.${kind}` },
    })),
  };
}

function faultSchema(kind: FaultKind): JsonSchema {
  const { lasts, actions, fields, what, select } = FAULT_KINDS[kind];
  const when = Object.fromEntries(Object.entries(WHEN).filter(([name]) => lasts || !LASTING.includes(name)));
  const own = fieldSchemas(fields, DIALECT);
  return {
    description: what,
    ...objectSchema(
      {
        kind: { const: kind },
        ...(actions === undefined ? {} : { action: { enum: actions } }),
        ...own,
        select: selectSchema(kind, select),
        ...fieldSchemas(when, DIALECT),
      },
      ['kind', ...(actions === undefined ? [] : ['action']), ...requiredOf(fields)],
    ),
    dependencies: { count: ['every'], ...(lasts ? { every: ['for'] } : {}) },
    ...onlyWithActions(fields, actions ?? []),
  };
}

/** Fields that some actions do not have. */
function onlyWithActions(fields: Readonly<Record<string, FaultField>>, actions: readonly string[]): JsonSchema {
  const rules = Object.entries(fields).flatMap(([name, { actions: its }]) =>
    its === undefined
      ? []
      : [
          {
            if: { properties: { action: { enum: actions.filter((a) => !its.includes(a)) } }, required: ['action'] },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
            then: { properties: { [name]: false } },
          },
        ],
  );
  return rules.length === 0 ? {} : { allOf: rules };
}

function selectSchema(kind: FaultKind, select: readonly (keyof typeof SELECT)[]): JsonSchema {
  const fields = Object.fromEntries(select.map((name) => [name, SELECT[name]]));
  return {
    description: select.length === 0 ? 'This kind selects nothing.' : 'What the fault is about. Absent: everything.',
    ...objectSchema(fieldSchemas(fields, DIALECT), []),
    ...(kind === 'mailbox' ? { anyOf: [{ required: ['actors'] }, { required: ['events'] }] } : {}),
  };
}

function workloadSchema(kind: keyof typeof WORKLOAD): JsonSchema {
  const fields = WORKLOAD[kind];
  const properties = { kind: { const: kind }, ...fieldSchemas(fields, DIALECT), ...fieldSchemas(WORKLOAD_WHEN, DIALECT) };
  return objectSchema(kind === 'pod.put' ? { ...properties, manifest: MANIFEST } : properties, ['kind', ...requiredOf(fields)]);
}

const CONTAINERS = {
  type: 'array',
  items: {
    type: 'object',
    properties: { name: { type: 'string', minLength: 1 }, image: { type: 'string', minLength: 1 } },
    required: ['name', 'image'],
  },
};
/** What the simulation has to know of a pod; the node itself judges the rest. */
const MANIFEST: JsonSchema = {
  description: WORKLOAD['pod.put'].manifest.about,
  type: 'object',
  properties: {
    metadata: { type: 'object', properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] },
    spec: {
      type: 'object',
      properties: { containers: CONTAINERS, initContainers: CONTAINERS },
      required: ['containers'],
    },
  },
  required: ['metadata', 'spec'],
};
