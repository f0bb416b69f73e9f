/**
 * THE table of what a Pod's specification may say: every field of it is honoured, without effect for a reason, left alone for a
 * reason, or refused for a reason. A field is refused only where a pod that ran without it would break a promise to its user
 * (isolation, data, security): docs/features.md has the list. A field that no Pod has is left alone. What is left alone is told, by
 * `why` and an event. Adding a feature means changing its line here.
 */
import { type FieldRule, honoured, refused } from '../../pod/fieldRule.ts';
import { INLINE_KINDS } from '../../pod/volumes/kinds.ts';

export const NO_SUCH_RESOURCE = 'this node has no such resource';

const NOT_WINDOWS = 'it is for Windows, and this node runs Linux';
const SCHEDULING = 'only the scheduler looks at it';

const SELINUX = ['user', 'role', 'type', 'level'].map((k) => `seLinuxOptions.${k}`);
const PROFILES = ['seccompProfile', 'appArmorProfile'].flatMap((p) => [`${p}.type`, `${p}.localhostProfile`]);
const IDS = ['runAsUser', 'runAsGroup', 'runAsNonRoot'];
const EVERY_RESOURCE = ['cpu', 'memory', 'hugepages-*'];

const HTTP_HEADER = ['name', 'value'].map((k) => `httpHeaders[*].${k}`);
const PROBE = [
  'exec.command[*]',
  ...['path', 'port', 'host', 'scheme', ...HTTP_HEADER].map((k) => `httpGet.${k}`),
  'tcpSocket.port',
  'tcpSocket.host',
  'grpc.port',
  'grpc.service',
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
  'terminationGracePeriodSeconds',
];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'].flatMap((p) => PROBE.map((k) => `${p}.${k}`));

// A hook that only opens a connection is taken, and fails when it is to run, as in the reference.
const HOOK = [
  'exec.command[*]',
  ...['path', 'port', 'host', 'scheme', ...HTTP_HEADER].map((k) => `httpGet.${k}`),
  'tcpSocket.port',
  'tcpSocket.host',
  'sleep.seconds',
];
const HOOKS = ['postStart', 'preStop'].flatMap((hook) => HOOK.map((k) => `lifecycle.${hook}.${k}`));

const leftAlone = (why: string, ...paths: readonly string[]): FieldRule[] => paths.map((path) => ({ path, leftAlone: why }));
const ignored = (why: string, ...paths: readonly string[]): FieldRule[] => paths.map((path) => ({ path, ignored: why }));
const under = (prefix: string, rules: readonly FieldRule[]): FieldRule[] =>
  rules.map((rule) => ({ ...rule, path: `${prefix}${rule.path}` }));

/** A container, app or init (sidecars are init containers with restartPolicy Always). */
const CONTAINER: readonly FieldRule[] = [
  ...honoured('name', 'image', 'command[*]', 'args[*]', 'workingDir', 'imagePullPolicy'),
  ...honoured(...['name', 'hostPort', 'containerPort', 'protocol', 'hostIP'].map((k) => `ports[*].${k}`)),
  ...honoured('env[*].name', 'env[*].value'),
  ...['fieldRef.apiVersion', 'fieldRef.fieldPath'].map((k) => ({ path: `env[*].valueFrom.${k}` })),
  ...['containerName', 'resource', 'divisor'].map((k) => ({ path: `env[*].valueFrom.resourceFieldRef.${k}` })),
  ...['configMapKeyRef', 'secretKeyRef'].flatMap((ref) =>
    ['name', 'key', 'optional'].map((k): FieldRule => ({ path: `env[*].valueFrom.${ref}.${k}`, api: true })),
  ),
  ...honoured(...['volumeName', 'path', 'key', 'optional'].map((k) => `env[*].valueFrom.fileKeyRef.${k}`)),
  { path: 'envFrom[*].prefix', api: true },
  ...['configMapRef', 'secretRef'].flatMap((ref) =>
    ['name', 'optional'].map((k): FieldRule => ({ path: `envFrom[*].${ref}.${k}`, api: true })),
  ),
  // The requests of a pod, ephemeral storage included, are weighed against what the node has, at admission.
  // A pod that writes more than its limits allow is evicted. Static pods never are, here as in the reference.
  ...['limits', 'requests'].flatMap((kind) => honoured(...[...EVERY_RESOURCE, 'ephemeral-storage'].map((r) => `resources.${kind}.${r}`))),
  // Resources that device plugins may have are left to the check that knows the plugins (`supported.ts`).
  ...refused(NO_SUCH_RESOURCE, 'resources.limits.*/*', 'resources.requests.*/*'),
  ...leftAlone(NO_SUCH_RESOURCE, 'resources.limits.*', 'resources.requests.*'),
  ...['name', 'request'].map((k): FieldRule => ({ path: `resources.claims[*].${k}`, api: true })),
  ...honoured('resizePolicy[*].resourceName', 'resizePolicy[*].restartPolicy'),
  ...honoured('restartPolicyRules[*].action', 'restartPolicyRules[*].exitCodes.operator', 'restartPolicyRules[*].exitCodes.values[*]'),
  ...honoured(
    ...['name', 'mountPath', 'readOnly', 'recursiveReadOnly', 'mountPropagation', 'subPath', 'subPathExpr'].map(
      (k) => `volumeMounts[*].${k}`,
    ),
  ),
  ...honoured('volumeDevices[*].name', 'volumeDevices[*].devicePath'),
  ...honoured(...PROBES),
  ...honoured(...HOOKS, 'lifecycle.stopSignal'),
  ...honoured('terminationMessagePath', 'terminationMessagePolicy', 'stdin', 'stdinOnce', 'tty'),
  ...under('securityContext.', [
    ...honoured(...IDS, ...SELINUX, ...PROFILES, 'capabilities.add[*]', 'capabilities.drop[*]'),
    ...honoured('privileged', 'readOnlyRootFilesystem', 'allowPrivilegeEscalation', 'procMount'),
    ...leftAlone(NOT_WINDOWS, 'windowsOptions'),
  ]),
];

