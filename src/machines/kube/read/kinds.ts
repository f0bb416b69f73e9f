/**
 * Kinds of objects that this node reads from the API: of each, the fields that it reads. What a table does not name is kept as the
 * server sent it. Pods and nodes are read in full, since other parts of this node pass them on.
 */

import { bool, filled, integer, list, map, nullable, object, quantity, required, type Shape, string } from '../../shape/shape.ts';
import { metadata, nodeSelectorTerm, ownerReference, spec as podSpec, resources } from '../podTable.ts';
import { time } from './read.ts';

const int = integer();
const texts = list(string);

const meta = object({
  ...metadata.fields,
  // An object of the cluster has no namespace, and a review has no name.
  name: string,
  namespace: string,
  uid: string,
  creationTimestamp: time,
  deletionTimestamp: time,
  ownerReferences: list(ownerReference),
});
const named = required(object({ ...meta.fields, name: required(string) }));
const common = { apiVersion: string, kind: string, metadata: named };

const condition = object({
  type: required(string),
  status: required(string),
  reason: string,
  message: string,
  // The server writes null where there is no time, and so does this node.
  lastProbeTime: nullable(time),
  lastTransitionTime: nullable(time),
  lastHeartbeatTime: nullable(time),
  observedGeneration: int,
});
const conditions = list(condition);

const containerState = object({
  waiting: object({ reason: string, message: string }),
  running: object({ startedAt: time }),
  terminated: object({
    exitCode: filled(int),
    signal: int,
    reason: string,
    message: string,
    startedAt: nullable(time),
    finishedAt: nullable(time),
    containerID: string,
  }),
});
const containerStatuses = list(
  object({
    name: required(string),
    state: filled(containerState),
    lastState: filled(containerState),
    ready: filled(bool),
    restartCount: filled(int),
    image: filled(string),
    imageID: filled(string),
    containerID: string,
    started: bool,
    allocatedResources: map(quantity),
    resources,
    stopSignal: string,
    user: object({ linux: object({ uid: int, gid: int, supplementalGroups: list(int) }) }),
    volumeMounts: list(object({ name: string, mountPath: string, readOnly: bool, recursiveReadOnly: string })),
  }),
);
const podStatus = object({
  phase: string,
  conditions,
  message: string,
  reason: string,
  nominatedNodeName: string,
  hostIP: string,
  hostIPs: list(object({ ip: filled(string) })),
  podIP: string,
  podIPs: list(object({ ip: filled(string) })),
  startTime: time,
  initContainerStatuses: containerStatuses,
  containerStatuses,
  ephemeralContainerStatuses: containerStatuses,
  qosClass: string,
  resize: string,
  observedGeneration: int,
  allocatedResources: map(quantity),
  resources,
});

const selector = object({ nodeSelectorTerms: list(nodeSelectorTerm) });
const secretRef = object({ name: string, namespace: string });

