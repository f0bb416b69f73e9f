/** What runs on a node of a cluster beside its control plane: workloads of each kind, and static pods in the shapes that others write them in. */

const IMAGE = 'actorlet.test/busybox:1';
const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const sh = (name: string, script: string, more: object = {}) => ({ name, image: IMAGE, command: ['sh', '-c', script], ...more });
const named = (name: string) => ({ selector: { matchLabels: { app: name } }, metadata: { labels: { app: name } } });
const controller = (kind: string, name: string, o: { spec?: object; pod: object }) => {
  const { selector, metadata } = named(name);
  const spec = { terminationGracePeriodSeconds: 1, ...o.pod };
  return { apiVersion: 'apps/v1', kind, metadata: { name }, spec: { selector, ...o.spec, template: { metadata, spec } } };
};
const job = (name: string, o: { count: number; script: string }) => ({
  ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } },
  spec: {
    ...{ completions: o.count, parallelism: o.count },
    template: {
      metadata: { labels: { app: name } },
      spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: [sh('main', o.script)] },
    },
  },
});

const REPLICAS = 3;
/** Each pod keeps a volume of its own, and writes a line into it whenever it starts. */
export const KEPT = Array.from({ length: REPLICAS }, (_, i) => `db-${i}`);
const volume = (i: number) => ({
  ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `disk-${i}` } },
  spec: {
    ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'manual' },
    hostPath: { path: `/var/lib/disks/${i}`, type: 'DirectoryOrCreate' },
  },
});

/** With the pods of `webDeployment` (8), CoreDNS (2), kube-proxy, the control plane and {@link STATIC_SHAPES}: 60 containers. */
export const WORKLOADS: readonly object[] = [
  ...KEPT.map((_, i) => volume(i)),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'db' },
    spec: { clusterIP: 'None', selector: { app: 'db' }, ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
  },
  controller('StatefulSet', 'db', {
    spec: {
      ...{ serviceName: 'db', replicas: REPLICAS, podManagementPolicy: 'Parallel' },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'manual', resources: { requests: { storage: '1Gi' } } },
        },
      ],
    },
    pod: {
      containers: [
        sh('main', `hostname >>/data/starts; ${STAY}`, { volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
        sh('beside', STAY),
      ],
    },
  }),
  controller('DaemonSet', 'agent', {
    pod: {
      hostNetwork: true,
      tolerations: [{ operator: 'Exists' }],
      initContainers: [sh('sidecar', STAY, { restartPolicy: 'Always' })],
      containers: [
        sh('main', STAY, {
          livenessProbe: { exec: { command: ['true'] }, periodSeconds: 10, timeoutSeconds: 30 },
          volumeMounts: [{ name: 'root', mountPath: '/host', readOnly: true, mountPropagation: 'HostToContainer' }],
        }),
        sh('second', STAY),
      ],
      volumes: [{ name: 'root', hostPath: { path: '/var/lib/kubelet' } }],
    },
  }),
  controller('Deployment', 'many', { spec: { replicas: 10 }, pod: { containers: ['one', 'two', 'three'].map((name) => sh(name, STAY)) } }),
  job('works', { count: 3, script: STAY }),
  job('worked', { count: 3, script: 'echo done' }),
];
export const CONTAINERS = 60;

const staticPod = (name: string, spec: object) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'kube-system' } },
  spec: { hostNetwork: true, terminationGracePeriodSeconds: 1, ...spec },
});
const hostFile = (name: string, path: string, type?: string) => ({ name, hostPath: { path, ...(type === undefined ? {} : { type }) } });
const mounted = (name: string, mountPath: string) => ({ name, mountPath, readOnly: true });
const NET = ['NET_ADMIN', 'NET_RAW'];

/** As their manuals have them for a highly available control plane, with a program that stays in the place of theirs. By file. */
export const STATIC_SHAPES: Readonly<Record<string, object>> = {
  'kube-vip': staticPod('kube-vip', {
    containers: [
      sh('kube-vip', STAY, {
        args: ['manager'],
        imagePullPolicy: 'IfNotPresent',
        env: [
          { name: 'vip_arp', value: 'true' },
          { name: 'port', value: '6443' },
          { name: 'vip_nodename', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'vip_interface', value: 'eth0' },
          { name: 'address', value: '10.99.0.100' },
        ],
        securityContext: { capabilities: { add: NET, drop: ['ALL'] } },
        volumeMounts: [mounted('kubeconfig', '/etc/kubernetes/admin.conf')],
      }),
    ],
    hostAliases: [{ hostnames: ['kubernetes'], ip: '127.0.0.1' }],
    volumes: [hostFile('kubeconfig', '/etc/kubernetes/admin.conf')],
  }),
  keepalived: staticPod('keepalived', {
    containers: [
      sh('keepalived', STAY, {
        securityContext: { capabilities: { add: ['NET_BROADCAST', ...NET] } },
        livenessProbe: { exec: { command: ['test', '-s', '/etc/keepalived/keepalived.conf'] }, timeoutSeconds: 30 },
        volumeMounts: [mounted('config', '/etc/keepalived/keepalived.conf'), mounted('check', '/etc/keepalived/check_apiserver.sh')],
      }),
    ],
    volumes: [hostFile('config', '/etc/keepalived/keepalived.conf'), hostFile('check', '/etc/keepalived/check_apiserver.sh')],
  }),
  haproxy: staticPod('haproxy', {
    containers: [
      sh('haproxy', 'mkdir /w; echo ok >/w/healthz; exec httpd -f -p 127.0.0.1:8444 -h /w', {
        livenessProbe: {
          ...{ failureThreshold: 8, timeoutSeconds: 30 },
          httpGet: { host: 'localhost', path: '/healthz', port: 8444, scheme: 'HTTP' },
        },
        startupProbe: { httpGet: { host: '127.0.0.1', path: '/healthz', port: 8444 }, failureThreshold: 30, timeoutSeconds: 30 },
        volumeMounts: [mounted('config', '/usr/local/etc/haproxy/haproxy.cfg')],
      }),
    ],
    volumes: [hostFile('config', '/etc/haproxy/haproxy.cfg', 'FileOrCreate')],
  }),
};
/** What those read of the node. */
export const SHAPES_NEED = `mkdir -p /etc/keepalived /etc/haproxy
echo global_defs >/etc/keepalived/keepalived.conf
echo '#!/bin/sh' >/etc/keepalived/check_apiserver.sh
`;
