/** What is expected of the kubelet, as the border asks for it. */
import type { ExpectedKind } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';

export interface Wanted {
  kind: ExpectedKind;
  pod: string;
  uid: string;
  /** The end of `the kubelet has not ...`. */
  what: string;
  /** Where the kind's own bound does not fit. */
  boundMs?: number;
  /** What changes its words is the same act all the same. */
  oneAtATime?: boolean;
  /** Wall ms before which the kubelet need not do it. */
  dueMs?(): number;
  /** False: nobody can tell whether the kubelet is late with it. */
  isJudged?(): boolean;
}

/** One wish of the tree. */
export interface Expectation {
  /** The world shows it. */
  came(): void;
  /** The tree waits for it no longer, and would ask again. */
  unanswered(): void;
  /** The tree does not want it any more. */
  withdrawn(): void;
}

/** What makes two of them the same act. */
export function keyOf({ kind, uid, pod, what, oneAtATime }: Wanted): string {
  return oneAtATime === true ? `${kind} ${uid} ${pod}` : `${kind} ${uid} ${pod} ${what}`;
}
