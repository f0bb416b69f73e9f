/** Groups of nodes in a fleet file, and the images that they pull. */
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import type { MapReader } from '@actorlet/kubelet/machines/faults/read/reader.ts';
import { labelValue, qualifiedName } from '@actorlet/kubelet/machines/kube/names.ts';
import { type Delay, delayIn } from './delay.ts';
import { fieldsIn, textsOf } from './fields.ts';
import { BANDWIDTH, CAPACITY, DELAYED, GROUP, IMAGE, NODES_MAX } from './table.ts';

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
  /** Extended resources, such as `example.com/gpu`: how many each node has. */
  extended: Readonly<Record<string, number>>;
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
const VERSION = /^v1\.\d{1,3}\.\d{1,4}$/;
const EXTENDED_MAX = 1_000_000;
const NO_DELAY: Delay = { fromMs: 0, toMs: 0 };

export const DEFAULT_GROUP: Omit<GroupSpec, 'name' | 'count' | 'nodeName'> = {
  labels: {},
  taints: [],
  cpus: 8,
  memoryBytes: 32 * 2 ** 30,
  pods: 110,
  extended: {},
  version: '',
  runtimeHandlers: [],
  delays: { sandbox: NO_DELAY, pull: NO_DELAY, start: NO_DELAY },
  bytesPerSecond: null,
};

export function nodeNameOf(pattern: string, index: number): string {
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
  const { name, count, taints, version = '', runtimeHandlers, ...own } = fieldsIn(group, GROUP, { name: '', count: 0 });
  if (name !== '') checkName(group, name);
  if (version !== '' && !VERSION.test(version)) group.wrong('version', `must be a version such as v1.35.2, is ${JSON.stringify(version)}`);
  const nodeName = own.nodeName ?? `${name}-{index}`;
  if (own.nodeName !== undefined) checkNodeName(group, own.nodeName);
  const labelled = group.map('labels');
  const labels = textsOf(labelled);
  for (const [key, value] of Object.entries(labels)) {
    const why = wrongLabel(key, value);
    if (why !== null) labelled?.wrong(key, why);
  }
  const capacity = capacityIn(group.map('capacity'));
  const runtime = group.map('runtime');
  const kinds = Object.keys(DELAYED) as (keyof typeof DELAYED)[];
  const delays = Object.fromEntries(kinds.map((kind) => [kind, delayIn(runtime, kind) ?? NO_DELAY])) as GroupSpec['delays'];
  const bytesPerSecond = runtime?.read('bandwidth', BANDWIDTH) ?? null;
  if (bytesPerSecond === 0) runtime?.wrong('bandwidth', 'must be more than 0');
  runtime?.finish();
  group.finish();
  const checked = taints.flatMap((text) => taintOf(group, text));
  return { name, count, nodeName, labels, taints: checked, ...capacity, version, runtimeHandlers, delays, bytesPerSecond };
}

function checkNodeName(group: MapReader, pattern: string): void {
  if (!pattern.includes('{index}')) group.wrong('nodeName', 'must contain {index}, which counts the nodes of the group');
  else if (nodeNameOf(pattern, NODES_MAX).length > NODE_NAME_MAX || !NAME.test(nodeNameOf(pattern, 0))) {
    group.wrong('nodeName', 'must give a DNS subdomain: lower-case letters, digits, "-" and "."');
  }
}

function capacityIn(capacity: MapReader | undefined): Pick<GroupSpec, 'cpus' | 'memoryBytes' | 'pods' | 'extended'> {
  const { cpus, memoryBytes, pods } = DEFAULT_GROUP;
  if (capacity === undefined) return { cpus, memoryBytes, pods, extended: {} };
  const own = fieldsIn(capacity, CAPACITY);
  const names = capacity.node.items.map(({ key }) => String(key)).filter((name) => name.includes('/'));
  const extended = names.map((name) => [name, capacity.number(name, { min: 0, max: EXTENDED_MAX, whole: true }) ?? 0]);
  capacity.finish();
  return { ...own, extended: Object.fromEntries(extended) as Record<string, number> };
}

/** An API server refuses a node with another one, and it would never be Ready. */
function wrongLabel(key: string, value: string): string | null {
  return qualifiedName(key) ?? labelValue(value);
}

const TAINT = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

function taintOf(group: MapReader, text: string): ConfigTaint[] {
  const [, key, value = '', effect] = TAINT.exec(text) ?? [];
  if (key !== undefined && effect !== undefined) {
    const why = wrongLabel(key, value);
    if (why !== null) group.wrong('taints', `${JSON.stringify(text)}: ${why}`);
    return [{ key, value, effect: effect as ConfigTaint['effect'] }];
  }
  group.wrong('taints', `${JSON.stringify(text)} must be KEY=VALUE:EFFECT, the effect one of NoSchedule, PreferNoSchedule, NoExecute`);
  return [];
}

/** Names of groups and of nodes are unique. */
export function checkGroups(entries: readonly MapReader[], groups: readonly GroupSpec[]): void {
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

export function decodeImage(image: MapReader): ImageSpec {
  const read = fieldsIn(image, IMAGE, { name: [], sizeBytes: 0 });
  image.finish();
  return read;
}
