/**
 * The shape of the v1 Pod API as one table: which fields exist, of which type each is, and which words it may have. The
 * types of a pod come from it, decoding checks types against it, the table of supported fields uses it to
 * tell an unsupported field from an unknown one, and editors get it as JSON Schema.
 */

import {
  about,
  any,
  bool,
  declared,
  demanded,
  filled,
  integer,
  intOrString,
  list,
  map,
  nullable,
  type Of,
  object,
  quantity,
  required,
  string,
  text,
  within,
  words,
} from '../shape/shape.ts';
import { type Volume, volumeSources } from './volumeTable.ts';
import {
  DNS_POLICIES,
  EXIT_CODE_OPERATORS,
  FS_GROUP_CHANGE_POLICIES,
  IDS,
  MOUNT_PROPAGATIONS,
  OPERATING_SYSTEMS,
  PORTS,
  PREEMPTION_POLICIES,
  PROC_MOUNTS,
  PROFILE_TYPES,
  PROTOCOLS,
  PULL_POLICIES,
  RECURSIVE_READ_ONLY,
  RESTART_POLICIES,
  RESTART_RULE_ACTIONS,
  SCHEMES,
  SE_LINUX_CHANGE_POLICIES,
  SELECTOR_VALUES,
  SUPPLEMENTAL_GROUPS_POLICIES,
  TAINT_EFFECTS,
  TERMINATION_MESSAGE_POLICIES,
  TOLERATION_OPERATORS,
} from './words.ts';

const int = integer();

const port = within(PORTS.min, PORTS.max, int);
const id = within(IDS.min, IDS.max, int);

const seLinuxOptions = object({ user: string, role: string, type: string, level: string });
const profile = object({ type: required(words(...PROFILE_TYPES)), localhostProfile: string });
const windowsOptions = object({ gmsaCredentialSpecName: string, gmsaCredentialSpec: string, runAsUserName: string, hostProcess: bool });
const keyRef = object({ name: demanded(string), key: required(string), optional: bool });
const localRef = object({ name: demanded(string) });
const fieldRef = object({ apiVersion: string, fieldPath: required(string) });
const resourceFieldRef = object({ containerName: string, resource: required(string), divisor: quantity });
const nodeSelectorRequirement = object({
  key: required(string),
  operator: required(text(...Object.keys(SELECTOR_VALUES))),
  values: list(string),
});
const requirements = list(nodeSelectorRequirement);
export const nodeSelectorTerm = about(
  'All of its requirements must hold.',
  object({ matchExpressions: requirements, matchFields: requirements }),
);
const nodeSelector = object({ nodeSelectorTerms: demanded(list(nodeSelectorTerm)) });

const httpGet = object({
  path: string,
  port: required(intOrString),
  host: string,
  scheme: text(...SCHEMES),
  httpHeaders: list(object({ name: required(string), value: filled(string) })),
});
const handlerFields = {
  exec: object({ command: demanded(list(string)) }),
  httpGet,
  tcpSocket: object({ port: required(intOrString), host: string }),
};
const lifecycleHandler = object({ ...handlerFields, sleep: object({ seconds: filled(int) }) });
const probe = object({
  ...handlerFields,
  grpc: object({ port: required(port), service: string }),
  initialDelaySeconds: int,
  timeoutSeconds: int,
  periodSeconds: int,
  successThreshold: int,
  failureThreshold: int,
  terminationGracePeriodSeconds: int,
});

const claims = list(object({ name: string, request: string }));
export const resources = object({ limits: map(quantity), requests: map(quantity), claims });

