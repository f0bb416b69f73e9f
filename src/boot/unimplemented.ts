/**
 * What this node reads and checks but does not do yet. A value that differs from the default is said in one line at
 * start: a warning where ignoring it takes a protection away, as the reference does without a word.
 */

import type { KubeletConfiguration, KubeletFlags } from '../machines/config/config.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../machines/config/defaults.ts';
import { KUBELET_GATES } from '../machines/config/gateTable.ts';
import { sameData } from '../machines/data/sameData.ts';
import { getPath } from './config/paths.ts';
import type { Problem } from './errors.ts';
import { flagHint } from './flags/table.ts';

interface Entry {
  /** Configuration path, or `--` and the name of a command-line flag. */
  readonly path: string;
  readonly why: string;
  /** To ignore it takes a protection away. */
  readonly warn?: boolean;
  /** Honoured but for `cgroupsPerQOS: false`, which leaves the node without cgroups of its own. */
  readonly groups?: boolean;
  /** Concerns the HTTPS server: with `enableServer: false` it asks for nothing. */
  readonly server?: boolean;
}

const NO_CGROUPS = 'with cgroupsPerQOS: false the node makes no cgroups of its own; limits of containers go to the runtime';
const VOLUMES = 'flex volumes, deprecated since 1.23, are not there: a CSI driver does what a flex driver did';

const lines = (why: string, ...paths: string[]): Entry[] => paths.map((path) => ({ path, why }));
function withGroups(entry: Entry): Entry {
  return { ...entry, groups: true };
}

export const UNIMPLEMENTED: readonly Entry[] = [
  ...lines('a cloud is known through its own controllers only', '--cloud-config'),
  ...lines(VOLUMES, '--experimental-mounter-path'),

  ...[
    ...lines('as in the kubelet of 1.36: the runtime ends idle streams by its own setting', 'streamingConnectionIdleTimeout'),
    ...lines('the API has no such page yet', 'enableContentionProfiling'),
  ].map((e) => ({ ...e, server: true })),
  ...lines('pods may have any number of processes: the limit is enforced by the cgroups of pods alone', 'podPidsLimit').map((e) => ({
    ...withGroups(e),
    warn: true,
  })),
  ...lines('the API is spoken in JSON', 'contentType'),
  ...lines(NO_CGROUPS, 'systemReservedCgroup', 'kubeReservedCgroup').map(withGroups),
  ...lines(
    'less is left for pods to ask for, and nothing keeps them from using more: with cgroupsPerQOS: false no cgroup enforces it',
    'systemReserved',
    'kubeReserved',
  ).map(withGroups),
  ...lines(VOLUMES, 'volumePluginDir'),
  ...lines("pod networking is the runtime's and this has no effect on it", 'hairpinMode', 'podCIDR'),
  ...lines('the kubelet of 1.36 marks no packets either', 'iptablesMasqueradeBit', 'iptablesDropBit'),
  ...lines('no metric is hidden', 'showHiddenMetricsForVersion'),
  ...lines('verbosity per file is not there yet', 'logging.vmodule'),
  ...lines(
    'every line is written to stderr at once',
    'logging.flushFrequency',
    'logging.options.text.splitStream',
    'logging.options.text.infoBufferSize',
    'logging.options.json.splitStream',
    'logging.options.json.infoBufferSize',
  ),
];

/** Field of KubeletFlags behind a `--name` entry. */
const FLAG_FIELDS: Readonly<Record<string, keyof KubeletFlags>> = {
  '--cloud-config': 'cloudConfig',
  '--experimental-mounter-path': 'experimentalMounterPath',
};

/** Gates whose feature is there with them and without: to turn one off asks for something. */
export const ALWAYS_GATES: readonly string[] = [
  'CPUManagerPolicyOptions',
  'CSIServiceAccountTokenSecrets',
  'ContainerRestartRules',
  'ContainerStopSignals',
  'ContextualLogging',
  'DRAExtendedResource',
  'DisableNodeKubeProxyVersion',
  'DynamicResourceAllocation',
  'EnvFiles',
  'EventedPLEG',
  'ExecProbeTimeout',
  'HostnameOverride',
  'ImageMaximumGCAge',
  'ImageVolume',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'KubeletCgroupDriverFromCRI',
  'KubeletPSI',
  'KubeletPodResourcesDynamicResources',
  'LoggingBetaOptions',
  'MutableCSINodeAllocatableCount',
  'NodeLogQuery',
  'NodeSwap',
  'PLEGOnDemandRelist',
  'PodLevelResources',
  'PodLifecycleSleepAction',
  'PodLifecycleSleepActionAllowZero',
  'PodObservedGenerationTracking',
  'PodReadyToStartContainersCondition',
  'ProcMountType',
  'RecoverVolumeExpansionFailure',
  'RecursiveReadOnlyMounts',
  'RelaxedDNSSearchValidation',
  'RelaxedEnvironmentVariableValidation',
  'ReloadKubeletClientCAFile',
  'ReloadKubeletServerCertificateFile',
  'ResourceHealthStatus',
  'ResourceHealthStatusMessage',
  'RestartAllContainersOnContainerExits',
  'SELinuxChangePolicy',
  'SELinuxMountReadWriteOncePod',
  'SidecarContainers',
  'SupplementalGroupsPolicy',
  'SystemdWatchdog',
  'TopologyManagerPolicyAlphaOptions',
  'TopologyManagerPolicyBetaOptions',
  'TopologyManagerPolicyOptions',
  'UserNamespacesSupport',
];

