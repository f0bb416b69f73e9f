/** Messages of the link to the container runtime, and what it shows of it. */

import type { GroupDriver } from '../../nodeFacts.ts';
import { address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { CriMethod } from '../../wire/criCalls.ts';

/** Whether starts or stops wait for a place: the runtime has as much to do as it is given, and whatever can wait should. */
export const runtimeBusy = viewKey<boolean>('runtimeBusy');

/** Plain form of a CRI failure, safe to pass between actors. `outcome: 'unknown'` = it may have had its effect. */
export interface CriFailure {
  method: CriMethod;
  /** gRPC status code. */
  code: number;
  outcome: 'failed' | 'unknown';
  details: string;
}

export type CriResult = { ok: true; value: unknown } | { ok: false; error: CriFailure };

/** To the CRI link. Use the typed client in `actors/runtime/client.ts` rather than building these by hand. */
export type CriEvent = Message &
  (
    | {
        type: 'cri.call';
        /** Fence key: mutating acts of one pod UID run one at a time. Absent for reads. */
        uid?: string;
        /** The incarnation of the asking worker; an act of an older one queued behind a newer one is refused. */
        incarnation?: number;
        /** One act: its calls run in parallel; the act is settled when all are. */
        calls: readonly { method: CriMethod; request: unknown; timeoutMs: number | null }[];
        replyTo: ReplyTo<readonly CriResult[]>;
      }
    /** Waits until no act of that UID is in flight (settled or cancelled), then answers with the present mono time. */
    | { type: 'cri.fence'; uid: string; incarnation: number; replyTo: ReplyTo<{ monoMs: number }> }
    /** Asks for a Status poll now. */
    | { type: 'cri.check' }
  );

/** A handler of the runtime, and what it says that it can do for a pod. '' is the name of the default one. */
export interface RuntimeHandlerView {
  name: string;
  recursiveReadOnlyMounts: boolean;
  userNamespaces: boolean;
}

export interface CriView {
  state: 'connecting' | 'ready' | 'lost';
  reason: string;
  runtimeName: string;
  runtimeVersion: string;
  /** The cgroup driver that it has. Null: it does not say (containerd before 2.0). Absent: it was not asked yet. */
  cgroupDriver?: GroupDriver | null;
  runtimeReady: boolean;
  networkReady: boolean;
  networkReason: string;
  /** What a runtime that is ready says all the same, such as that pods have a loopback alone. Absent: nothing. */
  remark?: string;
  /** Its handlers, where it names any. */
  handlers?: readonly RuntimeHandlerView[];
  /** It gives a container exactly the groups that the pod lists, where it is asked to. Absent: it does not say. */
  strictGroups?: boolean;
  /** Monotonic ms of the last good Status; null before the first. */
  lastGoodMonoMs: number | null;
}

export const criAddr = address<CriEvent>('node/runtime/cri');
export const criView = viewKey<CriView>('cri');
