/** What is known of one start or stop of a pod, and the spans it becomes. Plain data; nothing of a pod's environment or arguments. */

import type { Cause } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';

export type TraceKind = 'start' | 'stop';

/** A state that the pod's worker entered. */
export interface WorkerStep {
  atMs: number;
  /** Value of its machine, e.g. `syncing.mountingVolumes`. */
  state: string;
  /** A word such as `MountingVolumes`. */
  reason: string;
}
export interface TracedCall {
  spanId: string;
  method: CriMethod;
  /** An image, a container's name or the start of an id. */
  about: string;
  startMs: number;
  /** Null: still in flight. */
  endMs: number | null;
  /** gRPC status: 0 = OK. */
  code: number;
}
/** Requests to the API server, one after the other, until the pod's writer had nothing left to say. */
export interface StatusWrite {
  startMs: number;
  /** Null: still under way. */
  endMs: number | null;
  failed: boolean;
}
/** A Kubernetes event of the pod, without its message. */
export interface TracedEvent {
  atMs: number;
  reason: string;
  /** `spec.containers{web}`; '': of the pod. */
  fieldPath: string;
}

export interface PodTrace {
  kind: TraceKind;
  /** 32 hexadecimal digits. */
  traceId: string;
  pod: { uid: string; name: string; namespace: string; source: string };
  /** When the worker began, and when the pod was ready or its worker finished. Wall ms. */
  beganAtMs: number;
  endedAtMs: number;
  /** '': it came to its end. Else why it is not known or did not go well, in a few words of ours. */
  error: string;
  /** Behind the worker's start, or its stop. */
  causes: readonly Cause[];
  steps: readonly WorkerStep[];
  calls: readonly TracedCall[];
  writes: readonly StatusWrite[];
  events: readonly TracedEvent[];
  /** Steps, calls and writes that were left out. */
  left: number;
}

export type Attributes = Readonly<Record<string, string | number | boolean>>;
export interface Span {
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** '': the root. */
  parentSpanId: string;
  name: string;
  kind: 'internal' | 'client';
  /** Wall ms. The end is never before the start. */
  startMs: number;
  endMs: number;
  attributes: Attributes;
  events: readonly { atMs: number; name: string; attributes: Attributes }[];
  /** '': no error. */
  error: string;
}
