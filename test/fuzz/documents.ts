/** Valid documents that use as much as there is: what the fuzzer changes. */
import type { Json } from './hostile.ts';

const probe = {
  httpGet: { path: '/z', port: 'web', scheme: 'HTTPS', host: 'h', httpHeaders: [{ name: 'X', value: 'y' }] },
  periodSeconds: 5,
  failureThreshold: 2,
};
const quantity = { cpu: '500m', memory: '64Mi' };

export const POD: Json = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    namespace: 'default',
    uid: '3c5a3c5e-7d7f-4a5e-9b9c-111111111111',
    resourceVersion: '7',
    labels: { app: 'web', 'example.com/tier': 'front' },
    annotations: { note: 'text', 'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default' },
    creationTimestamp: '2024-05-01T10:00:00Z',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'u', controller: true }],
  },
  spec: {
    nodeName: 'n1',
    serviceAccountName: 'default',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 5,
    activeDeadlineSeconds: 600,
    priority: 5,
    hostname: 'web',
    subdomain: 'sub',
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['192.0.2.1'], searches: ['example.org'], options: [{ name: 'ndots', value: '2' }] },
    hostAliases: [{ ip: '192.0.2.9', hostnames: ['a.example', 'b.example'] }],
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoExecute', tolerationSeconds: 3 }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: 'disk', operator: 'In', values: ['ssd'] },
                { key: 'n', operator: 'Gt', values: ['3'] },
              ],
            },
          ],
        },
      },
    },
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 2000,
      supplementalGroups: [3000],
      sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }],
      seccompProfile: { type: 'RuntimeDefault' },
    },
    imagePullSecrets: [{ name: 'pull' }],
    readinessGates: [{ conditionType: 'example.com/ready' }],
    overhead: { cpu: '10m' },
    initContainers: [
      { name: 'first', image: 'busybox', command: ['true'] },
      { name: 'beside', image: 'busybox', restartPolicy: 'Always', startupProbe: { exec: { command: ['true'] } } },
    ],
    containers: [
      {
        name: 'main',
        image: 'registry.example.org:5000/team/web:v1',
        imagePullPolicy: 'IfNotPresent',
        command: ['/bin/web', '--name=$(NAME)'],
        args: ['$(GREETING)', '$$(NOT)'],
        workingDir: '/work',
        ports: [{ name: 'web', containerPort: 8080, hostPort: 18_080, protocol: 'TCP', hostIP: '192.0.2.7' }],
        env: [
          { name: 'NAME', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          { name: 'GREETING', value: 'hello $(NAME)' },
          { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
          { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
        ],
        envFrom: [{ prefix: 'P_', configMapRef: { name: 'c', optional: true } }],
        resources: { requests: quantity, limits: { ...quantity, 'ephemeral-storage': '1Gi', 'example.com/gpu': '1' } },
        livenessProbe: probe,
        readinessProbe: { tcpSocket: { port: 8080 }, initialDelaySeconds: 1 },
        startupProbe: { grpc: { port: 9000, service: 's' }, timeoutSeconds: 2 },
        lifecycle: { postStart: { exec: { command: ['true'] } }, preStop: { sleep: { seconds: 1 } }, stopSignal: 'SIGUSR1' },
        securityContext: { capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] }, readOnlyRootFilesystem: true, procMount: 'Default' },
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'FallbackToLogsOnError',
        volumeMounts: [
          { name: 'scratch', mountPath: '/scratch', subPath: 'a/b', mountPropagation: 'HostToContainer' },
          { name: 'all', mountPath: '/all', readOnly: true, recursiveReadOnly: 'IfPossible' },
          { name: 'host', mountPath: '/host', subPathExpr: '$(NAME)/x' },
        ],
        restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
      },
    ],
    volumes: [
      { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '10Mi' } },
      { name: 'host', hostPath: { path: '/var/tmp', type: 'DirectoryOrCreate' } },
      {
        name: 'all',
        projected: {
          defaultMode: 420,
          sources: [
            { secret: { name: 's', items: [{ key: 'k', path: 'dir/k', mode: 256 }] } },
            { configMap: { name: 'c', optional: true } },
            {
              downwardAPI: {
                items: [
                  { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
                  { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'requests.cpu' } },
                ],
              },
            },
            { serviceAccountToken: { path: 'token', audience: 'a', expirationSeconds: 3600 } },
          ],
        },
      },
      { name: 'claim', persistentVolumeClaim: { claimName: 'pvc' } },
      { name: 'inline', csi: { driver: 'd.example.com', volumeAttributes: { a: 'b' } } },
    ],
  },
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'True' }],
    containerStatuses: [
      {
        name: 'main',
        ready: false,
        restartCount: 1,
        state: { running: { startedAt: '2024-05-01T10:00:00Z' } },
        lastState: {},
        image: 'i',
        imageID: 'i',
      },
    ],
  },
};
/** Few fields: a change of it hits what is required. */
export const SMALL_POD: Json = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};