export interface Kind {
  kind: string;
  shape: Shape;
}
/** By the plural name that stands in paths. */
export const KINDS: Readonly<Record<string, Kind>> = {
  pods: { kind: 'Pod', shape: object({ ...common, spec: required(podSpec), status: filled(podStatus) }) },
  nodes: {
    kind: 'Node',
    shape: object({
      ...common,
      spec: filled(
        object({
          unschedulable: bool,
          providerID: string,
          podCIDR: string,
          podCIDRs: texts,
          taints: list(object({ key: filled(string), value: string, effect: filled(string), timeAdded: time })),
        }),
      ),
      status: filled(
        object({
          conditions,
          addresses: list(object({ type: filled(string), address: filled(string) })),
          capacity: map(quantity),
          allocatable: map(quantity),
          nodeInfo: object({ bootID: string, machineID: string, kernelVersion: string, swap: object({ capacity: int }) }),
          daemonEndpoints: object({ kubeletEndpoint: object({ Port: int }) }),
          images: list(object({ names: texts, sizeBytes: int })),
          volumesInUse: texts,
          volumesAttached: list(object({ name: filled(string), devicePath: filled(string) })),
          runtimeHandlers: list(object({ name: string, features: object({ recursiveReadOnlyMounts: bool, userNamespaces: bool }) })),
          features: object({ supplementalGroupsPolicy: bool }),
          declaredFeatures: texts,
        }),
      ),
    }),
  },
  secrets: { kind: 'Secret', shape: object({ ...common, type: string, data: map(string), immutable: bool }) },
  configmaps: { kind: 'ConfigMap', shape: object({ ...common, data: map(string), binaryData: map(string), immutable: bool }) },
  serviceaccounts: { kind: 'ServiceAccount', shape: object({ ...common }) },
  services: {
    kind: 'Service',
    shape: object({
      ...common,
      spec: object({
        type: string,
        clusterIP: string,
        clusterIPs: texts,
        ports: list(object({ name: string, protocol: string, port: filled(int), nodePort: int })),
      }),
    }),
  },
  persistentvolumeclaims: {
    kind: 'PersistentVolumeClaim',
    shape: object({
      ...common,
      spec: object({ volumeName: string, volumeMode: string, accessModes: texts }),
      status: object({ phase: string }),
    }),
  },
  persistentvolumes: {
    kind: 'PersistentVolume',
    shape: object({
      ...common,
      spec: object({
        capacity: map(quantity),
        accessModes: texts,
        mountOptions: texts,
        volumeMode: string,
        claimRef: object({ namespace: string, name: string, uid: string }),
        nodeAffinity: object({ required: selector }),
        local: object({ path: string, fsType: string }),
        hostPath: object({ path: string, type: string }),
        csi: object({
          driver: string,
          volumeHandle: string,
          readOnly: bool,
          fsType: string,
          volumeAttributes: map(string),
          nodeStageSecretRef: secretRef,
          nodePublishSecretRef: secretRef,
        }),
      }),
    }),
  },
  csinodes: {
    kind: 'CSINode',
    shape: object({
      ...common,
      spec: object({
        drivers: list(object({ name: required(string), nodeID: filled(string), topologyKeys: texts, allocatable: object({ count: int }) })),
      }),
    }),
  },
  csidrivers: {
    kind: 'CSIDriver',
    shape: object({
      ...common,
      spec: object({
        attachRequired: bool,
        podInfoOnMount: bool,
        fsGroupPolicy: string,
        volumeLifecycleModes: texts,
        requiresRepublish: bool,
        tokenRequests: list(object({ audience: filled(string), expirationSeconds: int })),
      }),
    }),
  },
  volumeattachments: {
    kind: 'VolumeAttachment',
    shape: object({
      ...common,
      status: object({
        attached: filled(bool),
        attachmentMetadata: map(string),
        attachError: object({ message: string, time }),
      }),
    }),
  },
  leases: {
    kind: 'Lease',
    shape: object({
      ...common,
      spec: object({ holderIdentity: string, leaseDurationSeconds: int, acquireTime: time, renewTime: time, leaseTransitions: int }),
    }),
  },
  runtimeclasses: { kind: 'RuntimeClass', shape: object({ ...common, handler: filled(string) }) },
  certificatesigningrequests: {
    kind: 'CertificateSigningRequest',
    shape: object({
      ...common,
      spec: object({ request: string, signerName: string, usages: texts }),
      status: object({ certificate: string, conditions }),
    }),
  },
  tokenreviews: {
    kind: 'TokenReview',
    shape: object({
      metadata: meta,
      status: object({
        authenticated: bool,
        user: object({ username: string, uid: string, groups: texts, extra: map(texts) }),
        audiences: texts,
        error: string,
      }),
    }),
  },
  subjectaccessreviews: {
    kind: 'SubjectAccessReview',
    shape: object({ metadata: meta, status: object({ allowed: bool, denied: bool, reason: string, evaluationError: string }) }),
  },
  'serviceaccounts/token': {
    kind: 'TokenRequest',
    shape: object({
      metadata: meta,
      spec: object({ audiences: texts, expirationSeconds: int }),
      status: object({ token: string, expirationTimestamp: time }),
    }),
  },
};

/** Which kind of object stands at a path of the API; `many`: a collection of them. Null: none that this node reads. */
export function kindAt(path: string): (Kind & { many: boolean }) | null {
  const parts = path.split('/').slice(1);
  // `/api/v1/...` or `/apis/GROUP/VERSION/...`
  const at = parts.slice(parts[0] === 'apis' ? 3 : 2);
  const [resource = '', name, part] = at[0] === 'namespaces' && at.length > 2 ? at.slice(2) : at;
  const plural = part === 'token' ? `${resource}/token` : resource;
  const found = Object.hasOwn(KINDS, plural) ? KINDS[plural] : undefined;
  return found === undefined ? null : { ...found, many: name === undefined };
}
