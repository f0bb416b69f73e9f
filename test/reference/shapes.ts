/** Pods of odd shapes: resources, volumes, namespaces, ports, security and ends that pods of every fate do not have. */
import type { Container, PodSpec } from '../../src/machines/kube/podTable.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { OTHER_IMAGE, sh, steady } from '../e2e/manifests.ts';

type Shape = Partial<PodSpec> & { containers: Container[] };

/** Stays, and writes nothing. */
const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const GREEDY = 'x=a; while :; do x=$x$x; done';
const stay = (more: Partial<Container> = {}): Container => sh('main', STAY, more);
const of = (resources: NonNullable<Container['resources']>): Shape => ({ containers: [stay({ resources })] });
const never = (...containers: Container[]): Shape => ({ restartPolicy: 'Never', containers });
const mounted = (...names: string[]) => names.map((name) => ({ name, mountPath: `/${name}` }));
/** The scheduler is not asked. */
const placed = (spec: Shape): Shape => ({ nodeName: NODE_NAME, ...spec });

/** None has resources of the pod: with `cgroupsPerQOS: false`, which the lab needs, the reference kubelet 1.36.2 ends itself over it. */
const RESOURCES: Readonly<Record<string, Shape>> = {
  'limits-only': of({ limits: { cpu: '100m', memory: '32Mi' } }),
  'requests-only': of({ requests: { cpu: '20m', memory: '16Mi' } }),
  'cpu-only': of({ limits: { cpu: '1500m' }, requests: { cpu: '1m' } }),
  'memory-only': of({ limits: { memory: '32M' } }),
  guaranteed: of({ limits: { cpu: '50m', memory: '32Mi' }, requests: { cpu: '50m', memory: '32Mi' } }),
  'huge-zero': of({ limits: { cpu: '50m', 'hugepages-2Mi': '0' }, requests: { cpu: '50m' } }),
  storage: of({ requests: { 'ephemeral-storage': '1Mi' }, limits: { 'ephemeral-storage': '1Gi' } }),
  sidecars: {
    initContainers: [
      sh('first', 'exit 0', { resources: { requests: { cpu: '30m', memory: '8Mi' } } }),
      sh('side', STAY, { restartPolicy: 'Always', resources: { requests: { cpu: '10m' }, limits: { memory: '24Mi' } } }),
    ],
    containers: [stay({ resources: { requests: { cpu: '10m' } } }), sh('two', STAY, { resources: { limits: { memory: '24Mi' } } })],
  },
};