const SECURITY: readonly FieldRule[] = [
  ...honoured(
    ...IDS,
    ...SELINUX,
    ...PROFILES,
    'supplementalGroups[*]',
    'supplementalGroupsPolicy',
    'fsGroup',
    'fsGroupChangePolicy',
    'seLinuxChangePolicy',
  ),
  // Which ones is a matter of the node: admission looks at each.
  ...honoured('sysctls[*].name', 'sysctls[*].value'),
  ...leftAlone(NOT_WINDOWS, 'windowsOptions'),
];

/** Where a pod wants to be. The node holds an API pod to what concerns this node alone, as the reference does. */
const PLACEMENT: readonly FieldRule[] = [
  ...honoured('nodeName', 'nodeSelector.*', 'overhead.*', 'priority', 'priorityClassName'),
  ...['matchExpressions', 'matchFields'].flatMap((list) =>
    ['key', 'operator', 'values[*]'].map((k) => ({
      path: `affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[*].${list}[*].${k}`,
    })),
  ),
  ...ignored(SCHEDULING, 'affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution'),
  ...ignored(SCHEDULING, 'affinity.podAffinity', 'affinity.podAntiAffinity', 'topologySpreadConstraints'),
  ...ignored(SCHEDULING, 'schedulerName', 'preemptionPolicy'),
  ...ignored('a pod that was bound has none left, and nobody schedules a static pod', 'schedulingGates'),
  ...honoured(...['key', 'operator', 'value', 'effect', 'tolerationSeconds'].map((k) => `tolerations[*].${k}`)),
  { path: 'runtimeClassName', api: true },
  // Admission refuses another one before, with the reference's reason.
  { path: 'os.name', only: ['linux'], refused: 'this node runs Linux' },
  ...['name', 'resourceClaimName', 'resourceClaimTemplateName'].map((k): FieldRule => ({ path: `resourceClaims[*].${k}`, api: true })),
  ...['limits', 'requests'].flatMap((kind) => honoured(...EVERY_RESOURCE.map((r) => `resources.${kind}.${r}`))),
  ...leftAlone('a pod as a whole has no such resource', 'resources.limits.*', 'resources.requests.*', 'resources.claims'),
];

const VOLUME: readonly FieldRule[] = [
  ...honoured('name'),
  ...INLINE_KINDS.flatMap((kind) => kind.rules),
  ...refused('there is no plugin for this kind of volume', '*'),
];

export const FIELD_TABLE: readonly FieldRule[] = under('spec.', [
  ...under('containers[*].', CONTAINER),
  ...under('initContainers[*].', CONTAINER),
  ...honoured('initContainers[*].restartPolicy', 'containers[*].restartPolicy'),
  // Ephemeral containers are added to a pod that runs, which only the API server can do.
  ...under(
    'ephemeralContainers[*].',
    [...CONTAINER, ...honoured('targetContainerName')].map((rule): FieldRule => ({ ...rule, api: true })),
  ),
  ...leftAlone('an ephemeral container is never restarted', 'ephemeralContainers[*].restartPolicy'),
  ...honoured('restartPolicy', 'terminationGracePeriodSeconds', 'activeDeadlineSeconds'),
  ...honoured('readinessGates[*].conditionType'),
  ...honoured('dnsPolicy', 'dnsConfig.nameservers[*]', 'dnsConfig.searches[*]', 'dnsConfig.options[*].name', 'dnsConfig.options[*].value'),
  ...honoured('hostNetwork', 'hostPID', 'hostIPC', 'hostUsers', 'shareProcessNamespace'),
  ...honoured(
    'hostname',
    'subdomain',
    'hostnameOverride',
    'setHostnameAsFQDN',
    'hostAliases[*].ip',
    'hostAliases[*].hostnames[*]',
    'enableServiceLinks',
  ),
  ...PLACEMENT,
  ...under('securityContext.', SECURITY),
  ...under('volumes[*].', VOLUME),
  { path: 'imagePullSecrets', apiElse: 'only the API server has secrets; images are pulled without' },
  // A static pod gets no token, here as in the reference; of an API pod the API server has made volumes of them.
  ...ignored('tokens come as volumes', 'automountServiceAccountToken', 'serviceAccountName', 'serviceAccount'),
]);
