/** What an observing node shows: acts that it expects of the kubelet, and where the two disagree. */

import { viewKey } from '@actorlet/kubelet/machines/supervision/address.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

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

/** Of a node that observes; others have none. */
export const observerView = viewKey<ObserverLedger>('observer');

/** An act that nobody expected, as whoever looks at the runtime tells it. */
export type UnexpectedAct = Pick<Disagreement, 'kind' | 'pod' | 'uid' | 'expected' | 'came'>;

/** What is under way takes this long. */
const UNDER_WAY_MS = 2_000;

/** `the kubelet has not made the sandbox (attempt 0) for 41s`, of what it has not done for a while. */
export function notYet(ledger: ObserverLedger | undefined, nowMs: number, of: { uid: string }): string[] {
  const differing = standing(ledger).filter((d) => d.uid === of.uid && d.sort === 'differs');
  const late = (ledger?.expected ?? []).filter(
    (act) => act.uid === of.uid && nowMs - act.sinceMs >= UNDER_WAY_MS && !differing.some((d) => d.kind === act.kind),
  );
  return late.map((act) => `the kubelet has not ${act.what} for ${shortDuration(nowMs - act.sinceMs)}`);
}

/** In words that a line has room for. */
export function disagreementText(d: Disagreement, nowMs: number): string {
  const end =
    d.settledMs === null ? `for ${shortDuration(nowMs - d.sinceMs)}` : `(settled after ${shortDuration(d.settledMs - d.sinceMs)})`;
  switch (d.sort) {
    case 'missing':
      return `the kubelet has not ${d.expected} ${end}`;
    case 'differs':
      return `the kubelet has not ${d.expected} as this tree would ${end}: ${brief(d.came)}`;
    case 'unexpected':
      return `${d.came}, and this tree ${d.expected} ${end}`;
  }
}

const CAME_CHARS_MAX = 400;
function brief(came: string): string {
  return came.length > CAME_CHARS_MAX ? `${came.slice(0, CAME_CHARS_MAX)}…` : came;
}

/** What stands, and is on no list of differences. */
export function standing(ledger: ObserverLedger | undefined): Disagreement[] {
  return (ledger?.disagreements ?? []).filter((d) => d.settledMs === null && d.known === null);
}
