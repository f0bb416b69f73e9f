/** The node's own object: what it registers with, what it reports, and when a report is due (boot-and-node 9). Pure. */

import { own } from '../../data/own.ts';
import { sameData } from '../../data/sameData.ts';
import { HUGE_PAGES_PREFIX, isExtendedResource } from '../../kube/names.ts';
import { canonicalQuantity } from '../../kube/quantity.ts';
import { NODE_PRESSURES, type NodeIdentity, type NodePressure } from '../../nodeFacts.ts';
import type { RuntimePodsView } from '../../pod/runtime/seen.ts';
import type { CriView } from '../../runtime/cri/messages.ts';
import { shortDuration } from '../../text/duration.ts';
import { rfc3339 } from '../../text/go/goTime.ts';

export interface NodeCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastHeartbeatTime: string;
  lastTransitionTime: string;
}
interface NodeInfo {
  bootID?: string;
  /** In bytes; absent where the machine has none. */
  swap?: { capacity: number };
  [name: string]: unknown;
}
export interface NodeStatus {
  conditions?: NodeCondition[];
  addresses?: { type: string; address: string }[];
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
  nodeInfo?: NodeInfo;
  daemonEndpoints?: { kubeletEndpoint: { Port: number } };
  images?: { names?: string[]; sizeBytes?: number }[];
  [field: string]: unknown;
}
/** Features that this node has too; it refuses pods that ask for either. */
interface RuntimeHandler {
  name: string;
  features: { recursiveReadOnlyMounts: boolean; userNamespaces: boolean };
}
export interface NodeObject {
  apiVersion: 'v1';
  kind: 'Node';
  metadata: {
    name: string;
    uid?: string;
    resourceVersion?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[]; providerID?: string; podCIDRs?: string[] };
  status: NodeStatus;
}

/** What a status is made of. */
export interface NodeReadings {
  addresses: readonly string[];
  /** The controller of an external cloud sets the addresses: those that are there stay. */
  externalCloud?: boolean;
  hostname: string;
  capacity: Readonly<Record<string, string>>;
  allocatable: Readonly<Record<string, string>>;
  /** Resources without which the node is not Ready, besides cpu, memory and pods. */
  needed?: readonly string[];
  nodeInfo: Readonly<Record<string, string>>;
  /** Swap of the machine; absent or 0: it has none. */
  swapBytes?: number;
  /** 0: nothing listens. */
  port: number;
  images: readonly { names: string[]; sizeBytes: number }[];
  /** Names of the runtime's handlers; '' is its default one. Empty: it names none. */
  runtimeHandlers: readonly RuntimeHandler[];
  /** What pods and changes of pods may rely on here, by name of its feature gate. Absent: nothing is said about it. */
  declaredFeatures?: readonly string[] | undefined;
  cri: CriView | undefined;
  listing: RuntimePodsView | undefined;
  shuttingDown: boolean;
  /** Names of attachable volumes that this node needs. Undefined: not known yet, so what was said before stays (trap 71). */
  volumesInUse?: readonly string[] | undefined;
  /** As the eviction manager has them; default none. */
  pressures?: readonly NodePressure[];
  nowMonoMs: number;
  nowWallMs: number;
}

