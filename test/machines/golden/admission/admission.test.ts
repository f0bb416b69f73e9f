/**
 * Hard admission, a row for each case of the tables of the specification (pod lifecycle 2.6; resources 12.1, 12.2): the
 * very reason and message, which people search for and other programs match.
 */
import type { NodeSelectorRequirement } from '../../../../src/machines/kube/podTable.ts';
import type { Pod, Taint } from '../../../../src/machines/kube/types.ts';
import { sysctlPatterns } from '../../../../src/machines/pods/admission/ability/sysctls.ts';
import { admit } from '../../../../src/machines/pods/admission/admission.ts';
import { container, pod, sidecar } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

interface Row {
  pod: Pod;
  others?: Pod[];
  podsMax?: number;
  labels?: Record<string, string>;
  taints?: Taint[];
  allowedUnsafeSysctls?: string[];
  kernelVersion?: string;
  strictGroups?: boolean;
  /** The kernel has it. */
  appArmor?: boolean;
}

const LABELS = { 'kubernetes.io/hostname': 'n1', 'kubernetes.io/os': 'linux', disk: 'ssd', cores: '8', free: '' };
const ALLOCATABLE = { cpu: '2', memory: '1Gi', pods: '110', 'ephemeral-storage': '10Gi', 'hugepages-2Mi': '4Mi' };

const asking = (requests: Record<string, string>, more: Partial<Pod['spec']> = {}): Pod =>
  pod({ containers: [container('web', { resources: { requests } })], ...more });
const beside = (requests: Record<string, string>): Pod => ({
  ...asking(requests),
  metadata: { ...pod().metadata, name: 'other', uid: 'uid-2' },
});
const onPort = (hostPort: number, more: { hostIP?: string; protocol?: 'TCP' | 'UDP' } = {}): Pod =>
  pod({ containers: [container('web', { ports: [{ containerPort: 80, hostPort, ...more }] })] });
const holding = (hostPort: number, more: { hostIP?: string; protocol?: 'TCP' | 'UDP' } = {}): Pod[] => [
  { ...onPort(hostPort, more), metadata: { ...pod().metadata, name: 'holder', uid: 'uid-2' } },
];
const required = (...terms: { matchExpressions?: NodeSelectorRequirement[]; matchFields?: NodeSelectorRequirement[] }[]): Pod =>
  pod({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } } });
const expression = (key: string, operator: string, ...values: string[]): Pod => required({ matchExpressions: [{ key, operator, values }] });
const field = (operator: string, ...values: string[]): Pod => required({ matchFields: [{ key: 'metadata.name', operator, values }] });
const EVICTING: Taint = { key: 'dedicated', value: 'db', effect: 'NoExecute' };
const tolerating = (...tolerations: Pod['spec']['tolerations'] & object): Row => ({ pod: pod({ tolerations }), taints: [EVICTING] });

const setting = (name: string, more: Partial<Pod['spec']> = {}): Pod =>
  pod({ securityContext: { sysctls: [{ name, value: '1' }] }, ...more });

