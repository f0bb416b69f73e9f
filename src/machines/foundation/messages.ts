/** Messages of the event recorder and of the checkpoint store. */
import type { PodRef } from '../pod/names.ts';
import { address, type Message, type ReplyTo, viewKey } from '../supervision/address.ts';

/** A Kubernetes event about a pod (or, without `pod`, about the node). */
export interface RecordedEvent {
  atMs: number;
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  pod?: PodRef;
  /** It is about this object of the pod's volumes. A PersistentVolume has the namespace ''. */
  about?: PodRef & { kind: 'PersistentVolumeClaim' | 'PersistentVolume' };
  /** `spec.containers{name}` and its siblings. */
  fieldPath?: string;
  count: number;
  /** Wall ms of the first of `count` occurrences; absent means `atMs`. */
  firstAtMs?: number;
}

export type EventsEvent = Message & { type: 'event.record'; event: Omit<RecordedEvent, 'count' | 'atMs' | 'firstAtMs'> };

/** What a stored document comes to: `absent` also when a corrupt or newer one was set aside (the log says so). */
export type CheckpointFound = { found: true; value: unknown } | { found: false };

/** To the checkpoint actor: small JSON documents that outlive the process. A name is `[a-z][a-zA-Z0-9-]{0,62}`. */
export type CheckpointEvent = Message &
  /** Saves `value` (plain JSON). Per name the newest wins; it is on disk soon, and before an orderly stop ends. */
  (
    | { type: 'checkpoint.put'; name: string; value: unknown }
    /** Answers with what was put last, else with what is on disk. Refused when the disk cannot be read. */
    | { type: 'checkpoint.get'; name: string; replyTo: ReplyTo<CheckpointFound> }
    /** Orderly stop: write what is pending, then end. */
    | { type: 'checkpoint.flush' }
  );

export const eventsAddr = address<EventsEvent>('node/foundation/telemetry');
export const checkpointAddr = address<CheckpointEvent>('node/foundation/checkpoint');
export const eventsView = viewKey<readonly RecordedEvent[]>('events');

/** These checkpoints are the kubelet's too: it finds them in its own place and format when it has the node back. */
export const ALLOCATED = 'allocated_pods_state';
export const ACTUATED = 'actuated_pods_state';