const containerPort = object({
  name: string,
  hostPort: port,
  containerPort: required(port),
  protocol: words(...PROTOCOLS),
  hostIP: string,
});
const envFromSource = object({
  prefix: string,
  configMapRef: object({ name: string, optional: bool }),
  secretRef: object({ name: string, optional: bool }),
});
const envVar = object({
  name: required(string),
  value: string,
  valueFrom: object({
    fieldRef,
    resourceFieldRef,
    configMapKeyRef: keyRef,
    secretKeyRef: keyRef,
    fileKeyRef: object({ volumeName: required(string), path: required(string), key: required(string), optional: bool }),
  }),
});
const containerRestartRule = about(
  'A container that ends with one of these codes (or with another one) is started again whatever its policy; or all of the pod are.',
  object({
    action: required(text(...RESTART_RULE_ACTIONS)),
    exitCodes: demanded(object({ operator: required(text(...EXIT_CODE_OPERATORS)), values: list(int) })),
  }),
);
const volumeMount = object({
  name: required(string),
  mountPath: required(string),
  readOnly: bool,
  recursiveReadOnly: text(...RECURSIVE_READ_ONLY),
  subPath: string,
  subPathExpr: string,
  mountPropagation: words(...MOUNT_PROPAGATIONS),
});
const securityContext = object({
  allowPrivilegeEscalation: bool,
  appArmorProfile: profile,
  capabilities: object({ add: list(string), drop: list(string) }),
  privileged: bool,
  procMount: words(...PROC_MOUNTS),
  readOnlyRootFilesystem: bool,
  runAsGroup: id,
  runAsNonRoot: bool,
  runAsUser: id,
  seLinuxOptions,
  seccompProfile: profile,
  windowsOptions,
});

const containerFields = {
  name: required(string),
  image: demanded(string),
  command: list(string),
  args: list(string),
  workingDir: string,
  ports: list(declared<ContainerPort>(containerPort)),
  envFrom: list(declared<EnvFromSource>(envFromSource)),
  env: list(declared<EnvVar>(envVar)),
  resources: declared<ResourceRequirements>(resources),
  resizePolicy: list(object({ resourceName: filled(string), restartPolicy: filled(string) })),
  restartPolicy: text(...RESTART_POLICIES),
  restartPolicyRules: list(declared<ContainerRestartRule>(containerRestartRule)),
  volumeMounts: list(declared<VolumeMount>(volumeMount)),
  volumeDevices: list(object({ name: required(string), devicePath: required(string) })),
  livenessProbe: declared<Probe>(probe),
  readinessProbe: declared<Probe>(probe),
  startupProbe: declared<Probe>(probe),
  lifecycle: object({
    postStart: declared<LifecycleHandler>(lifecycleHandler),
    preStop: declared<LifecycleHandler>(lifecycleHandler),
    stopSignal: string,
  }),
  terminationMessagePath: string,
  terminationMessagePolicy: words(...TERMINATION_MESSAGE_POLICIES),
  imagePullPolicy: words(...PULL_POLICIES),
  securityContext: declared<SecurityContext>(securityContext),
  stdin: bool,
  stdinOnce: bool,
  tty: bool,
};

const container = object(containerFields);
const ephemeralContainer = object({ ...containerFields, targetContainerName: string });

export const ownerReference = object({
  apiVersion: filled(string),
  kind: filled(string),
  name: filled(string),
  uid: filled(string),
  controller: bool,
  blockOwnerDeletion: bool,
});
export const metadata = object({
  name: required(string),
  generateName: string,
  namespace: about('Default: default.', filled(string)),
  uid: about('Default: made of the content and the path of the file.', filled(string)),
  selfLink: string,
  resourceVersion: string,
  generation: int,
  creationTimestamp: nullable(string),
  deletionTimestamp: nullable(string),
  deletionGracePeriodSeconds: int,
  labels: map(string),
  annotations: map(string),
  finalizers: list(string),
  ownerReferences: list(ownerReference),
  managedFields: any,
});

const podSecurityContext = object({
  appArmorProfile: profile,
  fsGroup: id,
  fsGroupChangePolicy: text(...FS_GROUP_CHANGE_POLICIES),
  runAsGroup: id,
  runAsNonRoot: bool,
  runAsUser: id,
  seLinuxChangePolicy: text(...SE_LINUX_CHANGE_POLICIES),
  seLinuxOptions,
  seccompProfile: profile,
  supplementalGroups: list(id),
  supplementalGroupsPolicy: text(...SUPPLEMENTAL_GROUPS_POLICIES),
  sysctls: list(object({ name: required(string), value: filled(string) })),
  windowsOptions,
});
const toleration = object({
  key: string,
  operator: text(...TOLERATION_OPERATORS),
  value: string,
  effect: text(...TAINT_EFFECTS),
  tolerationSeconds: int,
});

