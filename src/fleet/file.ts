/** A fleet file: YAML text to a {@link FleetSpec}, or everything that is wrong with it, each with its line and field. */
import type { ConfigTaint } from '../machines/config/config.ts';
import { readDocument } from '../machines/faults/read/document.ts';
import type { MapReader } from '../machines/faults/read/reader.ts';
import type { ScenarioError } from '../machines/faults/types.ts';

const FLEET_KIND = 'Fleet';

/** Milliseconds; each time one is drawn between them. */
export interface Delay {
  fromMs: number;
  toMs: number;
}

export interface GroupSpec {
  name: string;
  count: number;
  /** With `{index}`, which counts from 0 within the group. */
  nodeName: string;
  labels: Readonly<Record<string, string>>;
  taints: readonly ConfigTaint[];
  cpus: number;
  memoryBytes: number;
  /** Pods that a node takes. */
  pods: number;
  /** What the runtime takes for these. */
  delays: { sandbox: Delay; pull: Delay; start: Delay };
}

/** Nodes that a step or an expectation is about: of these groups (absent: of all), and of these a share, drawn by the seed. */
export interface Selection {
  groups?: readonly string[];
  share: number;
}

export type StepSpec = { atMs: number; nodes: Selection } & ({ do: 'restart' } | { do: 'inject'; scenario: string });

export type ExpectSpec = { withinMs: number } & ({ what: 'nodesReady'; count: number } | { what: 'podsReady'; count: number });

export interface FleetSpec {
  /** Value of the label {@link FLEET_LABEL} of each node. */
  name: string;
  /** The same seed draws the same delays and the same shares. */
  seed: number;
  groups: readonly GroupSpec[];
  steps: readonly StepSpec[];
  expect: readonly ExpectSpec[];
}

/** Label of every node that a fleet made: a fleet takes over and removes only such. */
export const FLEET_LABEL = 'actorlet.dev/fleet';
/** Nodes of one process. */
export const NODES_MAX = 20_000;
const GROUPS_MAX = 1_000;
const CPUS_MAX = 1_024;
const PODS_MAX = 10_000;
const DAY_MS = 86_400_000;
const NODE_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const NODE_NAME_MAX = 253;

const NO_DELAY: Delay = { fromMs: 0, toMs: 0 };
const DEFAULT_GROUP: Omit<GroupSpec, 'name' | 'count' | 'nodeName'> = {
  labels: {},
  taints: [],
  cpus: 8,
  memoryBytes: 32 * 2 ** 30,
  pods: 110,
  delays: { sandbox: NO_DELAY, pull: NO_DELAY, start: NO_DELAY },
};

/** A fleet of equal nodes `PREFIX-0`, `PREFIX-1` and so on. */
export function plainFleet(o: { name: string; nodes: number; prefix: string; seed: number }): FleetSpec {
  const group = { ...DEFAULT_GROUP, name: o.prefix, count: o.nodes, nodeName: `${o.prefix}-{index}` };
  return { name: o.name, seed: o.seed, groups: [group], steps: [], expect: [] };
}

export type DecodedFleet = { ok: true; value: FleetSpec } | { ok: false; errors: readonly ScenarioError[] };

/** Never throws. */
export function decodeFleet(text: string): DecodedFleet {
  return readDocument(text, FLEET_KIND, decodeRoot);
}

function decodeRoot(root: MapReader): FleetSpec {
  const metadata = root.map('metadata');
  const name = metadata === undefined ? undefined : nameIn(metadata);
  if (metadata === undefined && !root.has('metadata')) root.wrong('metadata', 'is missing; a fleet needs metadata.name');
  metadata?.finish();
  const spec = root.map('spec');
  if (spec === undefined && !root.has('spec')) root.wrong('spec', 'is missing');
  root.finish();
  const seed = spec?.number('seed', { min: 0, max: 2 ** 32 - 1, whole: true }) ?? 1;
  const entries = spec?.maps('groups') ?? [];
  if (spec !== undefined && entries.length === 0 && !spec.has('groups')) spec.wrong('groups', 'is missing; a fleet needs a group of nodes');
  if (entries.length > GROUPS_MAX) spec?.wrong('groups', `has ${entries.length} entries, at most ${GROUPS_MAX} are allowed`);
  const groups = entries.slice(0, GROUPS_MAX).map(decodeGroup);
  checkGroups(entries, groups);
  const names = groups.map((g) => g.name);
  const steps = spec?.maps('steps').flatMap((step) => decodeStep(step, names)) ?? [];
  const expect = spec?.maps('expect').flatMap(decodeExpect) ?? [];
  spec?.finish();
  return { name: name ?? '', seed, groups, steps: [...steps].sort((a, b) => a.atMs - b.atMs), expect };
}

function nameIn(of: MapReader): string | undefined {
  const name = of.text('name');
  if (!of.has('name')) of.wrong('name', 'is missing');
  else if (name !== undefined && (name.length > 63 || !NODE_NAME.test(name))) {
    of.wrong('name', 'must be lower-case letters, digits, "-" and ".", at most 63 characters');
  }
  return name;
}

