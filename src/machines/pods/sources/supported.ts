/**
 * The table of Pod fields that this node honours. Everything else that a pod sets refuses the pod at admission, with
 * the path in the message: nothing is silently ignored. Adding a feature means adding its paths here.
 */
import type { Pod } from '../../k8s.ts';
import { HOST_PATH_TYPES } from '../../volumes/spec.ts';
import { isRecord, podSchema, type Schema } from './schema.ts';

/** `[*]` is any element of a list, a trailing `.*` any key of a mapping, `hugepages-*` any such key. */
interface Supported {
  readonly path: string;
  /** Only these values can be honoured. */
  readonly only?: readonly unknown[];
}

const SELINUX = ['user', 'role', 'type', 'level'].map((k) => `seLinuxOptions.${k}`);
const PROFILES = ['seccompProfile', 'appArmorProfile'].flatMap((p) => [`${p}.type`, `${p}.localhostProfile`]);
const IDS = ['runAsUser', 'runAsGroup', 'runAsNonRoot'];
const DOWNWARD_ITEM = [
  'path',
  'mode',
  'fieldRef.apiVersion',
  'fieldRef.fieldPath',
  'resourceFieldRef.containerName',
  'resourceFieldRef.resource',
  'resourceFieldRef.divisor',
];
const OBJECT = ['optional', 'items[*].key', 'items[*].path', 'items[*].mode'];
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

/** Fields of a container, app or init (sidecars are init containers with restartPolicy Always). */
const CONTAINER: readonly string[] = [
  'name',
  'image',
  'command[*]',
  'args[*]',
  'workingDir',
  ...['name', 'hostPort', 'containerPort', 'protocol', 'hostIP'].map((k) => `ports[*].${k}`),
  'env[*].name',
  'env[*].value',
  'env[*].valueFrom.fieldRef.apiVersion',
  'env[*].valueFrom.fieldRef.fieldPath',
  'env[*].valueFrom.resourceFieldRef.containerName',
  'env[*].valueFrom.resourceFieldRef.resource',
  'env[*].valueFrom.resourceFieldRef.divisor',
  ...EVERY_RESOURCE.map((r) => `resources.limits.${r}`),
  // A request for ephemeral storage is only scheduling; a limit would have to be enforced.
  ...[...EVERY_RESOURCE, 'ephemeral-storage'].map((r) => `resources.requests.${r}`),
  'volumeMounts[*].name',
  'volumeMounts[*].mountPath',
  'volumeMounts[*].readOnly',
  'volumeMounts[*].mountPropagation',
  'terminationMessagePath',
  'terminationMessagePolicy',
  'imagePullPolicy',
  ...[
    ...IDS,
    ...SELINUX,
    ...PROFILES,
    'capabilities.add[*]',
    'capabilities.drop[*]',
    'privileged',
    'readOnlyRootFilesystem',
    'allowPrivilegeEscalation',
    'procMount',
  ].map((k) => `securityContext.${k}`),
  ...PROBES,
  'stdin',
  'stdinOnce',
  'tty',
];

/** Sysctls that are safe by the reference's rules; others need an allow-list that is not there yet. */
export const SAFE_SYSCTLS: readonly string[] = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
];

