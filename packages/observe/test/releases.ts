/**
 * What kubelets of 1.30 to 1.37 look like from outside: their flags, files, and answers. Facts of their release notes and of the defaults of
 * their gates.
 */
import { CONFIG } from './nodes.ts';

interface Recorded {
  version: string;
  flags: readonly string[];
  file: string;
  /** What /configz says beside the fields that every release has. */
  configz: Readonly<Record<string, unknown>>;
  /** Flags and fields that are named as unknown here. */
  unknown: readonly string[];
  /** What it does not write in statuses. */
  unsaid: readonly string[];
}

/** Of every release. */
export const CONFIGZ = {
  ...{
    cgroupDriver: 'systemd',
    maxPods: 58,
    clusterDNS: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    staticPodPath: '/etc/kubernetes/manifests',
  },
  ...{ containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock', syncFrequency: '1m0s', nodeStatusUpdateFrequency: '10s' },
};

const LATE = ['declared features of the node', 'health of devices', 'resources of pods'];
const BEFORE_33 = ['features of the node', 'resources of containers', 'users of containers', ...LATE];
const [MAIN, CRASH] = [{ podLogsDir: '/var/log/pods', containerLogMaxWorkers: 1 }, { crashLoopBackOff: {} }];

export const RELEASES: readonly Recorded[] = [
  {
    ...{ version: 'v1.30.14', flags: ['--pod-infra-container-image=registry.k8s.io/pause:3.9', '--keep-terminated-pod-volumes=false'] },
    ...{ file: CONFIG('maxPods: 58\nfeatureGates: {AppArmor: true, DisableNodeKubeProxyVersion: false}\n'), configz: MAIN },
    unknown: [],
    unsaid: ['handlers of the runtime', 'mounts of containers', ...BEFORE_33],
  },
  {
    ...{
      version: 'v1.31.9-eks-1',
      flags: ['--pod-infra-container-image=registry.k8s.io/pause:3.10'],
      file: CONFIG('failCgroupV1: false\n'),
    },
    ...{ configz: { ...MAIN, failCgroupV1: false }, unknown: [], unsaid: BEFORE_33 },
  },
  {
    ...{ version: 'v1.32.5+rke2r1', flags: [], file: CONFIG('featureGates: {InPlacePodVerticalScaling: true}\n') },
    configz: { ...MAIN, ...CRASH, singleProcessOOMKill: false, featureGates: { InPlacePodVerticalScaling: true } },
    ...{ unknown: [], unsaid: ['features of the node', 'users of containers', ...LATE] },
  },
  {
    ...{ version: 'v1.33.1-gke.100', flags: [], file: CONFIG('imagePullCredentialsVerificationPolicy: NeverVerify\n') },
    configz: { ...MAIN, ...CRASH, imagePullCredentialsVerificationPolicy: 'NeverVerify', userNamespaces: { idsPerPod: 65_536 } },
    ...{ unknown: [], unsaid: LATE },
  },
  {
    version: 'v1.34.3',
    flags: ['--pod-infra-container-image=x'],
    file: CONFIG(''),
    configz: { ...MAIN, ...CRASH },
    unknown: [],
    unsaid: LATE,
  },
  {
    ...{ version: 'v1.35.0', flags: [], file: CONFIG('featureGates: {NodeDeclaredFeatures: true}\n'), unknown: [] },
    configz: { ...MAIN, ...CRASH, featureGates: { NodeDeclaredFeatures: true } },
    unsaid: ['health of devices', 'resources of pods'],
  },
  { version: 'v1.36.2', flags: [], file: CONFIG(''), configz: { ...MAIN, ...CRASH }, unknown: [], unsaid: [] },
  {
    ...{ version: 'v1.37.0-rc.1', flags: ['--a-flag-of-137=x'], file: CONFIG('defaultPodSysctls: {net.core.somaxconn: "1024"}\n') },
    configz: { ...MAIN, ...CRASH, defaultPodSysctls: { 'net.core.somaxconn': '1024' } },
    ...{ unknown: ['--a-flag-of-137', 'defaultPodSysctls'], unsaid: [] },
  },
];
