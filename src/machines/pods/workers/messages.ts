/** Messages of the pod workers, and what a worker says of its pod. */

import type { Pod } from '../../kube/types.ts';
import type { AskedOver, RestartAnswer } from '../../pod/restart/asked.ts';
import type { ListedPod } from '../../pod/runtime/seen.ts';
import { address, type Cause, joinCauses, type Message, type ReplyTo } from '../../supervision/address.ts';

/** Two hints about one pod merge into one, which keeps every announced end. */
export function joinDirty<E extends Hint>(prev: E, next: E): E {
  const ended = [...new Set([...(prev.ended ?? []), ...(next.ended ?? [])])];
  const listed = prev.listed === true && next.listed === true;
  const both = prev.objects === 'only' && next.objects === 'only' ? ('only' as const) : ('too' as const);
  const objects = prev.objects === undefined && next.objects === undefined ? {} : { objects: both };
  const awaited = prev.awaited === true || next.awaited === true ? { awaited: true as const } : {};
  const causes = joinCauses(prev.causes, next.causes);
  return { ...next, causes, listed, ...objects, ...awaited, ...(ended.length === 0 ? {} : { ended }) };
}

interface Hint {
  causes?: readonly Cause[];
  ended?: readonly string[];
  listed?: boolean;
  objects?: 'only' | 'too';
  awaited?: true;
}

/** One container as its worker sees it, for `why`, `/statez` and `actorctl pods`. */
export interface ContainerSummary {
  name: string;
  init: boolean;
  /** `waiting`, `running`, `terminated`. */
  state: string;
  reason: string;
  message: string;
  restartCount: number;
  /** Wall ms at which the next start is allowed, while backing off. */
  nextStartAtMs?: number;
}

export type WorkerPhase = 'waiting' | 'syncing' | 'terminating' | 'terminated' | 'finished';

export interface WorkerSummary {
  phase: WorkerPhase;
  /** State value of the worker's machine, e.g. `syncing.settled`; reason and message are those of its `meta`. */
  state: string;
  reason: string;
  message: string;
  sinceMs: number;
  containers: readonly ContainerSummary[];
  causes: readonly Cause[];
  /** Ids of instances whose restart a person asked for, until their successors are there. The next worker goes on with them. */
  asked?: Readonly<Record<string, AskedOver>>;
}

export type WorkerEvent = Message &
  (
    | { type: 'pod.update'; uid: string; life: number; kind: 'create' | 'update' | 'sync'; pod: Pod; fromRuntime?: ListedPod }
    /** Stop it. `graceOverrideSeconds` shrinks, never extends. `life` 0: whichever life there is, any other: that one only. */
    | {
        type: 'pod.kill';
        uid: string;
        life: number;
        graceOverrideSeconds?: number;
        /** Sets phase, reason and message of the final status (eviction, preemption). */
        status?: { phase: 'Failed'; reason: string; message: string; disruption?: string };
      }
    /** A person asks for a restart. `container` '': of all containers that may start again. */
    | {
        type: 'pod.restart';
        uid: string;
        life: number;
        container: string;
        over: AskedOver;
        replyTo: ReplyTo<RestartAnswer>;
      }
    /** A hint: inspect the runtime again. */
    | {
        type: 'pod.dirty';
        uid: string;
        why: string;
        /** Container ids whose end was announced: the runtime's ledgers may show it a moment later. */
        ended?: readonly string[];
        /** The published listing shows all that led to the hint. A worker that has seen the same does not look again. Default false. */
        listed?: boolean;
        /** A secret or config map that the pod names has changed; `only`: nothing else is behind it. */
        objects?: 'only' | 'too';
        /** What the pod was told to wait for may be there now: the cgroups of the node, a plugin. Default false. */
        awaited?: true;
      }
  );

export const workersAddr = address<WorkerEvent>('node/pods/workers');