const profile = { appArmorProfile: { type: 'RuntimeDefault' } } as const;
const annotated = (value: string): Pod =>
  pod({}, { metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': value } } });

const ROWS: Record<string, Row> = {
  'a plain pod': { pod: pod() },
  'unsupported: one field': { pod: pod({ volumes: [{ name: 'v', cephfs: { monitors: ['m'] } }] }) },
  'unsupported: several fields': {
    pod: pod({ securityContext: { windowsOptions: { runAsUserName: 'a' } }, volumes: [{ name: 'v', cephfs: { monitors: ['m'] } }] }),
  },
  'unsupported: what only the API can tell, in a manifest': { pod: pod({ runtimeClassName: 'kata' }, { source: 'file' }) },
  'os: the label of the pod names another': { pod: pod({}, { metadata: { labels: { 'kubernetes.io/os': 'windows' } } }) },
  'os: the label of the pod names this one': { pod: pod({}, { metadata: { labels: { 'kubernetes.io/os': 'linux' } } }) },
  'os: the field names another': { pod: pod({ os: { name: 'windows' } }) },
  'groups: Strict': { pod: pod({ securityContext: { supplementalGroupsPolicy: 'Strict' } }) },
  'groups: Strict, of a runtime that can': { pod: pod({ securityContext: { supplementalGroupsPolicy: 'Strict' } }), strictGroups: true },
  'AppArmor: of the pod, on a kernel without it': { pod: pod({ securityContext: profile }), appArmor: false },
  'AppArmor: of a container, on a kernel without it': {
    pod: pod({ containers: [container('web', { securityContext: profile })] }),
    appArmor: false,
  },
  'AppArmor: by annotation, on a kernel without it': { pod: annotated('runtime/default'), appArmor: false },
  'AppArmor: unconfined by annotation, on a kernel without it': { pod: annotated('unconfined'), appArmor: false },
  'AppArmor: of a pod that runs, on a kernel without it': {
    pod: { ...pod({ securityContext: profile }), status: { phase: 'Running' } },
    appArmor: false,
  },
  'AppArmor: of the pod, on a kernel with it': { pod: pod({ securityContext: profile }), appArmor: true },
  'sysctl: safe': { pod: setting('net.ipv4.tcp_syncookies') },
  'sysctl: safe, written with slashes': { pod: setting('net/ipv4/tcp_syncookies') },
  'sysctl: not safe': { pod: setting('net.core.somaxconn') },
  'sysctl: not safe, with slashes it is named with dots': { pod: setting('net/core/somaxconn') },
  'sysctl: of no namespace': { pod: setting('vm.swappiness') },
  'sysctl: allowed by name': { pod: setting('net.core.somaxconn'), allowedUnsafeSysctls: ['net.core.somaxconn'] },
  'sysctl: a name is not a prefix': { pod: setting('net.core.somaxconn2'), allowedUnsafeSysctls: ['net.core.somaxconn'] },
  'sysctl: allowed by a prefix': { pod: setting('kernel.msgmax'), allowedUnsafeSysctls: ['kernel.msg*'] },
  'sysctl: a prefix written with slashes': { pod: setting('net.core.somaxconn'), allowedUnsafeSysctls: ['net/core/*'] },
  'sysctl: an interface with a dot in its name': {
    pod: setting('net/ipv4/conf/eth0.100/forwarding'),
    allowedUnsafeSysctls: ['net.ipv4.conf.eth0/100.*'],
  },
  'sysctl: safe since a later kernel': { pod: setting('net.ipv4.tcp_rmem'), kernelVersion: '4.14.9-generic' },
  'sysctl: safe since this kernel': { pod: setting('net.ipv4.tcp_rmem'), kernelVersion: '4.15.0' },
  'sysctl: a kernel that cannot be read counts as old': { pod: setting('net.ipv4.tcp_keepalive_time'), kernelVersion: '' },
  "sysctl: of the network, which is the host's": { pod: setting('net.ipv4.tcp_syncookies', { hostNetwork: true }) },
  'sysctl: of the network, with the IPC of the host': { pod: setting('net.ipv4.tcp_syncookies', { hostIPC: true }) },
  "sysctl: of IPC, which is the host's": { pod: setting('kernel.shm_rmid_forced', { hostIPC: true }) },
  'sysctl: semaphores are of IPC': {
    pod: setting('kernel.sem', { hostIPC: true }),
    allowedUnsafeSysctls: ['kernel.sem'],
  },
  'sysctl: allowed by a prefix, with the network of the host': {
    pod: setting('net.core.somaxconn', { hostNetwork: true }),
    allowedUnsafeSysctls: ['net.*'],
  },
  'sysctl: the second of two': {
    pod: pod({
      securityContext: {
        sysctls: [
          { name: 'kernel.shm_rmid_forced', value: '1' },
          { name: 'kernel.shmmax', value: '1' },
        ],
      },
    }),
  },
  'sysctl: comes before the system of the pod': { pod: setting('vm.swappiness', { os: { name: 'windows' } }) },
  'groups: Merge': { pod: pod({ securityContext: { supplementalGroupsPolicy: 'Merge' } }) },
  'pods: one too many': { pod: pod(), others: [beside({})], podsMax: 1 },
  'pods: come before everything else': { pod: asking({ cpu: '9' }), others: [beside({})], podsMax: 1 },
  'cpu: too little': { pod: asking({ cpu: '1500m' }), others: [beside({ cpu: '600m' })] },
  'cpu: just enough': { pod: asking({ cpu: '1500m' }), others: [beside({ cpu: '500m' })] },
  'cpu: nothing asked of a full node': { pod: pod(), others: [beside({ cpu: '2' })] },
  'cpu: comes before memory': { pod: asking({ cpu: '3', memory: '2Gi' }) },
  'memory: too little': { pod: asking({ memory: '600Mi' }), others: [beside({ memory: '500Mi' })] },
  'memory: overhead counts': { pod: asking({ memory: '1000Mi' }, { overhead: { memory: '25Mi' } }) },
  'memory: the neediest moment of the start counts': {
    pod: pod({
      initContainers: [
        sidecar('s', { resources: { requests: { memory: '600Mi' } } }),
        container('i', { resources: { requests: { memory: '500Mi' } } }),
      ],
    }),
  },
  'ephemeral storage: too little': { pod: asking({ 'ephemeral-storage': '11Gi' }) },
  'huge pages: too little': { pod: asking({ 'hugepages-2Mi': '6Mi' }) },
  'huge pages: a size that the node does not have': { pod: asking({ 'hugepages-1Gi': '1Gi' }) },
  'critical: too little is said as of any other': { pod: asking({ cpu: '3' }, { priority: 2_000_000_000 }) },
  'critical: what no room can mend counts more': {
    pod: asking({ cpu: '3' }, { priority: 2_000_000_000, nodeSelector: { gpu: 'yes' } }),
  },
  'critical: a port that is taken counts more': {
    pod: { ...onPort(80), spec: { ...onPort(80).spec, priority: 2_000_000_000 } },
    others: holding(80),
    podsMax: 1,
  },
  'selector: matches': { pod: pod({ nodeSelector: { disk: 'ssd' } }) },
  'selector: another value': { pod: pod({ nodeSelector: { disk: 'hdd' } }) },
  'selector: no such label': { pod: pod({ nodeSelector: { gpu: 'yes' } }) },
  'selector: holds for static pods too': { pod: pod({ nodeSelector: { gpu: 'yes' } }, { source: 'file' }) },
  'selector: comes after resources': { pod: asking({ cpu: '3' }, { nodeSelector: { gpu: 'yes' } }) },
  'affinity: no terms': { pod: required() },
  'affinity: an empty term': { pod: required({}) },
  'affinity: one term of two is enough': {
    pod: required({ matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }, { matchExpressions: [{ key: 'disk', operator: 'Exists' }] }),
  },
  'affinity: all of a term must hold': {
    pod: required({
      matchExpressions: [
        { key: 'disk', operator: 'Exists' },
        { key: 'gpu', operator: 'Exists' },
      ],
    }),
  },
  'affinity: preferred ones are not asked': {
    pod: pod({
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] } as object, podAntiAffinity: {} },
    }),
  },
  'In: one of the values': { pod: expression('disk', 'In', 'hdd', 'ssd') },
  'In: none of the values': { pod: expression('disk', 'In', 'hdd') },
  'In: no such label': { pod: expression('gpu', 'In', 'yes') },
  'NotIn: none of the values': { pod: expression('disk', 'NotIn', 'hdd') },
  'NotIn: one of the values': { pod: expression('disk', 'NotIn', 'ssd') },
  'NotIn: no such label': { pod: expression('gpu', 'NotIn', 'yes') },
  'Exists: an empty label': { pod: expression('free', 'Exists') },
  'Exists: no such label': { pod: expression('gpu', 'Exists') },
  'Exists: with values it is not well formed': { pod: expression('disk', 'Exists', 'ssd') },
  'DoesNotExist: no such label': { pod: expression('gpu', 'DoesNotExist') },
  'DoesNotExist: there is one': { pod: expression('disk', 'DoesNotExist') },
  'Gt: greater': { pod: expression('cores', 'Gt', '4') },
  'Gt: as great': { pod: expression('cores', 'Gt', '8') },
  'Gt: the label is no number': { pod: expression('disk', 'Gt', '4') },
  'Lt: less': { pod: expression('cores', 'Lt', '16') },
  'Lt: two bounds are not well formed': { pod: expression('cores', 'Lt', '16', '32') },
  'an operator that does not exist': { pod: expression('disk', 'Like', 'ssd') },
  'field In: this node': { pod: field('In', 'n1') },
  'field In: another node': { pod: field('In', 'n2') },
  'field NotIn: this node': { pod: field('NotIn', 'n1') },
  'field NotIn: another node': { pod: field('NotIn', 'n2') },
  'node name: this one': { pod: pod({ nodeName: 'n1' }) },
  'node name: another': { pod: pod({ nodeName: 'n2' }) },
  'node name: comes after affinity': { pod: pod({ nodeName: 'n2', nodeSelector: { gpu: 'yes' } }) },
  'port: taken': { pod: onPort(80), others: holding(80) },
  'port: another': { pod: onPort(80), others: holding(81) },
  'port: another protocol': { pod: onPort(80), others: holding(80, { protocol: 'UDP' }) },
  'port: other addresses': { pod: onPort(80, { hostIP: '10.0.0.1' }), others: holding(80, { hostIP: '10.0.0.2' }) },
  'port: the same address': { pod: onPort(80, { hostIP: '10.0.0.1' }), others: holding(80, { hostIP: '10.0.0.1' }) },
  'port: one address, held on all': { pod: onPort(80, { hostIP: '10.0.0.1' }), others: holding(80, { hostIP: '0.0.0.0' }) },
  'port: all addresses, held on one': { pod: onPort(80), others: holding(80, { hostIP: '10.0.0.1' }) },
  'port: held by a sidecar': {
    pod: onPort(80),
    others: [pod({ initContainers: [sidecar('s', { ports: [{ containerPort: 80, hostPort: 80 }] })] }, { metadata: { name: 'holder' } })],
  },
  'port: an init container that is gone holds none': {
    pod: onPort(80),
    others: [pod({ initContainers: [container('i', { ports: [{ containerPort: 80, hostPort: 80 }] })] })],
  },
  'taint: NoExecute, not tolerated': { pod: pod(), taints: [EVICTING] },
  'taint: NoExecute without a value': { pod: pod(), taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] },
  'taint: NoSchedule is a matter of scheduling': { pod: pod(), taints: [{ ...EVICTING, effect: 'NoSchedule' }] },
  'taint: static pods are not asked': { pod: pod({}, { source: 'file' }), taints: [EVICTING] },
  'taint: tolerated': tolerating({ key: 'dedicated', operator: 'Equal', value: 'db', effect: 'NoExecute' }),
  'taint: tolerated without an effect, by default operator': tolerating({ key: 'dedicated', value: 'db' }),
  'taint: tolerated by existence': tolerating({ key: 'dedicated', operator: 'Exists' }),
  'taint: everything tolerated': tolerating({ operator: 'Exists' }),
  'taint: another value tolerated': tolerating({ key: 'dedicated', operator: 'Equal', value: 'web' }),
  'taint: another effect tolerated': tolerating({ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }),
  'taint: comes last': { pod: onPort(80), others: holding(80), taints: [EVICTING] },
};

goldenTable(
  'admission is as recorded',
  'admission/admission',
  deciding(ROWS, (row) => {
    const node = { name: 'n1', labels: row.labels ?? LABELS, taints: row.taints ?? [] };
    const ability = {
      sysctls: sysctlPatterns(row.kernelVersion ?? '6.1.0', row.allowedUnsafeSysctls ?? []),
      strictGroups: row.strictGroups ?? false,
      ...(row.appArmor === undefined ? {} : { appArmor: row.appArmor }),
    };
    return admit({ pod: row.pod, others: row.others ?? [], podsMax: row.podsMax ?? 110, allocatable: ALLOCATABLE, node, ability });
  }),
);
