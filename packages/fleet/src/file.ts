/** A fleet file: YAML text to a {@link FleetSpec}, or everything that is wrong with it, each with its line and field. */
import { readDocument } from '@actorlet/faults/src/read/document.ts';
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import type { ScenarioError } from '@actorlet/faults/src/types.ts';
import type { PodRule } from './pods/rules.ts';
import { type AdoptSpec, decodeAdopt } from './spec/adopt.ts';
import { decodeExpect, type ExpectSpec } from './spec/expect.ts';
import { checkFiles, fieldsIn, type Unreadable } from './spec/fields.ts';
import {
  checkGroups,
  checkName,
  DEFAULT_GROUP,
  decodeGroup,
  decodeImage,
  type GroupSpec,
  type ImageSpec,
  wrongName,
} from './spec/groups.ts';
import { checkStorage, type StorageSpec, storageIn } from './spec/hardware/storage.ts';
import { decodeRule } from './spec/pods.ts';
import { decodeStep, type StepSpec } from './spec/steps.ts';
import {
  ADOPT_MAX,
  DESCRIPTION,
  EXPECT_MAX,
  FLEET_KIND,
  GROUPS_MAX,
  NAME,
  NODES_MAX,
  SEED,
  SEED_MAX,
  STAGES,
  STEPS_MAX,
  STORAGE_MAX,
} from './spec/table.ts';
import { type DrawnFault, decodeTrouble, drawnFaults, type TroubleSpec } from './spec/trouble.ts';

export { type GroupSpec, nodeOf } from './spec/groups.ts';

export interface FleetSpec {
  /** Value of the label {@link FLEET_LABEL} of each node. */
  name: string;
  /** The same seed draws the same delays and the same shares. */
  seed: number;
  groups: readonly GroupSpec[];
  /** Nodes that others make. */
  adopt: readonly AdoptSpec[];
  /** CSI drivers that the fleet plays. */
  storage: readonly StorageSpec[];
  images: readonly ImageSpec[];
  pods: readonly PodRule[];
  /** Files of KWOK Stages, which `stages.ts` reads. */
  stages: readonly string[];
  /** From one report of a node's status to the next, without a change; null: as a kubelet does. */
  heartbeatMs: number | null;
  steps: readonly StepSpec[];
  /** Faults of clients that the seed draws; null: none. */
  trouble: TroubleSpec | null;
  expect: readonly ExpectSpec[];
}

/** Said where a file has it and the API server is the embedded one. */
export const STORAGE_NEEDS = 'spec.storage needs --api local or a cluster: the embedded API server binds no claims and attaches no volumes';

/** Label of every node that a fleet made: a fleet takes over and removes only such. */
export const FLEET_LABEL = 'actorlet.dev/fleet';

/** A twin of a large cluster has thousands of names. */
const FILE_BYTES_MAX = 8 * 2 ** 20;
const NOTHING_MORE = {
  adopt: [],
  storage: [],
  images: [],
  pods: [],
  stages: [],
  heartbeatMs: null,
  steps: [],
  trouble: null,
  expect: [],
} as const;

/** A fleet of equal nodes `PREFIX-0`, `PREFIX-1` and so on. */
export function plainFleet(o: { name: string; nodes: number; prefix: string; seed: number }): FleetSpec {
  const group = { ...DEFAULT_GROUP, name: o.prefix, count: o.nodes, nodeName: `${o.prefix}-{index}` };
  return { name: o.name, seed: o.seed, groups: [group], ...NOTHING_MORE };
}

type Plain = Parameters<typeof plainFleet>[0];

/** What is wrong with the options of a fleet of equal nodes, by their names. */
export function wrongPlain({ name, prefix, nodes, seed }: Plain): Partial<Record<keyof Plain, string>> {
  const outside = (value: number, [min, max]: readonly [number, number]): string | null =>
    Number.isInteger(value) && value >= min && value <= max ? null : `must be a whole number from ${min} to ${max}, is ${value}`;
  const named = (value: string): string | null => {
    const wrong = wrongName(value);
    return wrong === null ? null : `${JSON.stringify(value)} ${wrong}`;
  };
  const all = { nodes: outside(nodes, [1, NODES_MAX]), seed: outside(seed, [0, SEED_MAX]), name: named(name), prefix: named(prefix) };
  return Object.fromEntries(Object.entries(all).filter(([, wrong]) => wrong !== null));
}

export type DecodedFleet = { ok: true; value: FleetSpec } | { ok: false; errors: readonly ScenarioError[] };

/** Never throws. `unreadable`: of the files that it names; default: they are not looked at. */
export function decodeFleet(text: string, unreadable: Unreadable = () => null, needs: Needs = 'nodes'): DecodedFleet {
  return readDocument(text, { kind: FLEET_KIND, bytesMax: FILE_BYTES_MAX }, (root) => decodeRoot(root, { unreadable, needs }));
}

/** What carries a file out: a fleet, or a proxy in front of an API server, which has no nodes. */
type Needs = 'nodes' | 'nothing';

