/** What is known of each kind of act: within which time a kubelet does it, and which rule says so. */
import type { ExpectedKind } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';

interface KindFacts {
  /** From the moment at which this tree would have done it, or the kubelet was last seen at work on its like. */
  boundMs: number;
  /** The entry of docs/spec. */
  rule: string;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

export const KIND_FACTS: Readonly<Record<ExpectedKind, KindFacts>> = {
  RunPodSandbox: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 5.3' },
  StopPodSandbox: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 5.14' },
  RemovePodSandbox: { boundMs: 5 * MINUTE_MS, rule: 'pod lifecycle 9.3' },
  CreateContainer: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 5.7' },
  StartContainer: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 5.7' },
  StopContainer: { boundMs: MINUTE_MS, rule: 'pod lifecycle 5.14' },
  RemoveContainer: { boundMs: 5 * MINUTE_MS, rule: 'pod lifecycle 9.2' },
  PullImage: { boundMs: 5 * MINUTE_MS, rule: 'pod lifecycle 5.8' },
  RemoveImage: { boundMs: 10 * MINUTE_MS, rule: 'resources and volumes 4.2' },
  UpdateContainerResources: { boundMs: MINUTE_MS, rule: 'pod lifecycle 6.6' },
  PodStatus: { boundMs: 12 * SECOND_MS, rule: 'pod lifecycle 7.5' },
  PodDeletion: { boundMs: 15 * SECOND_MS, rule: 'pod lifecycle 7.6' },
  MirrorPod: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 2.7' },
  NodeStatus: { boundMs: 6 * MINUTE_MS, rule: 'boot and node 9.3' },
  // It is asked for 10 s after the last one.
  Lease: { boundMs: 15 * SECOND_MS, rule: 'boot and node 9.8' },
  CSINode: { boundMs: MINUTE_MS, rule: 'resources and volumes 8.5' },
  Folder: { boundMs: 20 * SECOND_MS, rule: 'pod lifecycle 5.1' },
  Removal: { boundMs: 5 * MINUTE_MS, rule: 'pod lifecycle 9.5' },
  Rename: { boundMs: MINUTE_MS, rule: 'pod lifecycle 5.16' },
  Mount: { boundMs: 20 * SECOND_MS, rule: 'resources and volumes 8.5' },
  Unmount: { boundMs: 20 * SECOND_MS, rule: 'resources and volumes 8.5' },
  Cgroup: { boundMs: 20 * SECOND_MS, rule: 'resources and volumes 1.8' },
};

/** So many bounds a kubelet has that is at work on acts of the same kind. */
export const AT_WORK_FACTOR = 6;
/** It writes a status after each act of the pod. It makes folders side by side, and none waits for another. */
export const AT_WORK_FACTORS: Readonly<Partial<Record<ExpectedKind, number>>> = { PodStatus: 2, Folder: 1 };

/** With these the kubelet begins something of a pod. */
export const STARTS: ReadonlySet<ExpectedKind> = new Set([
  'Folder',
  'Mount',
  'PullImage',
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'UpdateContainerResources',
]);
/** Acts of a pod that its status tells of. A kubelet writes none while it pulls. */
export const RUNTIME_KINDS: ReadonlySet<ExpectedKind> = new Set([
  'PullImage',
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'StopPodSandbox',
]);
/** A listing of the runtime shows them. */
export const LISTED = [
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
] as const;
export const LISTED_KINDS: ReadonlySet<ExpectedKind> = new Set(LISTED);
/** Differences on purpose: what is seen of them, and the entry of docs/differences.md, as it begins. */
const KNOWN: readonly { kind: ExpectedKind; seen: RegExp; entry: string }[] = [
  // The kubelet refuses an address of loopback, and its pods have no address of the host then.
  { kind: 'PodStatus', seen: /^status\.hostIPs? (?:is absent|has 0 entries)/, entry: '`--node-ip` is used as written.' },
  {
    kind: 'PodStatus',
    seen: /^status\.podIP(?: is absent, not |s has 0 entries, not \d+: \[\{"ip":")127\./,
    entry: '`--node-ip` is used as written.',
  },
  { kind: 'PodStatus', seen: /^status\.resources(?: |\.)/, entry: '`status.resources` of a pod says what was granted and carried out.' },
  {
    kind: 'NodeStatus',
    seen: /^status\.addresses(?:\[InternalIP\] is absent, not | has [01] entries, not 2: \[)\{"type":"InternalIP","address":"127\./,
    entry: '`--node-ip` is used as written.',
  },
  // It has no address at all then.
  { kind: 'NodeStatus', seen: /^status\.addresses\[Hostname\] is absent/, entry: '`--node-ip` is used as written.' },
];

/** The entry of docs/differences.md that this is about; null: it is on no list. */
export function knownDifference(kind: ExpectedKind, seen: string): string | null {
  return KNOWN.find((k) => k.kind === kind && k.seen.test(seen))?.entry ?? null;
}
