/** What the `api` layer is told and what it publishes; absent in standalone mode. */

import type { RecordedEvent } from '../foundation/messages.ts';
import type { KubeObject } from '../kube/request.ts';
import type { Pod, Taint } from '../kube/types.ts';
import { type Address, address, type Message, viewKey } from '../supervision/address.ts';
import type { CertificateTemplate, ReportedAddress } from './certificates/messages.ts';

/** To the link, from everybody who calls the API server: how it went, where that is news. */
export type ApiLinkEvent = Message &
  ({ type: 'api.answered' } | { type: 'api.failed'; reason: string; message: string } | { type: 'api.check' });

/** The API server answers again after it did not: try now what waits. */
export interface ApiFound extends Message {
  type: 'api.found';
}
/** Look at this pod's object in the API again. `uid`: of the pod as this node has it, or of a mirror that nobody owns. */
export type PodWriterEvent = Message & { type: 'pod.write'; uid: string; urgent?: boolean };
export type NodeStatusEvent = Message &
  (
    | { type: 'node.report'; why: string }
    /** Another program changed the node object. */
    | { type: 'node.changed' }
    | ApiFound
  );
export type LeaseEvent = ApiFound;
/** Other drivers, or another node object. */
export type CsiNodeEvent = Message & { type: 'csiNode.look' };
export type EventWriterEvent = Message & ({ type: 'event.write'; events: readonly RecordedEvent[] } | ApiFound);
export type ApiSourceEvent = ApiFound;
/** What the certificate must say has changed; null: there is nothing to be certified. */
export type CertificateEvent = Message & { type: 'certificate.template'; template: CertificateTemplate | null };

export interface ApiLinkView {
  state: 'connecting' | 'reachable' | 'lost';
  server: string;
  reason: string;
  /** Wall ms of the last change of `state`. */
  sinceMs: number;
}
/** The pods of this node as the API server last showed them, mirror pods among them. */
export interface ApiPodsView {
  /** A complete list was received. */
  synced: boolean;
  byUid: ReadonlyMap<string, Pod>;
  /** All changes up to this version are in it; absent where nobody can tell. */
  resourceVersion?: string;
}
/** When the API server last said anything about the pods of this node: a list, a change or a bookmark. */
export interface PodsHeardView {
  /** Monotonic ms; before its first word, when it was asked first. */
  atMonoMs: number;
}
/** Without a word of the API server. A source in whose open watch nothing has changed yet (`Quiet`) is not deaf. */
export const DEAF_AFTER_MS = 120_000;

/** The API server was put back to an older state, as etcd is from a backup: what is known of it is of a future that it does not have. */
export interface RestoredView {
  why: string;
}

export interface NodeView {
  name: string;
  /** As the API server gave it; '' before the first answer, and while there is no such node any more. */
  uid: string;
  deleting: boolean;
  registered: boolean;
  /** As the API server last showed them. */
  addresses: readonly ReportedAddress[];
}

/** The node's own object as its watch last showed it. */
export interface NodeObjectView {
  /** Null: there is none. */
  object: KubeObject | null;
  /** Monotonic ms at which the watch last said something: an object, or a bookmark. */
  heardAtMonoMs: number;
}

/** What pods may select of this node, must tolerate, and may ask of it, as the API server last showed it. */
export interface PlacementView {
  labels: Readonly<Record<string, string>>;
  taints: readonly Taint[];
  /** Extended resources that pods may use and others count for this node (an administrator patched its capacity). */
  extended: Readonly<Record<string, string>>;
  /** Monotonic ms at which the server was asked. */
  readAtMonoMs: number;
}

/** Volumes of this node as its object in the API last showed them, by the names that the attach controller gives them. */
export interface NodeVolumesView {
  /** As this node last said. */
  inUse: readonly string[];
  attached: readonly string[];
}

export const apiAddr = {
  link: address<ApiLinkEvent>('node/api/link'),
  events: address<EventWriterEvent>('node/api/events'),
  nodeWatch: address<ApiFound>('node/api/nodeWatch'),
  nodeStatus: address<NodeStatusEvent>('node/api/nodeStatus'),
  lease: address<LeaseEvent>('node/api/lease'),
  csiNode: address<CsiNodeEvent>('node/api/csiNode'),
  podWriters: address<PodWriterEvent>('node/api/podWriters'),
  source: address<ApiSourceEvent>('node/pods/sources/api'),
} as const satisfies Record<string, Address<never>>;

/** CSIDriver objects of drivers on this node, by name, as they were listed last. */
export type CsiDriversView = ReadonlyMap<string, unknown>;

export const apiView = {
  link: viewKey<ApiLinkView>('apiLink'),
  pods: viewKey<ApiPodsView>('apiPods'),
  podsHeard: viewKey<PodsHeardView>('apiPodsHeard'),
  node: viewKey<NodeView>('apiNode'),
  restored: viewKey<RestoredView>('apiRestored'),
  nodeObject: viewKey<NodeObjectView>('apiNodeObject'),
  placement: viewKey<PlacementView>('apiPlacement'),
  volumes: viewKey<NodeVolumesView>('apiNodeVolumes'),
  csiDrivers: viewKey<CsiDriversView>('apiCsiDrivers'),
} as const;

/** Reasons of states in which the initial state is awaited. */
export const AWAITING_REASONS: readonly string[] = ['Listing', 'StreamingInitialEvents'];
