/**
 * Kubernetes core/v1 objects as they stand on the wire (JSON): times are RFC 3339 strings, quantities are strings or numbers as written,
 * nothing is a class. Only what a node agent reads or writes is named; unknown fields ride along untouched in the objects themselves.
 */
import type { ObjectMeta, PodSpec, ResourceRequirements } from './podTable.ts';

// What a person writes comes from the table of the Pod API, fields and types; status and what is our own stands here.

/** A quantity as written: `500m`, `1Gi`, `2`. Parse with `machines/kube/quantity.ts`. */
export type Quantity = string | number;
export type IntOrString = number | string;

export interface Pod {
  apiVersion: 'v1';
  kind: 'Pod';
  metadata: ObjectMeta;
  spec: PodSpec;
  status: PodStatus;
  /** Never sent: set by admission where a change of resources is not granted, or not yet; `spec` has what was granted. */
  resize?: ResizePending;
}
/** Why a change of a pod's resources is not granted (pod lifecycle 6.6). */
export interface ResizePending {
  reason: 'Deferred' | 'Infeasible';
  message: string;
}

export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export interface PodStatus {
  phase?: PodPhase;
  conditions?: PodCondition[];
  message?: string;
  reason?: string;
  hostIP?: string;
  hostIPs?: { ip: string }[];
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
  qosClass?: 'Guaranteed' | 'Burstable' | 'BestEffort';
  /** Of the pod as a whole: in force, and granted. */
  resources?: ResourceRequirements;
  allocatedResources?: Record<string, Quantity>;
  observedGeneration?: number;
  resize?: string;
  /** Claims that the cluster made of the pod's templates. */
  resourceClaimStatuses?: { name: string; resourceClaimName?: string }[];
  /** The claim behind its extended resources, from the scheduler. */
  extendedResourceClaimStatus?: {
    resourceClaimName: string;
    requestMappings: { containerName: string; resourceName: string; requestName: string }[];
  };
}

export interface PodCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
  observedGeneration?: number;
}

export interface ContainerStatus {
  name: string;
  state: ContainerState;
  lastState: ContainerState;
  ready: boolean;
  restartCount: number;
  image: string;
  imageID: string;
  containerID?: string;
  started?: boolean;
  resources?: ResourceRequirements;
  allocatedResources?: Record<string, Quantity>;
  volumeMounts?: VolumeMountStatus[];
  stopSignal?: string;
  allocatedResourcesStatus?: ResourceStatus[];
  user?: { linux: { uid: number; gid: number; supplementalGroups?: number[] } };
}

/** Health of devices that a container has: of a plugin, or of a claim (`claim:NAME/REQUEST`). */
export interface ResourceStatus {
  name: string;
  resources: { resourceID: string; health: string; message?: string }[];
}

export interface VolumeMountStatus {
  name: string;
  mountPath: string;
  readOnly?: boolean;
  /** Only of one that is read-only. */
  recursiveReadOnly?: 'Enabled' | 'Disabled';
}

/** At most one member is set; none set is the API's empty state. */
export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt: string };
  terminated?: {
    exitCode: number;
    signal?: number;
    reason?: string;
    message?: string;
    startedAt?: string | null;
    finishedAt?: string | null;
    containerID?: string;
  };
}