export const spec = object({
  activeDeadlineSeconds: int,
  affinity: object({
    nodeAffinity: object({
      requiredDuringSchedulingIgnoredDuringExecution: nullable(nodeSelector),
      preferredDuringSchedulingIgnoredDuringExecution: any,
    }),
    podAffinity: any,
    podAntiAffinity: any,
  }),
  automountServiceAccountToken: bool,
  containers: required(list(declared<Container>(container))),
  dnsConfig: object({
    nameservers: list(string),
    searches: list(string),
    options: list(object({ name: required(string), value: string })),
  }),
  dnsPolicy: words(...DNS_POLICIES),
  enableServiceLinks: bool,
  ephemeralContainers: list(declared<EphemeralContainer>(ephemeralContainer)),
  hostAliases: list(object({ ip: required(string), hostnames: list(string) })),
  hostIPC: bool,
  hostNetwork: bool,
  hostPID: bool,
  hostUsers: bool,
  hostname: string,
  hostnameOverride: string,
  imagePullSecrets: list(localRef),
  initContainers: list(declared<Container>(container)),
  nodeName: string,
  nodeSelector: map(string),
  os: object({ name: required(text(...OPERATING_SYSTEMS)) }),
  overhead: map(quantity),
  preemptionPolicy: text(...PREEMPTION_POLICIES),
  priority: int,
  priorityClassName: string,
  readinessGates: list(object({ conditionType: required(string) })),
  resourceClaims: list(object({ name: string, resourceClaimName: string, resourceClaimTemplateName: string })),
  resources: declared<ResourceRequirements>(resources),
  restartPolicy: words(...RESTART_POLICIES),
  runtimeClassName: string,
  schedulerName: string,
  schedulingGates: list(localRef),
  securityContext: declared<PodSecurityContext>(podSecurityContext),
  serviceAccount: string,
  serviceAccountName: string,
  setHostnameAsFQDN: bool,
  shareProcessNamespace: bool,
  subdomain: string,
  terminationGracePeriodSeconds: int,
  tolerations: list(declared<Toleration>(toleration)),
  topologySpreadConstraints: any,
  volumes: list(declared<Volume>(object({ name: required(string), ...volumeSources }))),
});

/** A Pod manifest. What a manifest says under `status` is not read: status is made here. */
export const podShape = object({
  apiVersion: string,
  kind: string,
  metadata: declared<ObjectMeta>(metadata),
  spec: declared<PodSpec>(spec),
  status: any,
});

export type FileKeyRef = NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>;
export interface ObjectMeta extends Of<typeof metadata> {}
export interface PodSpec extends Of<typeof spec> {}

/** All of its requirements must hold. */
export interface NodeSelectorTerm extends Of<typeof nodeSelectorTerm> {}

export interface NodeSelectorRequirement extends Of<typeof nodeSelectorRequirement> {}
export interface Toleration extends Of<typeof toleration> {}
export interface Container extends Of<typeof container> {}

/** A container that ends with one of these codes (or with another one) is started again whatever its policy. */
export interface ContainerRestartRule extends Of<typeof containerRestartRule> {}

export interface EphemeralContainer extends Of<typeof ephemeralContainer> {}
export interface ContainerPort extends Of<typeof containerPort> {}
export interface EnvVar extends Of<typeof envVar> {}
export interface EnvFromSource extends Of<typeof envFromSource> {}
export interface ResourceRequirements extends Of<typeof resources> {}
export interface VolumeMount extends Of<typeof volumeMount> {}
export interface LifecycleHandler extends Of<typeof lifecycleHandler> {}
export interface Probe extends Of<typeof probe> {}
export interface SELinuxOptions extends Of<typeof seLinuxOptions> {}
export interface SeccompProfile extends Of<typeof profile> {}
export interface PodSecurityContext extends Of<typeof podSecurityContext> {}
export interface SecurityContext extends Of<typeof securityContext> {}
