/** JSON Schema of fleet files: the table of `packages/fleet/src/spec`. */

import { SCENARIO_API_VERSION } from '@actorlet/faults/src/table.ts';
import { API_FAULT, API_FAULTS, API_SELECT } from '@actorlet/fleet/src/spec/apiFaults.ts';
import {
  ADOPT,
  ADOPT_MAX,
  ADOPT_NODES,
  ALLOCATABLE,
  BANDWIDTH,
  CAPACITY,
  CLOCK,
  CLOCK_FOR,
  DELAY,
  DELAYED,
  DESCRIPTION,
  DEVICES,
  DRIVERS_MAX,
  EVENTS,
  EXIT,
  EXPECT,
  EXPECT_MAX,
  FLEET_KIND,
  GROUP,
  GROUPS_MAX,
  IMAGE,
  MACHINE,
  MEASURES,
  NAME,
  NAMED_NODE,
  OBJECTS,
  REFUSE,
  REFUSE_BY,
  REGISTRATION,
  REQUESTS,
  RULE_DELAYS,
  RULE_LIFE,
  RULE_SELECT,
  SEED,
  SELECTION,
  STAGES,
  STEP,
  STEPS_MAX,
  STORAGE,
  STORAGE_DELAYS,
  STORAGE_MAX,
  time,
  VOLUME_FAULT,
  VOLUME_FAULT_FOR,
} from '@actorlet/fleet/src/spec/table.ts';
import { TROUBLE } from '@actorlet/fleet/src/spec/trouble.ts';
import { bytes, type Shape } from '../../src/machines/shape/shape.ts';
import { type Dialect, fieldSchema, fieldSchemas, type JsonSchema, objectSchema, requiredOf } from './jsonSchema.ts';

const DIALECT: Dialect = { nulls: false, nullsInMaps: false, nonEmpty: true, zeroDuration: true, zeroIsUnset: false };
const TEXTS = { type: 'object', additionalProperties: { type: 'string' } };
const ONE_SIDE = { oneOf: [{ required: ['ahead'] }, { required: ['behind'] }] };
const MANIFEST = {
  type: 'object',
  properties: { metadata: { type: 'object', properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] } },
  required: ['apiVersion', 'kind', 'metadata'],
};

const FAULTS = Object.entries(API_FAULTS)
  .map(([name, { text }]) => `${name}: ${text}`)
  .join(' ');

type Table = Readonly<Record<string, Shape>>;
const ofTable = (table: Table, more: JsonSchema = {}): JsonSchema =>
  objectSchema({ ...fieldSchemas(table, DIALECT), ...more }, requiredOf(table));
const list = (description: string, items: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
  description,
  type: 'array',
  items,
  ...more,
});
const delays = (of: Readonly<Record<string, string>>): JsonSchema =>
  Object.fromEntries(
    Object.entries(of).map(([name, description]) => [
      name,
      { description, anyOf: [fieldSchema(time(), DIALECT), ofTable(DELAY.uniform), ofTable(DELAY.logNormal)] },
    ]),
  );