const PRESSURE_WORDS: Readonly<Record<NodePressure, Readonly<Record<'yes' | 'no', { reason: string; message: string }>>>> = {
  MemoryPressure: {
    yes: { reason: 'KubeletHasInsufficientMemory', message: 'kubelet has insufficient memory available' },
    no: { reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' },
  },
  DiskPressure: {
    yes: { reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' },
    no: { reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' },
  },
  PIDPressure: {
    yes: { reason: 'KubeletHasInsufficientPID', message: 'kubelet has insufficient PID available' },
    no: { reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' },
  },
};

/** A runtime without a good word for this long is down. */
const RUNTIME_DOWN_MS = 30_000;
const PLEG_UNHEALTHY_MS = 180_000;

const HOSTNAME_LABEL = 'kubernetes.io/hostname';
/** Labels that each report puts right: schedulers place pods by them. */
const MACHINE_LABELS = ['kubernetes.io/os', 'kubernetes.io/arch'];
/** Labels that are put right when the node registers again; those of `--node-labels` outside this list are not. */
const DEFAULT_LABELS = [
  HOSTNAME_LABEL,
  ...MACHINE_LABELS,
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
];
const ATTACH_DETACH = 'volumes.kubernetes.io/controller-managed-attach-detach';
const PROVIDED_IPS = 'alpha.kubernetes.io/provided-node-ip';
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';
const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';

export function initialNode(id: NodeIdentity, status: NodeStatus): NodeObject {
  const taints = id.taints.map((t) => ({ key: t.key, ...(t.value === '' ? {} : { value: t.value }), effect: t.effect }));
  if (!id.schedulable && !taints.some((t) => t.key === UNSCHEDULABLE)) taints.push({ key: UNSCHEDULABLE, effect: 'NoSchedule' });
  if (id.externalCloud) taints.push({ key: UNINITIALIZED, value: 'true', effect: 'NoSchedule' });
  const annotations = {
    ...(id.controllerAttachDetach ? { [ATTACH_DETACH]: 'true' } : {}),
    ...(id.providedIPs === '' ? {} : { [PROVIDED_IPS]: id.providedIPs }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: id.name,
      labels: {
        [HOSTNAME_LABEL]: id.hostname,
        'kubernetes.io/os': id.os,
        'kubernetes.io/arch': id.arch,
        'beta.kubernetes.io/os': id.os,
        'beta.kubernetes.io/arch': id.arch,
        ...id.labels,
      },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: {
      ...(id.schedulable ? {} : { unschedulable: true }),
      ...(taints.length === 0 ? {} : { taints }),
      ...(id.providerID === '' ? {} : { providerID: id.providerID }),
    },
    status,
  };
}

/** What has to change about a node that was registered before; null when nothing has. Taints and the rest are never touched. */
export function reconcileNode(
  existing: NodeObject,
  initial: NodeObject,
  o: { resetExtended?: boolean } = {},
): Record<string, unknown> | null {
  const metadata = metadataChange(existing, initial, { labels: DEFAULT_LABELS, annotations: [ATTACH_DETACH, PROVIDED_IPS] });
  const reset = o.resetExtended === true ? resetExtended(existing.status) : null;
  if (metadata === null && reset === null) return null;
  return { ...(reset === null ? {} : { status: reset }), metadata: metadata ?? {} };
}

type MetadataChange = Partial<Record<'labels' | 'annotations', Record<string, string | null>>>;

/** Null where nothing has to change. */
function metadataChange(
  existing: NodeObject,
  { metadata }: Pick<NodeObject, 'metadata'>,
  names: { labels: readonly string[]; annotations: readonly string[] },
): MetadataChange | null {
  const labels = labelChange(existing.metadata.labels, metadata.labels, names.labels);
  const annotations = Object.assign({}, ...names.annotations.map((name) => annotationChange(existing, { metadata }, name)));
  if (Object.keys(labels).length + Object.keys(annotations).length === 0) return null;
  return {
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
}

type Labels = Record<string, string> | undefined;
/** A label that is wanted empty is taken away. */
function labelChange(held: Labels, wanted: Labels, names: readonly string[]): Record<string, string | null> {
  const change: Record<string, string | null> = {};
  for (const name of names) {
    const [now, then] = [own(held, name), own(wanted, name)];
    if (then === undefined || now === then) continue;
    if (then !== '') change[name] = then;
    else if (now !== undefined) change[name] = null;
  }
  return change;
}

function annotationChange(existing: NodeObject, { metadata }: Pick<NodeObject, 'metadata'>, name: string): Record<string, string | null> {
  const [held, wanted] = [existing.metadata.annotations?.[name], metadata.annotations?.[name]];
  return held === wanted ? {} : { [name]: wanted ?? null };
}

/**
 * What a report puts right besides the status: labels of the machine, and the addresses that are provided to the cloud's
 * controller. Null when nothing has to change.
 */
export function reportedMetadata(existing: NodeObject, id: NodeIdentity): MetadataChange | null {
  return metadataChange(existing, initialNode(id, {}), { labels: MACHINE_LABELS, annotations: [PROVIDED_IPS] });
}

/** What an earlier node of this name counted may not be there any more. Null where there is nothing of it. */
function resetExtended({ capacity = {}, allocatable = {} }: NodeStatus): Pick<NodeStatus, 'capacity' | 'allocatable'> | null {
  const names = Object.keys({ ...capacity, ...allocatable }).filter(isExtendedResource);
  if (names.every((name) => capacity[name] === '0' && allocatable[name] === '0')) return null;
  const nothing = Object.fromEntries(names.map((name) => [name, '0']));
  return { capacity: nothing, allocatable: nothing };
}

/** Everything that keeps the node from being Ready. */
export function readyProblems(r: Pick<NodeReadings, 'cri' | 'listing' | 'shuttingDown' | 'capacity' | 'needed' | 'nowMonoMs'>): string[] {
  const { cri, listing, nowMonoMs } = r;
  const problems: string[] = [];
  const lastGood = cri?.lastGoodMonoMs ?? null;
  // A runtime that does not answer does not say no: what it said last holds until it has been silent too long.
  const answers = cri?.state === 'ready';
  if (lastGood === null) problems.push('container runtime status check may not have completed yet');
  else if (nowMonoMs - lastGood > RUNTIME_DOWN_MS) problems.push('container runtime is down');
  else if (answers && !cri.runtimeReady) problems.push(`container runtime not ready: RuntimeReady=false ${conditionText(cri.reason)}`);
  if (listing === undefined) {
    if (lastGood !== null) problems.push('PLEG is not healthy: pleg has yet to be successful');
  } else if (nowMonoMs - listing.atMonoMs > PLEG_UNHEALTHY_MS) {
    const ago = shortDuration(nowMonoMs - listing.atMonoMs);
    problems.push(`PLEG is not healthy: pleg was last seen active ${ago} ago; threshold is 3m0s`);
  }
  if (lastGood === null) problems.push('network state unknown');
  else if (answers && !cri.networkReady)
    problems.push(`container runtime network not ready: NetworkReady=false ${conditionText(cri.networkReason)}`);
  const missing = ['cpu', 'memory', 'pods', ...(r.needed ?? [])].filter((name) => own(r.capacity, name) === undefined);
  if (missing.length > 0) problems.push(`missing node capacity for resources: ${missing.join(', ')}`);
  if (r.shuttingDown) problems.push('node is shutting down');
  return problems;
}

/** A condition of the runtime, told as `Reason: message`, in the words that people look for in a node's status. */
function conditionText(told: string): string {
  const parts = /^(\w+): (.*)$/s.exec(told);
  return parts === null ? `reason: message:${told}` : `reason:${parts[1]} message:${parts[2]}`;
}

/** Conditions in the order the reference writes them, Ready last; a time of change moves only with the status. */
export function nodeConditions(old: readonly NodeCondition[], r: NodeReadings): NodeCondition[] {
  const now = rfc3339(r.nowWallMs);
  const problems = readyProblems(r);
  const one = (type: string, status: 'True' | 'False', said: { reason: string; message: string }): NodeCondition => {
    const before = old.find((c) => c.type === type);
    const since = before?.status === status ? before.lastTransitionTime : now;
    return { type, status, ...said, lastHeartbeatTime: now, lastTransitionTime: since };
  };
  return [
    ...NODE_PRESSURES.map((type) => {
      const pressed = r.pressures?.includes(type) === true;
      return one(type, pressed ? 'True' : 'False', PRESSURE_WORDS[type][pressed ? 'yes' : 'no']);
    }),
    problems.length === 0
      ? one('Ready', 'True', { reason: 'KubeletReady', message: 'kubelet is posting ready status' })
      : one('Ready', 'False', {
          reason: 'KubeletNotReady',
          message: problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`,
        }),
  ];
}

export function nodeStatus(old: NodeStatus, r: NodeReadings): NodeStatus {
  const own = nodeConditions(old.conditions ?? [], r);
  // Resources that others count here stay (extended ones); sizes of huge pages are ours alone.
  const others = Object.entries(old.capacity ?? {}).filter(([name]) => !name.startsWith(HUGE_PAGES_PREFIX));
  const capacity: Record<string, string> = { ...Object.fromEntries(others), ...asShown(r.capacity) };
  // All that others count pods may use, and what is in no capacity any more cannot be given to them.
  const allocatable = { ...old.allocatable, ...Object.fromEntries(others), ...asShown(r.allocatable) };
  return {
    ...old,
    ...addressesOf(old, r),
    capacity,
    allocatable: Object.fromEntries(Object.entries(allocatable).filter(([name]) => name in capacity)),
    ...(r.runtimeHandlers.length === 0 ? {} : { runtimeHandlers: [...r.runtimeHandlers] }),
    ...(r.cri?.strictGroups === undefined ? {} : { features: { supplementalGroupsPolicy: r.cri.strictGroups } }),
    ...(r.declaredFeatures === undefined ? {} : { declaredFeatures: [...r.declaredFeatures] }),
    nodeInfo: nodeInfo(old.nodeInfo, r),
    ...listed('volumesInUse', old, r.volumesInUse),
    ...(r.port === 0 ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: r.port } } }),
    ...listed('images', old, r.images.map(shownImage)),
    conditions: [...(old.conditions ?? []).filter((c) => !own.some((o) => o.type === c.type)), ...own],
  };
}

/** Tools compare it: `2.1.9` of `v2.1.9`, and the numbers alone of one that is no semantic version. */
export function versionShown(text: string): string {
  const [, numbers = '', extra = ''] = /^\s*v?(\d+(?:\.\d+)+)(.*)$/.exec(text) ?? [];
  const plain = numbers.split('.').map(Number).join('.');
  const isSemantic = /^\d+\.\d+\.\d+$/.test(numbers) && numbers === plain && /^(?:-[\da-z.-]+)?(?:\+[\da-z.-]+)?\s*$/i.test(extra);
  return numbers === '' ? 'Unknown' : isSemantic ? plain + extra.trim() : plain;
}

function nodeInfo({ swap: _, ...old }: NodeInfo = {}, { nodeInfo: now, swapBytes = 0 }: NodeReadings): NodeInfo {
  return { ...old, ...now, ...(swapBytes > 0 ? { swap: { capacity: swapBytes } } : {}) };
}

/** Without an address the last known ones stay. A cloud's controller overwrites what is written before it has come. */
function addressesOf({ addresses = [] }: NodeStatus, r: NodeReadings): Pick<NodeStatus, 'addresses'> {
  if (addresses.length > 0 && (r.externalCloud || r.addresses.length === 0)) return { addresses };
  return { addresses: [...r.addresses.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: r.hostname }] };
}

/** As the server writes them: an amount that it shows in other words would be a write each time. */
function asShown(amounts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, canonicalQuantity(amount)]));
}

/** The server shows neither an empty list of names nor a size of 0. */
function shownImage({ names, sizeBytes }: NodeReadings['images'][number]): NonNullable<NodeStatus['images']>[number] {
  return { ...(names.length === 0 ? {} : { names }), ...(sizeBytes === 0 ? {} : { sizeBytes }) };
}

/** The server leaves an empty list out: to send it again would be a write each time. */
function listed(field: 'volumesInUse' | 'images', old: NodeStatus, list: readonly unknown[] | undefined): Partial<NodeStatus> {
  if (list === undefined || (list.length === 0 && old[field] === undefined)) return {};
  return { [field]: [...list] };
}

/** Fields of a status that servers before 1.33 or 1.36 do not keep. */
const NEWER_FIELDS = ['runtimeHandlers', 'features', 'declaredFeatures'] as const;
/** Fields that were sent and that the server does not know: its answer is without them. */
export function fieldsNotKept(sent: NodeStatus, answer: NodeStatus): string[] {
  return NEWER_FIELDS.filter((field) => sent[field] !== undefined && answer[field] === undefined);
}

/** Whether two statuses say the same, whenever they say it. */
export function sameNodeStatus(a: NodeStatus, b: NodeStatus): boolean {
  const quiet = (s: NodeStatus): unknown => ({
    ...s,
    conditions: [...(s.conditions ?? [])].map(({ lastHeartbeatTime: _h, ...c }) => c).sort((x, y) => (x.type < y.type ? -1 : 1)),
  });
  return sameData(quiet(a), quiet(b));
}

/** The strategic patch from one status to another; the addresses are told as a whole. */
export function nodeStatusPatch(old: NodeStatus, next: NodeStatus): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(next)) {
    if (field === 'conditions' || sameData(old[field], value)) continue;
    if (field === 'addresses' && (old.addresses?.length ?? 0) > 0) patch[field] = [...(next.addresses ?? []), { $patch: 'replace' }];
    else if (field === 'capacity' || field === 'allocatable' || field === 'nodeInfo')
      patch[field] = { ...gone(old[field], next[field]), ...changedIn(old[field], next[field]) };
    else patch[field] = value;
  }
  const conditions = (next.conditions ?? []).filter(
    (c) =>
      !sameData(
        old.conditions?.find((o) => o.type === c.type),
        c,
      ),
  );
  if (conditions.length > 0) patch.conditions = conditions;
  return patch;
}

/** Extended resources that others count: `own` are those that this node counts by its device plugins. */
export function extendedOfOthers({ allocatable = {} }: NodeStatus, own: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(allocatable).filter(([name]) => isExtendedResource(name) && !Object.hasOwn(own, name)));
}

/** Only fields that change: other writers may have changed the rest since it was read. */
function changedIn(old: object | undefined, next: object | undefined): Record<string, unknown> {
  const before = new Map(Object.entries(old ?? {}));
  return Object.fromEntries(Object.entries(next ?? {}).filter(([name, value]) => !sameData(before.get(name), value)));
}

/** A merge keeps what it is not told about, so what is no more is told as null. */
function gone(old: object | undefined, next: object | undefined): Record<string, null> {
  return Object.fromEntries(Object.keys(old ?? {}).flatMap((name) => (next !== undefined && name in next ? [] : [[name, null]])));
}
