/** Groups of nodes in a fleet file, and the images that they pull. */

import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import { type Delay, delayIn } from './delay.ts';
import { fieldsIn } from './fields.ts';
import { type ClockSpec, clockIn } from './hardware/clocks.ts';
import { type DevicesSpec, devicesIn } from './hardware/devices.ts';
import {
  type Capacity,
  capacityIn,
  DEFAULT_CAPACITY,
  labelsIn,
  type MachineSpec,
  machineIn,
  type NamedNode,
  nodesIn,
  wrongLabel,
} from './machines.ts';
import { BANDWIDTH, DELAYED, GROUP, IMAGE, NODES_MAX, VERSION } from './table.ts';

export interface GroupSpec extends Capacity {
  name: string;
  count: number;
  /** With `{index}`, which counts from 0 within the group. */
  nodeName: string;
  /** Written out, as many as `count`; empty: they are named by the pattern. */
  nodes: readonly NamedNode[];
  labels: Readonly<Record<string, string>>;
  taints: readonly ConfigTaint[];
  unschedulable: boolean;
  /** With `{name}` or `{index}`; '': none. */
  providerID: string;
  machine: MachineSpec;
  /** Null: as that of the fleet. */
  clock: ClockSpec | null;
  /** For dynamic allocation. */
  devices: readonly DevicesSpec[];
  /** That its nodes report; '': of this program. */
  version: string;
  runtimeHandlers: readonly string[];
  /** What the runtime takes for these. */
  delays: Readonly<Record<keyof typeof DELAYED, Delay>>;
  /** At which images are pulled; null: their size takes no time. */
  bytesPerSecond: number | null;
}
export interface ImageSpec {
  /** Patterns. */
  name: readonly string[];
  sizeBytes: number;
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const NAME_MAX = 63;
const NODE_NAME_MAX = 253;
const VERSION_OF = new RegExp(VERSION);
const NO_DELAY: Delay = { fromMs: 0, toMs: 0 };

export const DEFAULT_GROUP: Omit<GroupSpec, 'name' | 'count' | 'nodeName'> = {
  nodes: [],
  labels: {},
  taints: [],
  unschedulable: false,
  providerID: '',
  machine: {},
  clock: null,
  devices: [],
  ...DEFAULT_CAPACITY,
  version: '',
  runtimeHandlers: [],
  delays: { sandbox: NO_DELAY, pull: NO_DELAY, start: NO_DELAY },
  bytesPerSecond: null,
};

/** The node of that position, with its provider's id; '': none. */
export function nodeOf({ nodes, nodeName, providerID: pattern }: GroupSpec, index: number): Required<NamedNode> {
  const { name = named(nodeName, index), providerID, labels = {} } = nodes[index] ?? {};
  return { name, labels, providerID: providerID ?? named(pattern, index).replaceAll('{name}', name) };
}

function named(pattern: string, index: number): string {
  return pattern.replaceAll('{index}', String(index));
}

/** Complains of a name that is missing or no name. */
export function checkName(of: MapReader, name: string | undefined): void {
  const wrong = name === undefined ? null : wrongName(name);
  if (wrong !== null) of.wrong('name', wrong);
}

/** What is wrong with it as a label and as a beginning of node names; null: nothing. */
export function wrongName(name: string): string | null {
  if (name.length <= NAME_MAX && NAME.test(name)) return null;
  return `must be lower-case letters, digits, "-" and ".", at most ${NAME_MAX} characters`;
}

export function decodeGroup(group: MapReader): GroupSpec {
  const { name, taints, version = '', runtimeHandlers, unschedulable, providerID, ...own } = fieldsIn(group, GROUP, { name: '' });
  const nodes = nodesIn(group);
  if (nodes.length === 0 && !group.has('count') && !group.has('nodes')) group.wrong('count', 'is missing');
  for (const field of ['count', 'nodeName'] as const) {
    if (group.has('nodes') && group.has(field)) group.wrong(field, 'stands beside nodes, which has the names and the number of nodes');
  }
  const count = own.count ?? nodes.length;
  if (name !== '') checkName(group, name);
  if (version !== '' && !VERSION_OF.test(version))
    group.wrong('version', `must be a version such as v1.35.2, is ${JSON.stringify(version)}`);
  const nodeName = own.nodeName ?? `${name}-{index}`;
  if (own.nodeName !== undefined) checkNodeName(group, own.nodeName);
  const labels = labelsIn(group);
  const capacity = capacityIn(group);
  const machine = machineIn(group.map('machine'));
  const ofClock = group.map('clock');
  const clock = clockIn(ofClock);
  ofClock?.finish();
  const devices = devicesIn(group);
  const runtime = group.map('runtime');
  const kinds = Object.keys(DELAYED) as (keyof typeof DELAYED)[];
  const delays = Object.fromEntries(kinds.map((kind) => [kind, delayIn(runtime, kind) ?? NO_DELAY])) as GroupSpec['delays'];
  const bytesPerSecond = runtime?.read('bandwidth', BANDWIDTH) ?? null;
  if (bytesPerSecond === 0) runtime?.wrong('bandwidth', 'must be more than 0');
  runtime?.finish();
  group.finish();
  const checked = taints.flatMap((text) => taintOf(group, text));
  const one = { name, count, nodeName, nodes, labels, taints: checked, unschedulable, providerID, machine, clock, devices };
  return { ...one, ...capacity, version, runtimeHandlers, delays, bytesPerSecond };
}

function checkNodeName(group: MapReader, pattern: string): void {
  if (!pattern.includes('{index}')) group.wrong('nodeName', 'must contain {index}, which counts the nodes of the group');
  else if (named(pattern, NODES_MAX).length > NODE_NAME_MAX || !NAME.test(named(pattern, 0))) {
    group.wrong('nodeName', 'must give a DNS subdomain: lower-case letters, digits, "-" and "."');
  }
}

const TAINT = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

export function taintOf(group: MapReader, text: string, field = 'taints'): ConfigTaint[] {
  const [, key, value = '', effect] = TAINT.exec(text) ?? [];
  if (key !== undefined && effect !== undefined) {
    const why = wrongLabel(key, value);
    if (why !== null) group.wrong(field, `${JSON.stringify(text)}: ${why}`);
    return [{ key, value, effect: effect as ConfigTaint['effect'] }];
  }
  group.wrong(field, `${JSON.stringify(text)} must be KEY=VALUE:EFFECT, the effect one of NoSchedule, PreferNoSchedule, NoExecute`);
  return [];
}

/** Names of groups and of nodes are unique. */
export function checkGroups(entries: readonly MapReader[], groups: readonly GroupSpec[]): void {
  const total = groups.reduce((sum, g) => sum + g.count, 0);
  if (total > NODES_MAX) entries[0]?.wrong('count', `the groups have ${total} nodes together, at most ${NODES_MAX} are allowed`);
  const seen = { name: new Map<string, number>(), nodeName: new Map<string, number>() };
  const names = new Map<string, number>();
  for (const [i, group] of groups.entries()) {
    for (const [j, { name }] of group.nodes.entries()) {
      const before = names.get(name);
      if (before === undefined) names.set(name, i);
      else entries[i]?.wrong('nodes', `[${j}] has the name ${name}, as a node of groups[${before}] has`);
    }
    for (const field of ['name', 'nodeName'] as const) {
      const before = seen[field].get(group[field]);
      if (before !== undefined) entries[i]?.wrong(field, `is the same as that of groups[${before}]`);
      else seen[field].set(group[field], i);
    }
  }
}

export function decodeImage(image: MapReader): ImageSpec {
  const read = fieldsIn(image, IMAGE, { name: [], sizeBytes: 0 });
  image.finish();
  return read;
}