export const SUPPORTED_FIELDS: readonly Supported[] = [
  ...CONTAINER.map((f) => ({ path: `spec.containers[*].${f}` })),
  ...CONTAINER.map((f) => ({ path: `spec.initContainers[*].${f}` })),
  { path: 'spec.initContainers[*].restartPolicy', only: ['Always'] },
  { path: 'spec.restartPolicy' },
  { path: 'spec.terminationGracePeriodSeconds' },
  { path: 'spec.activeDeadlineSeconds' },
  { path: 'spec.dnsPolicy' },
  { path: 'spec.dnsConfig.nameservers[*]' },
  { path: 'spec.dnsConfig.searches[*]' },
  { path: 'spec.dnsConfig.options[*].name' },
  { path: 'spec.dnsConfig.options[*].value' },
  { path: 'spec.hostNetwork' },
  { path: 'spec.hostPID' },
  { path: 'spec.hostIPC' },
  { path: 'spec.hostUsers', only: [true] },
  { path: 'spec.shareProcessNamespace' },
  { path: 'spec.hostname' },
  { path: 'spec.subdomain' },
  { path: 'spec.setHostnameAsFQDN' },
  { path: 'spec.hostAliases[*].ip' },
  { path: 'spec.hostAliases[*].hostnames[*]' },
  { path: 'spec.nodeName' },
  { path: 'spec.os.name', only: ['linux'] },
  ...['key', 'operator', 'value', 'effect', 'tolerationSeconds'].map((k) => ({ path: `spec.tolerations[*].${k}` })),
  { path: 'spec.priority' },
  { path: 'spec.priorityClassName' },
  { path: 'spec.preemptionPolicy' },
  { path: 'spec.schedulerName' },
  { path: 'spec.enableServiceLinks' },
  ...[...IDS, ...SELINUX, ...PROFILES].map((k) => ({ path: `spec.securityContext.${k}` })),
  { path: 'spec.securityContext.supplementalGroups[*]' },
  { path: 'spec.securityContext.supplementalGroupsPolicy', only: ['Merge'] },
  { path: 'spec.securityContext.fsGroup' },
  // As in the reference it has no effect on the kinds of volumes below: they are always given to the group in full.
  { path: 'spec.securityContext.fsGroupChangePolicy' },
  { path: 'spec.securityContext.sysctls[*].name', only: SAFE_SYSCTLS },
  { path: 'spec.securityContext.sysctls[*].value' },
  { path: 'spec.volumes[*].name' },
  { path: 'spec.volumes[*].emptyDir.medium', only: ['Memory'] },
  { path: 'spec.volumes[*].emptyDir.sizeLimit' },
  { path: 'spec.volumes[*].hostPath.path' },
  { path: 'spec.volumes[*].hostPath.type', only: HOST_PATH_TYPES },
  { path: 'spec.volumes[*].downwardAPI.defaultMode' },
  ...DOWNWARD_ITEM.map((k) => ({ path: `spec.volumes[*].downwardAPI.items[*].${k}` })),
  { path: 'spec.volumes[*].projected.defaultMode' },
  ...DOWNWARD_ITEM.map((k) => ({ path: `spec.volumes[*].projected.sources[*].downwardAPI.items[*].${k}` })),
  // A static pod gets no service account token, here as in the reference: naming an account has no effect.
  { path: 'spec.automountServiceAccountToken' },
  { path: 'spec.serviceAccountName' },
  { path: 'spec.serviceAccount' },
];

/** What only the API can tell: honoured where the node has one. */
const API_FIELDS: readonly Supported[] = [
  { path: 'spec.imagePullSecrets[*].name' },
  ...['containers', 'initContainers'].flatMap((list) =>
    [
      'envFrom[*].prefix',
      ...['configMapRef', 'secretRef'].flatMap((ref) => [`envFrom[*].${ref}.name`, `envFrom[*].${ref}.optional`]),
      ...['configMapKeyRef', 'secretKeyRef'].flatMap((ref) => ['name', 'key', 'optional'].map((k) => `env[*].valueFrom.${ref}.${k}`)),
    ].map((f) => ({ path: `spec.${list}[*].${f}` })),
  ),
  ...['secret.secretName', 'configMap.name'].map((k) => ({ path: `spec.volumes[*].${k}` })),
  ...['secret', 'configMap'].flatMap((kind) => ['defaultMode', ...OBJECT].map((k) => ({ path: `spec.volumes[*].${kind}.${k}` }))),
  ...['secret', 'configMap'].flatMap((kind) =>
    ['name', ...OBJECT].map((k) => ({ path: `spec.volumes[*].projected.sources[*].${kind}.${k}` })),
  ),
  ...['audience', 'expirationSeconds', 'path'].map((k) => ({
    path: `spec.volumes[*].projected.sources[*].serviceAccountToken.${k}`,
  })),
];