const metadata = { name: 'n', namespace: 'default', uid: 'u', resourceVersion: '5' };
export const SECRET: Json = {
  kind: 'Secret',
  metadata,
  type: 'kubernetes.io/dockerconfigjson',
  data: {
    '.dockerconfigjson': btoa(
      '{"auths":{"https://registry.example.org/v1/":{"auth":"dTpw"},"*.example.com:5000/x":{"username":"u","password":"p"}}}',
    ),
  },
};
export const CONFIG_MAP: Json = {
  kind: 'ConfigMap',
  metadata,
  data: { 'a.txt': 'text', b: 'more' },
  binaryData: { c: 'AAEC' },
  immutable: false,
};
export const CLAIM: Json = {
  kind: 'PersistentVolumeClaim',
  metadata: { ...metadata, ownerReferences: [{ uid: 'u', controller: true }] },
  spec: { volumeName: 'pv' },
  status: { phase: 'Bound' },
};
export const VOLUME: Json = {
  kind: 'PersistentVolume',
  metadata,
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: {
      driver: 'd',
      volumeHandle: 'h',
      fsType: 'ext4',
      volumeAttributes: { a: 'b' },
      nodeStageSecretRef: { name: 's', namespace: 'ns' },
    },
    claimRef: { namespace: 'default', name: 'pvc', uid: 'u' },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }] } },
    mountOptions: ['ro'],
    volumeMode: 'Filesystem',
  },
};
export const SERVICE: Json = {
  kind: 'Service',
  metadata,
  spec: { clusterIP: '10.0.0.1', ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
};
export const NODE: Json = {
  kind: 'Node',
  metadata: { ...metadata, labels: { a: 'b' }, annotations: { 'node.alpha.kubernetes.io/ttl': '0' } },
  spec: { podCIDRs: ['10.1.0.0/24'], taints: [{ key: 'k', value: 'v', effect: 'NoExecute' }] },
  status: {
    addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
    capacity: { cpu: '4', memory: '8Gi', 'example.com/gpu': '2', 'hugepages-2Mi': '0' },
    allocatable: { cpu: '4', memory: '8Gi', 'example.com/gpu': '2' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'r', message: 'm', lastHeartbeatTime: '', lastTransitionTime: '' }],
    nodeInfo: { bootID: 'b' },
    volumesInUse: ['v'],
    volumesAttached: [{ name: 'v', devicePath: '' }],
  },
};

const labels = {
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'default',
  'io.kubernetes.pod.uid': 'uid-1',
  'io.kubernetes.container.name': 'main',
};
const annotations = {
  'io.kubernetes.container.hash': 'abcdef',
  'io.kubernetes.container.restartCount': '2',
  'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
  'io.kubernetes.container.terminationMessagePolicy': 'File',
  'io.kubernetes.pod.terminationGracePeriod': '30',
  'io.kubernetes.container.ports': '[{"containerPort":80}]',
  'io.kubernetes.container.preStopHandler': '{"exec":{"command":["true"]}}',
};
/** Answers of the runtime, as they come out of gRPC. */
export const SANDBOX_STATUS: Json = {
  id: 's1',
  metadata: { name: 'web', uid: 'uid-1', namespace: 'default', attempt: 1 },
  state: 'SANDBOX_READY',
  createdAt: '1714557600000000000',
  network: { ip: '10.0.0.5', additionalIps: [{ ip: 'fd00::5' }] },
  linux: { namespaces: { options: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } } },
  labels,
  annotations,
  runtimeHandler: '',
};
export const CONTAINER_STATUS: Json = {
  id: 'c1',
  metadata: { name: 'main', attempt: 2 },
  state: 'CONTAINER_EXITED',
  createdAt: '1714557600000000000',
  startedAt: '1714557601000000000',
  finishedAt: '1714557602000000000',
  exitCode: 1,
  image: { image: 'i', annotations: {} },
  imageRef: 'sha256:00',
  reason: 'Error',
  message: '',
  labels,
  annotations,
  mounts: [{ containerPath: '/dev/termination-log', hostPath: '/var/lib/x' }],
  logPath: '/var/log/pods/x/0.log',
  resources: { linux: { cpuPeriod: '100000', cpuQuota: '50000', cpuShares: '512', memoryLimitInBytes: '67108864' } },
};
export const LISTED_SANDBOX: Json = {
  id: 's1',
  metadata: { name: 'web', uid: 'uid-1', namespace: 'default', attempt: 1 },
  state: 'SANDBOX_READY',
  createdAt: '1714557600000000000',
  labels,
  annotations,
  runtimeHandler: '',
};
export const LISTED_CONTAINER: Json = {
  id: 'c1',
  podSandboxId: 's1',
  metadata: { name: 'main', attempt: 2 },
  image: { image: 'i' },
  imageRef: 'sha256:00',
  state: 'CONTAINER_RUNNING',
  createdAt: '1714557600000000000',
  labels,
  annotations,
};