export function fleetSchema(): JsonSchema {
  const capacity = objectSchema(fieldSchemas(CAPACITY, DIALECT), []);
  const allocatable = objectSchema(fieldSchemas(ALLOCATABLE, DIALECT), []);
  const group = {
    ...ofTable(GROUP, {
      name: fieldSchema(GROUP.name, DIALECT),
      nodes: list(
        'Its nodes, written out. In place of `count` and `nodeName`.',
        ofTable(NAMED_NODE, { labels: { description: 'Besides those of the group.', ...TEXTS } }),
        { minItems: 1 },
      ),
      labels: { description: 'Labels of its nodes.', ...TEXTS },
      machine: { description: 'What its nodes say of their machines.', ...ofTable(MACHINE) },
      allocatable: { description: 'What of the capacity pods may use.', ...allocatable },
      capacity: {
        description: 'Of each node; extended resources too.',
        ...capacity,
        patternProperties: { '/': { type: 'integer', minimum: 0 }, '^hugepages-[1-9][0-9]*[KMGT]i$': fieldSchema(bytes, DIALECT) },
      },
      devices: list(
        'Devices of each node, for dynamic resource allocation.',
        ofTable(DEVICES, {
          attributes: { description: 'Of each device.', type: 'object', additionalProperties: { type: ['string', 'integer', 'boolean'] } },
          capacity: { description: 'Quantities of each device.', type: 'object', additionalProperties: { type: ['string', 'number'] } },
        }),
        { maxItems: DRIVERS_MAX },
      ),
      clock: { description: 'Where their clocks stand. Default: as that of the fleet.', ...objectSchema(delays(CLOCK), []), ...ONE_SIDE },
      runtime: {
        description: 'What its container runtime takes time for.',
        ...objectSchema({ ...delays(DELAYED), bandwidth: fieldSchema(BANDWIDTH, DIALECT) }, []),
      },
    }),
    oneOf: [{ required: ['count'] }, { required: ['nodes'] }],
  };
  const refuse = {
    ...ofTable(REFUSE, delays({ by: REFUSE_BY })),
    oneOf: [{ required: ['share'] }, { required: ['order'] }],
  };
  const adopt = ofTable(ADOPT, {
    nodes: { description: 'Which nodes. Every field that is there must match.', ...ofTable(ADOPT_NODES), minProperties: 1 },
    ...delays({ registration: REGISTRATION }),
    refuse: list('Nodes whose machine does not come, or comes late.', refuse),
  });
  const rule = ofTable(
    { ...RULE_SELECT, ...RULE_LIFE },
    { labels: { description: 'Labels of the pod.', ...TEXTS }, exit: fieldSchema(EXIT, DIALECT), ...delays(RULE_DELAYS) },
  );
  const step = ofTable(STEP, {
    nodes: { description: 'Which nodes. Default: all.', ...ofTable(SELECTION) },
    volumes: {
      description: 'Of inject: volumes of spec.storage are not attached.',
      ...ofTable({ ...VOLUME_FAULT, for: VOLUME_FAULT_FOR }),
    },
    clock: {
      description: 'Of inject: the clocks of these nodes are set.',
      ...objectSchema({ ...delays(CLOCK), for: fieldSchema(CLOCK_FOR, DIALECT) }, []),
      ...ONE_SIDE,
    },
    api: {
      description: `Of inject: a fault that clients of the API server meet. ${FAULTS}`,
      ...ofTable({ ...API_FAULT, ...API_SELECT }),
    },
    objects: list('Objects of Kubernetes, written out. For apply and delete.', MANIFEST),
  });
  const expected = ofTable(
    { ...MEASURES, ...EXPECT },
    {
      objects: { description: 'Objects of the API server.', ...ofTable(OBJECTS) },
      events: { description: 'Events. One that came again counts as often.', ...ofTable(EVENTS) },
      requests: { description: 'Requests of clients that came by the proxy.', ...ofTable({ ...API_SELECT, ...REQUESTS }) },
    },
  );
  const spec = {
    ...objectSchema(
      {
        seed: fieldSchema(SEED, DIALECT),
        groups: list('Groups of equal nodes.', group, { minItems: 1, maxItems: GROUPS_MAX }),
        adopt: list(
          'Nodes that an autoscaler makes, and that get a kubelet of this fleet.',
          { ...adopt, required: ['name', 'nodes'] },
          { maxItems: ADOPT_MAX },
        ),
        storage: list('CSI drivers that the fleet plays. With --api local or a cluster.', ofTable(STORAGE, delays(STORAGE_DELAYS)), {
          maxItems: STORAGE_MAX,
        }),
        images: list('Sizes of images. The first entry that matches counts.', ofTable(IMAGE)),
        pods: list('What containers do, by rules. Annotations of a pod count more.', rule),
        stages: fieldSchema(STAGES, DIALECT),
        trouble: { description: 'Faults that clients of the API server meet, drawn by the seed.', ...ofTable(TROUBLE) },
        steps: list('What is done, in the order of their times.', step, { maxItems: STEPS_MAX }),
        expect: list('What a run must come to.', expected, { maxItems: EXPECT_MAX }),
      },
      [],
    ),
    anyOf: [{ required: ['groups'] }, { required: ['adopt'] }],
  };
  const metadata = ofTable({ name: NAME, description: DESCRIPTION });
  return {
    title: FLEET_KIND,
    description: 'Nodes for `actorlet fleet FILE`.',
    ...objectSchema({ apiVersion: { const: SCENARIO_API_VERSION }, kind: { const: FLEET_KIND }, metadata, spec }, [
      ...['apiVersion', 'kind', 'metadata', 'spec'],
    ]),
  };
}