function decodeGroup(group: MapReader): GroupSpec {
  const name = nameIn(group) ?? '';
  if (!group.has('count')) group.wrong('count', 'is missing');
  const count = group.number('count', { min: 1, max: NODES_MAX, whole: true }) ?? 0;
  const nodeName = group.text('nodeName') ?? `${name}-{index}`;
  if (!nodeName.includes('{index}')) group.wrong('nodeName', 'must contain {index}, which counts the nodes of the group');
  else if (group.has('nodeName') && (nodeNameOf(nodeName, NODES_MAX).length > NODE_NAME_MAX || !NODE_NAME.test(nodeNameOf(nodeName, 0)))) {
    group.wrong('nodeName', 'must give a DNS subdomain: lower-case letters, digits, "-" and "."');
  }
  const labels = textsOf(group.map('labels'));
  const taints = group.texts('taints')?.flatMap((text) => taintOf(group, text)) ?? [];
  const capacity = group.map('capacity');
  const cpus = capacity?.number('cpu', { min: 1, max: CPUS_MAX, whole: true }) ?? DEFAULT_GROUP.cpus;
  const memoryBytes = capacity?.quantity('memory') ?? DEFAULT_GROUP.memoryBytes;
  const pods = capacity?.number('pods', { min: 1, max: PODS_MAX, whole: true }) ?? DEFAULT_GROUP.pods;
  capacity?.finish();
  const runtime = group.map('runtime');
  const delays = { sandbox: delayIn(runtime, 'sandbox'), pull: delayIn(runtime, 'pull'), start: delayIn(runtime, 'start') };
  runtime?.finish();
  group.finish();
  return { name, count, nodeName, labels, taints, cpus, memoryBytes, pods, delays };
}

/** `4s`, or `{ from: 1s, to: 9s }`. */
function delayIn(of: MapReader | undefined, field: string): Delay {
  const node = of?.get(field);
  if (of === undefined || node === undefined) return NO_DELAY;
  if (!('items' in node)) {
    const ms = of.duration(field, { maxMs: DAY_MS }) ?? 0;
    return { fromMs: ms, toMs: ms };
  }
  const range = of.map(field);
  const fromMs = range?.duration('from', { maxMs: DAY_MS }) ?? 0;
  const toMs = range?.duration('to', { maxMs: DAY_MS }) ?? fromMs;
  if (toMs < fromMs) range?.wrong('to', 'must not be less than from');
  range?.finish();
  return { fromMs, toMs };
}

function textsOf(map: MapReader | undefined): Record<string, string> {
  if (map === undefined) return {};
  const names = map.node.items.map(({ key }) => String(key));
  return Object.fromEntries(names.map((name) => [name, map.text(name) ?? '']));
}

const TAINT = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

function taintOf(group: MapReader, text: string): ConfigTaint[] {
  const [, key, value = '', effect] = TAINT.exec(text) ?? [];
  if (key !== undefined && effect !== undefined) return [{ key, value, effect: effect as ConfigTaint['effect'] }];
  group.wrong('taints', `${JSON.stringify(text)} must be KEY=VALUE:EFFECT, the effect one of NoSchedule, PreferNoSchedule, NoExecute`);
  return [];
}

/** Names of groups and of nodes are unique. */
function checkGroups(entries: readonly MapReader[], groups: readonly GroupSpec[]): void {
  const total = groups.reduce((sum, g) => sum + g.count, 0);
  if (total > NODES_MAX) entries[0]?.wrong('count', `the groups have ${total} nodes together, at most ${NODES_MAX} are allowed`);
  const seen = { name: new Map<string, number>(), nodeName: new Map<string, number>() };
  for (const [i, group] of groups.entries()) {
    for (const field of ['name', 'nodeName'] as const) {
      const before = seen[field].get(group[field]);
      if (before !== undefined) entries[i]?.wrong(field, `is the same as that of groups[${before}]`);
      else seen[field].set(group[field], i);
    }
  }
}

function decodeStep(step: MapReader, groups: readonly string[]): StepSpec[] {
  if (!step.has('at')) step.wrong('at', 'is missing');
  const atMs = step.duration('at', { maxMs: DAY_MS }) ?? 0;
  const nodes = selectionIn(step, groups);
  const does = step.word('do', ['restart', 'inject'] as const);
  if (!step.has('do')) step.wrong('do', 'is missing; it is restart or inject');
  const scenario = step.text('scenario');
  if (does === 'inject' && !step.has('scenario')) step.wrong('scenario', 'is missing; inject needs the file of a fault scenario');
  if (does === 'restart' && scenario !== undefined) step.wrong('scenario', 'belongs to inject');
  step.finish();
  if (does === undefined) return [];
  return [does === 'restart' ? { atMs, nodes, do: does } : { atMs, nodes, do: does, scenario: scenario ?? '' }];
}

function selectionIn(of: MapReader, groups: readonly string[]): Selection {
  const nodes = of.map('nodes');
  const share = nodes?.number('share', { min: 0, max: 1 }) ?? 1;
  const chosen = nodes?.words('groups', groups);
  nodes?.finish();
  return { share, ...(chosen === undefined ? {} : { groups: chosen }) };
}

function decodeExpect(expected: MapReader): ExpectSpec[] {
  if (!expected.has('within')) expected.wrong('within', 'is missing');
  const withinMs = expected.duration('within', { maxMs: DAY_MS }) ?? 0;
  const limits = { min: 0, max: NODES_MAX * PODS_MAX, whole: true };
  const nodesReady = expected.number('nodesReady', limits);
  const podsReady = expected.number('podsReady', limits);
  expected.finish();
  if (nodesReady !== undefined && podsReady !== undefined)
    expected.wrong('podsReady', 'stands beside nodesReady: one expectation is about one thing');
  if (!expected.has('nodesReady') && !expected.has('podsReady')) expected.wrong('', 'needs nodesReady or podsReady');
  if (nodesReady !== undefined) return [{ what: 'nodesReady', count: nodesReady, withinMs }];
  return podsReady === undefined ? [] : [{ what: 'podsReady', count: podsReady, withinMs }];
}

export function nodeNameOf(pattern: string, index: number): string {
  return pattern.replaceAll('{index}', String(index));
}