/** The table as a tree, so that one walk over a pod decides everything. */
interface Node {
  leaf: Supported | null;
  readonly children: Map<string, Node>;
}
function tableTree(fields: readonly Supported[]): Node {
  const root: Node = { leaf: null, children: new Map() };
  for (const entry of fields) {
    let at = root;
    for (const part of entry.path.replaceAll('[*]', '.[*]').split('.')) {
      let next = at.children.get(part);
      if (next === undefined) {
        next = { leaf: null, children: new Map() };
        at.children.set(part, next);
      }
      at = next;
    }
    at.leaf = entry;
  }
  return root;
}
const TREE: Node = tableTree(SUPPORTED_FIELDS);
const TREE_WITH_API: Node = tableTree([...SUPPORTED_FIELDS, ...API_FIELDS]);

function childOf(node: Node, key: string): Node | undefined {
  const exact = node.children.get(key);
  if (exact !== undefined) return exact;
  for (const [pattern, child] of node.children) {
    if (pattern.endsWith('*') && pattern !== '[*]' && key.startsWith(pattern.slice(0, -1))) return child;
  }
  return undefined;
}

/** Absent in effect. An empty mapping is the default everywhere except where its mere presence chooses something. */
function isDefault(value: unknown, path: string): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  if (isRecord(value)) return Object.keys(value).length === 0 && !/^spec\.volumes\[\d+\]\./.test(path);
  return false;
}

interface Step {
  value: unknown;
  path: string;
  node: Node | undefined;
  schema: Schema | undefined;
}

function walk(step: Step, found: string[]): void {
  const { value, path, node, schema } = step;
  if (schema === undefined) {
    found.push(`${path} (unknown field)`);
    return;
  }
  if (isDefault(value, path)) return;
  if (node === undefined) {
    found.push(path);
    return;
  }
  if (node.leaf !== null) {
    if (node.leaf.only !== undefined && !node.leaf.only.includes(value)) found.push(`${path} (value ${JSON.stringify(value)})`);
    return;
  }
  if (Array.isArray(value)) {
    const element = schema.t === 'list' ? schema.of : undefined;
    value.forEach((v: unknown, i) => {
      walk({ value: v, path: `${path}[${i}]`, node: node.children.get('[*]'), schema: element }, found);
    });
  } else if (isRecord(value)) {
    for (const [key, v] of Object.entries(value)) {
      const field =
        schema.t === 'map' ? schema.of : schema.t === 'object' && Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
      walk({ value: v, path: `${path}.${key}`, node: childOf(node, key), schema: field }, found);
    }
  } else found.push(path);
}

/** A size limit is kept by the kernel on a tmpfs; on disk somebody would have to watch it, and nobody does yet. */
function unlimited(pod: Pod): string[] {
  return (pod.spec.volumes ?? []).flatMap(({ emptyDir }, i) =>
    isRecord(emptyDir) && emptyDir.medium !== 'Memory' && !isDefault(emptyDir.sizeLimit, '')
      ? [`spec.volumes[${i}].emptyDir.sizeLimit (on disk; with medium Memory it is kept)`]
      : [],
  );
}

/** Top-level keys of a Pod. */
const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

/**
 * Paths of everything the pod sets that this node cannot honour yet, in the order of the manifest; a field that no
 * Pod has is marked `(unknown field)`. Empty: the node can run the pod in full.
 */
export function unsupportedFields(
  pod: Pod,
  o: { /** Objects of an API server can be asked for. Default false. */ api?: boolean } = {},
): string[] {
  const found = Object.keys(pod)
    .filter((k) => !TOP.includes(k))
    .map((k) => `${k} (unknown field)`);
  const schema = podSchema.t === 'object' ? podSchema.fields.spec : undefined;
  walk({ value: pod.spec, path: 'spec', node: childOf(o.api === true ? TREE_WITH_API : TREE, 'spec'), schema }, found);
  found.push(...unlimited(pod));
  return found;
}