function decodeRoot(root: MapReader, { unreadable, needs }: { unreadable: Unreadable; needs: Needs }): FleetSpec {
  const metadata = root.map('metadata');
  if (metadata === undefined && !root.has('metadata')) root.wrong('metadata', 'is missing; a fleet needs metadata.name');
  const { name = '' } = metadata === undefined ? {} : fieldsIn(metadata, { name: NAME, description: DESCRIPTION });
  if (metadata !== undefined && name !== '') checkName(metadata, name);
  metadata?.finish();
  const spec = root.map('spec');
  if (spec === undefined && !root.has('spec')) root.wrong('spec', 'is missing');
  root.finish();
  if (spec === undefined) return { name, seed: 1, groups: [], ...NOTHING_MORE };
  const seed = spec.read('seed', SEED) ?? 1;
  const entries = atMost(spec, 'groups', GROUPS_MAX);
  if (entries.length === 0 && !spec.has('groups') && !spec.has('adopt') && needs === 'nodes')
    spec.wrong('groups', 'is missing; a fleet needs a group of nodes');
  const groups = entries.map(decodeGroup);
  checkGroups(entries, groups);
  const ofGroups = groups.map((g) => g.name);
  const adopters = atMost(spec, 'adopt', ADOPT_MAX);
  const adopt = adopters.map((entry) => decodeAdopt(entry, ofGroups));
  const names = [...ofGroups, ...adopt.map((a) => a.name)];
  for (const [i, entry] of adopters.entries()) {
    if (names.indexOf(adopt[i]?.name ?? '') < ofGroups.length + i) entry.wrong('name', 'is the name of a group, or of another entry');
  }
  const stores = atMost(spec, 'storage', STORAGE_MAX);
  const storage = stores.map(storageIn);
  checkStorage(stores, storage);
  const images = spec.maps('images').map(decodeImage);
  const pods = spec.maps('pods').map((rule) => decodeRule(rule, names));
  const stages = spec.read('stages', STAGES) ?? [];
  checkFiles(spec, { field: 'stages', files: stages, unreadable });
  const steps = atMost(spec, 'steps', STEPS_MAX).flatMap((step) => decodeStep(step, { groups: names, ownGroups: ofGroups, unreadable }));
  if (storage.length === 0 && !spec.has('storage') && steps.some((step) => step.do === 'volumes'))
    spec.wrong('steps', 'inject faults into volumes, and spec.storage has no driver whose volumes these are');
  if (
    adopters.length === 0 &&
    !steps.some((step) => step.do === 'add') &&
    groups.length > 0 &&
    groups.every(({ count }, i) => count === 0 && entries[i]?.has('count') === true)
  )
    entries[0]?.wrong('count', 'is 0, and nothing adopts or adds nodes: there would be none');
  const trouble = spec.has('trouble') ? decodeTrouble(spec.map('trouble')) : null;
  const expect = atMost(spec, 'expect', EXPECT_MAX).flatMap(decodeExpect);
  // It would end before any pod is there, or any request is sent.
  const endless =
    steps.length === 0 &&
    trouble === null &&
    expect.length > 0 &&
    expect.every((e) => e.withinMs === null && e.afterFaultsMs === undefined);
  if (endless) spec.wrong('expect', 'does not say how long the run lasts; add `within` to an expectation, or add a step');
  spec.finish();
  const sorted = [...steps].sort((a, b) => a.atMs - b.atMs);
  return { name, seed, groups, adopt, storage, images, pods, stages, heartbeatMs: null, steps: sorted, trouble, expect };
}

/** Those beyond are not read. */
function atMost(spec: MapReader, field: string, max: number): MapReader[] {
  const entries = spec.maps(field);
  if (entries.length > max) spec.wrong(field, `has ${entries.length} entries, at most ${max} are allowed`);
  return entries.slice(0, max);
}

/**
 * With the faults of clients that its seed draws among its steps, or with these. What is expected after the last fault gets its times
 * from `counted`: a run with fewer faults is judged when the whole one was.
 */
export function withFaults(spec: FleetSpec, drawn: readonly DrawnFault[] = drawnFaultsOf(spec), counted = drawn): FleetSpec {
  const steps = [...spec.steps, ...drawn].sort((a, b) => a.atMs - b.atMs);
  const overMs = Math.max(0, ...[...spec.steps, ...counted].map(overAtMs));
  const expect = spec.expect.map(({ afterFaultsMs, ...e }) =>
    afterFaultsMs === undefined ? e : { ...e, afterMs: overMs, withinMs: overMs + afterFaultsMs },
  );
  return { ...spec, steps, expect };
}

export function drawnFaultsOf({ trouble, seed }: FleetSpec): DrawnFault[] {
  return trouble === null ? [] : drawnFaults(trouble, seed);
}

/** A step is done when it has begun; a fault when it is healed. */
function overAtMs(step: StepSpec): number {
  if (!('api' in step)) return step.atMs;
  const { fault, ageMs, forMs } = step.api;
  return step.atMs + (fault === 'stale-reads' ? ageMs : 0) + forMs;
}

/** Whether clients must reach the API server through a proxy. */
export function asksProxy({ steps, trouble, expect }: FleetSpec): boolean {
  return trouble !== null || expect.some((e) => e.measure.what === 'requests') || steps.some((step) => 'api' in step);
}
