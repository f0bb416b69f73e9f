/** What an observing node keeps: acts that it expects of the kubelet, and where the two disagree. */

/** Kinds of acts, in the words of the interface through which they are done. */
export const EXPECTED_KINDS = [
  'RunPodSandbox',
  'StopPodSandbox',
  'RemovePodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'PullImage',
  'RemoveImage',
  'UpdateContainerResources',
  'PodStatus',
  'PodDeletion',
  'MirrorPod',
  'NodeStatus',
  'Lease',
  'CSINode',
  'Folder',
  'Removal',
  'Rename',
  'Mount',
  'Unmount',
  'Cgroup',
] as const;
export type ExpectedKind = (typeof EXPECTED_KINDS)[number];

export interface ExpectedAct {
  kind: ExpectedKind;
  /** `NAMESPACE/NAME`; '' = of the node. */
  pod: string;
  /** '' = unknown, or of the node. */
  uid: string;
  /** What the kubelet is to do, as the end of `the kubelet has not ...`: `made the sandbox (attempt 0)`. */
  what: string;
  /** Wall ms. */
  sinceMs: number;
}

/** `missing`: expected, and did not come in time. `unexpected`: came, and was not expected. `differs`: came, and says something else. */
type DisagreementSort = 'missing' | 'unexpected' | 'differs';

export interface Disagreement {
  id: number;
  sort: DisagreementSort;
  kind: ExpectedKind;
  pod: string;
  uid: string;
  expected: string;
  came: string;
  /** Wall ms. */
  sinceMs: number;
  /** Wall ms at which the world came to what was expected, or it was no longer expected; null: it stands. */
  settledMs: number | null;
  /** The entry of the specification. */
  rule: string;
  /** The entry in the list of known differences; null: it is not on it. */
  known: string | null;
}

export interface ObserverLedger {
  /** Wall ms of the start. */
  sinceMs: number;
  expected: readonly ExpectedAct[];
  /** Newest last. */
  disagreements: readonly Disagreement[];
  /** Judged acts by kind; `known`: differences that are on the list. */
  counts: readonly { kind: ExpectedKind; agreed: number; disagreed: number; known: number }[];
  /** Disagreements that were dropped because there were too many. */
  dropped: number;
}

/** An act that nobody expected, as it was seen at the runtime. */
export type UnexpectedAct = Pick<Disagreement, 'kind' | 'pod' | 'uid' | 'expected' | 'came'>;