const VOLUMES: Readonly<Record<string, Shape>> = {
  volumes: {
    containers: [
      stay({
        volumeMounts: [
          ...mounted('memory', 'sized', 'host', 'config', 'all', 'secret'),
          { name: 'sized', mountPath: '/part', subPath: 'a/b' },
          { name: 'config', mountPath: '/etc/one', subPath: 'value', readOnly: true },
        ],
      }),
    ],
    volumes: [
      { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
      { name: 'sized', emptyDir: { sizeLimit: '32Mi' } },
      { name: 'host', hostPath: { path: '/tmp', type: 'Directory' } },
      { name: 'config', configMap: { name: 'settings', defaultMode: 0o400 } },
      {
        name: 'all',
        projected: {
          sources: [
            { configMap: { name: 'settings', items: [{ key: 'value', path: 'deep/value' }] } },
            { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
            { serviceAccountToken: { path: 'token', audience: 'lab', expirationSeconds: 600 } },
          ],
        },
      },
      { name: 'secret', secret: { secretName: 'none', optional: true } },
    ],
  },
  writes: {
    containers: [
      sh('main', `dd if=/dev/zero of=/scratch/x bs=1M count=4 2>/dev/null; dd if=/dev/zero of=/y bs=1M count=2 2>/dev/null; ${STAY}`, {
        volumeMounts: mounted('scratch'),
      }),
    ],
    volumes: [{ name: 'scratch', emptyDir: {} }],
  },
  'host-type': {
    containers: [stay({ volumeMounts: mounted('host') })],
    volumes: [{ name: 'host', hostPath: { path: '/nothing-of-the-lab', type: 'Directory' } }],
  },
  'sub-absent': {
    containers: [stay({ volumeMounts: [{ name: 'config', mountPath: '/x', subPathExpr: '$(NONE)' }] })],
    volumes: [{ name: 'config', configMap: { name: 'settings' } }],
  },
  'key-absent': {
    containers: [stay({ volumeMounts: mounted('config') })],
    volumes: [{ name: 'config', configMap: { name: 'settings', items: [{ key: 'none', path: 'none' }] } }],
  },
  image: {
    containers: [stay({ volumeMounts: mounted('image') })],
    volumes: [{ name: 'image', image: { reference: OTHER_IMAGE, pullPolicy: 'IfNotPresent' } }],
  },
};

const NETWORKS: Readonly<Record<string, Shape>> = {
  ports: {
    containers: [
      stay({
        ports: [
          { name: 'web', containerPort: 80 },
          { containerPort: 53, protocol: 'UDP' },
        ],
      }),
      sh('two', STAY, { ports: [{ containerPort: 81 }] }),
    ],
  },
  'port-taken': placed({ containers: [stay({ ports: [{ containerPort: 80, hostPort: 18_999 }] })] }),
  'host-all': { hostNetwork: true, hostPID: true, hostIPC: true, containers: [stay({ ports: [{ containerPort: 18_998 }] })] },
  named: {
    ...{ hostname: 'other', subdomain: 'sub', setHostnameAsFQDN: true, hostAliases: [{ ip: '10.9.9.9', hostnames: ['alias'] }] },
    ...{ dnsPolicy: 'None', dnsConfig: { nameservers: ['10.8.8.8'], options: [{ name: 'ndots', value: '2' }] } },
    containers: [stay()],
  },
  shared: { shareProcessNamespace: true, containers: [stay(), sh('two', STAY)] },
  'probe-http': {
    containers: [
      stay({
        readinessProbe: { httpGet: { port: 81, path: '/x' }, periodSeconds: 1 },
        livenessProbe: { tcpSocket: { port: 82 }, periodSeconds: 2, failureThreshold: 2 },
      }),
    ],
  },
  'probe-grpc': {
    containers: [
      stay({
        readinessProbe: { grpc: { port: 83 }, periodSeconds: 2 },
        startupProbe: { exec: { command: ['/nothing'] }, periodSeconds: 2, failureThreshold: 90 },
      }),
    ],
  },
  'probe-slow': { containers: [stay({ readinessProbe: { exec: { command: ['sleep', '30'] }, timeoutSeconds: 1, periodSeconds: 2 } })] },
};

const SECURITY: Readonly<Record<string, Shape>> = {
  secure: {
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 2000,
      supplementalGroups: [3000],
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      stay({
        securityContext: {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
        },
        volumeMounts: mounted('scratch'),
      }),
    ],
    volumes: [{ name: 'scratch', emptyDir: {} }],
  },
  privileged: { containers: [stay({ securityContext: { privileged: true } })] },
  unmasked: { hostUsers: false, containers: [stay({ securityContext: { procMount: 'Unmasked' } })] },
  'seccomp-absent': { containers: [stay({ securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'none.json' } } })] },
  'no-user': { containers: [stay({ securityContext: { runAsNonRoot: true, runAsUser: 0 } })] },
};