const gatesWithout = (why: string, ...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, why]));

/** Gates of features that are not there at all, with what is there instead: to turn one on asks for something. */
export const ABSENT_GATES: Readonly<Record<string, string>> = {
  ...gatesWithout('pods with resources of a pod as a whole have no CPUs or memory alone', 'PodLevelResourceManagers'),
  ...gatesWithout(
    'resources of containers with CPUs or memory of their own do not change while they run',
    'InPlacePodVerticalScalingExclusiveCPUs',
    'InPlacePodVerticalScalingExclusiveMemory',
  ),
  ...gatesWithout('the status of a container does not show digests of image volumes yet', 'ImageVolumeWithDigest'),
  ...gatesWithout('pods on the network of the host have no user namespace', 'UserNamespacesHostNetworkSupport'),
  ...gatesWithout('a claim that a pod shares with its pod group is unknown here', 'DRAWorkloadResourceClaims'),
  ...gatesWithout('a pod with a gitRepo volume is refused', 'GitRepoVolumeDriver'),
  ...gatesWithout('a toleration with the operator Lt or Gt tolerates nothing', 'TaintTolerationComparisonOperators'),
  ...gatesWithout('the log of a container is read with both streams', 'PodLogsQuerySplitStreams'),
  ...gatesWithout('every line is written to stderr at once', 'LoggingAlphaOptions'),
  ...gatesWithout('an image is pulled without its runtime class', 'RuntimeClassInImageCriApi'),
  ...gatesWithout('the runtime is asked for whole lists', 'CRIListStreaming'),
  ...gatesWithout('the API is spoken in JSON', 'ClientsAllowCBOR', 'ClientsPreferCBOR'),
  ...gatesWithout('histograms are written in classic buckets', 'NativeHistograms'),
  ...gatesWithout('a restart of the agent changes no status of a container', 'ChangeContainerStatusOnKubeletRestart'),
  ...gatesWithout('the node is looked up before it is created', 'KubeletRegistrationGetOnExistsOnly'),
  ...gatesWithout('this node runs on Linux', 'WindowsCPUAndMemoryAffinity', 'WindowsGracefulNodeShutdown', 'WindowsHostNetwork'),
};

/** What is said of a gate that is set to other than its default and is not honoured. Null: it asks for what is there. */
function withoutEffect(name: string, value: boolean): string | null {
  if (ALWAYS_GATES.includes(name)) return value ? null : 'the feature is there with and without its gate';
  return value ? (ABSENT_GATES[name] ?? null) : null;
}

/** Lines to log. */
export function checkUnimplemented(flags: KubeletFlags, config: KubeletConfiguration): (Problem & { level: 'warn' | 'info' })[] {
  const defaults = defaultKubeletConfiguration();
  const flagDefaults = defaultKubeletFlags();
  const out: ReturnType<typeof checkUnimplemented> = [];
  for (const entry of UNIMPLEMENTED) {
    if ((entry.server && !config.enableServer) || (entry.groups && config.cgroupsPerQOS)) continue;
    const field = FLAG_FIELDS[entry.path];
    const [value, initial] =
      field === undefined ? [getPath(config, entry.path), getPath(defaults, entry.path)] : [flags[field], flagDefaults[field]];
    // An empty list asks for nothing: `enforceNodeAllocatable: []`.
    if (sameData(value, initial) || (Array.isArray(value) && value.length === 0)) continue;
    out.push({ level: entry.warn ? 'warn' : 'info', where: `${entry.path}${flagHint(entry.path)}`, what: entry.why });
  }
  for (const [name, value] of Object.entries(config.featureGates)) {
    const spec = KUBELET_GATES[name];
    if (spec === undefined || value === spec.default) continue;
    const what = withoutEffect(name, value);
    if (what === null) continue;
    const where = `featureGates.${name}${flagHint('featureGates')}`;
    out.push({ level: 'info', where, what });
  }
  return out;
}