const ENDS: Readonly<Record<string, Shape>> = {
  again: { containers: [sh('main', 'sleep 3; exit 4')] },
  'greedy-again': { containers: [sh('main', GREEDY, { resources: { limits: { memory: '16Mi' } } })] },
  'done-many': {
    ...never(sh('main', 'echo main'), sh('two', 'exit 0')),
    initContainers: [sh('first', 'echo first'), sh('side', STAY, { restartPolicy: 'Always' })],
  },
  'failed-one': never(sh('main', 'exit 0'), sh('two', 'exit 7')),
  'killed-self': never(sh('main', 'kill -9 $$$$')),
  'log-message': never(sh('main', 'echo of the log; exit 5', { terminationMessagePolicy: 'FallbackToLogsOnError' })),
  'own-message': never(sh('main', 'echo own > /message', { terminationMessagePath: '/message' })),
  'own-policy': { containers: [stay(), sh('two', 'exit 0', { restartPolicy: 'Never' })] },
  rules: {
    ...never(
      sh('main', 'exit 42', {
        restartPolicy: 'Never',
        restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
      }),
    ),
  },
  'stop-hook': { containers: [stay({ lifecycle: { preStop: { exec: { command: ['false'] } } } })] },
  'stop-http': { containers: [stay({ lifecycle: { preStop: { httpGet: { port: 84 } } } })] },
  'stop-sleep': { containers: [stay({ lifecycle: { preStop: { sleep: { seconds: 1 } } } })] },
  stubborn: { containers: [sh('main', 'trap "" TERM; while :; do sleep 1; done')] },
  overwritten: {
    containers: [
      sh('main', `dd if=/dev/zero of=/y bs=1M count=4 2>/dev/null; ${STAY}`, { resources: { limits: { 'ephemeral-storage': '1Mi' } } }),
    ],
  },
  'too-full': {
    containers: [sh('main', `dd if=/dev/zero of=/scratch/x bs=1M count=4 2>/dev/null; ${STAY}`, { volumeMounts: mounted('scratch') })],
    volumes: [{ name: 'scratch', emptyDir: { sizeLimit: '1Mi' } }],
  },
  terminal: { containers: [stay({ stdin: true, tty: true })] },
  'no-folder': { containers: [stay({ workingDir: '/made/here' })] },
  'bad-env': { containers: [stay({ env: [{ name: 'X', value: '$(Y)$$(Z)' }], envFrom: [{ configMapRef: { name: 'none' } }] })] },
  'key-none': { containers: [stay({ env: [{ name: 'X', valueFrom: { configMapKeyRef: { name: 'settings', key: 'none' } } }] })] },
  'side-fails': { initContainers: [sh('side', 'exit 3', { restartPolicy: 'Always' })], containers: [steady()] },
  'init-unpulled': {
    initContainers: [{ ...steady('first'), image: 'actorlet.test/nothing:1', imagePullPolicy: 'Never' }],
    containers: [steady()],
  },
};

const ADMISSION: Readonly<Record<string, Shape>> = {
  'too-big': placed({ containers: [stay({ resources: { requests: { cpu: '900' } } })] }),
  'too-wide': placed({ containers: [stay({ resources: { requests: { memory: '900Gi' } } })] }),
  'no-node': placed({ nodeSelector: { none: 'x' }, containers: [stay()] }),
  device: placed({ containers: [stay({ resources: { limits: { 'lab.example/none': '1' } } })] }),
  windows: placed({ os: { name: 'windows' }, containers: [stay()] }),
};

export const SHAPES: Readonly<Record<string, Shape>> = { ...RESOURCES, ...VOLUMES, ...NETWORKS, ...SECURITY, ...ENDS, ...ADMISSION };

/** As static pods, which a node has without an API server too. */
export const STATIC: Readonly<Record<string, Shape>> = Object.fromEntries(
  [
    ...Object.entries(RESOURCES),
    ...['shared', 'host-all', 'ports'].map((name) => [name, NETWORKS[name] ?? never()] as const),
    ...['secure', 'privileged'].map((name) => [name, SECURITY[name] ?? never()] as const),
    ...['done-many', 'failed-one', 'log-message'].map((name) => [name, ENDS[name] ?? never()] as const),
    ['writes', VOLUMES.writes ?? never()] as const,
  ].map(([name, shape]) => [`static-${name}`, shape]),
);
