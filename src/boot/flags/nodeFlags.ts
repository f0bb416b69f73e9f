/** Flags that have no field in the configuration file (boot-and-node 2.5.1), and our own. */
import type { KubeletFlags } from '../../machines/config/config.ts';
import type { FlagSpec, FlagType } from './types.ts';

const GC_HINT = 'dead containers are better limited by --eviction-hard and --eviction-soft';

type Row = readonly [name: string, type: FlagType, flag: keyof KubeletFlags, help: string, deprecated?: string];

const ROWS: readonly Row[] = [
  ['config', 'path', 'config', 'Configuration file (KubeletConfiguration, YAML or JSON). Flags win over it.'],
  ['config-dir', 'folder', 'configDir', 'Directory of configuration drop-ins: *.conf, merged over the file in lexical order.'],
  ['kubeconfig', 'path', 'kubeconfig', 'Kubeconfig that says how to reach the API server. Leave it out for standalone mode.'],
  [
    'bootstrap-kubeconfig',
    'path',
    'bootstrapKubeconfig',
    'Kubeconfig used once to obtain a client certificate when --kubeconfig does not exist yet.',
  ],
  ['hostname-override', 'string', 'hostnameOverride', 'Name of the node in place of the host name.'],
  ['node-ip', 'nodeIPs', 'nodeIPs', 'Address of the node, or a dual-stack pair separated by a comma.'],
  ['cert-dir', 'path', 'certDir', 'Directory for certificates the node obtains or makes for itself.'],
  ['root-dir', 'path', 'rootDir', 'Directory for everything the node keeps: pods, volumes, state.'],
  ['node-labels', 'labels', 'nodeLabels', 'Labels the node registers with: key=value,...'],
  ['lock-file', 'path', 'lockFile', 'File on which an exclusive lock is held while the node runs; waits for it.'],
  ['exit-on-lock-contention', 'bool', 'exitOnLockContention', 'End (exit code 0) as soon as somebody else opens --lock-file.'],
  ['runtime-cgroups', 'string', 'runtimeCgroups', 'Absolute name of the cgroup the container runtime runs in.'],
  [
    'pod-infra-container-image',
    'string',
    'podInfraContainerImage',
    'Sandbox image that image garbage collection leaves alone.',
    'the sandbox image is a setting of the container runtime',
  ],
  [
    'image-credential-provider-config',
    'path',
    'imageCredentialProviderConfig',
    'Configuration file of the image credential provider plugins.',
  ],
  ['image-credential-provider-bin-dir', 'path', 'imageCredentialProviderBinDir', 'Directory of the image credential provider plugins.'],
  ['cloud-provider', 'string', 'cloudProvider', 'Empty, or `external`.'],
  [
    'cloud-config',
    'path',
    'cloudConfig',
    'Configuration file of the cloud provider.',
    'cloud providers are no longer part of the node agent',
  ],
  [
    'minimum-container-ttl-duration',
    'duration',
    'minimumContainerTTLDuration',
    'Least age of a dead container before it is collected.',
    GC_HINT,
  ],
  [
    'maximum-dead-containers-per-container',
    'int32',
    'maximumDeadContainersPerContainer',
    'Dead instances kept for each container.',
    GC_HINT,
  ],
  ['maximum-dead-containers', 'int32', 'maximumDeadContainers', 'Dead containers kept on the whole node; negative = no limit.', GC_HINT],
  ['register-schedulable', 'bool', 'registerSchedulable', 'Register the node as schedulable.', 'use --register-with-taints'],
  [
    'experimental-mounter-path',
    'path',
    'experimentalMounterPath',
    'Program used for mounting in place of mount(8).',
    'it will go away without a successor',
  ],
  [
    'experimental-allocatable-ignore-eviction',
    'bool',
    'experimentalAllocatableIgnoreEviction',
    'Leave hard eviction thresholds out of the allocatable calculation.',
    'it will go away without a successor',
  ],
];

const OWN: readonly Row[] = [
  [
    'actorlet-fault-injection',
    'bool',
    'faultInjection',
    'Allow actorctl inject to cause faults on this node. Never on a node that matters.',
  ],
  [
    'actorlet-inspect',
    'loopback',
    'inspect',
    'Serve the inspection page and the xstate inspectors there; alone: 127.0.0.1:10260. Every user of this machine can read it.',
  ],
  [
    'actorlet-inspect-actions',
    'bool',
    'inspectActions',
    'Let the inspection page restart and delete pods, for who opens it with actorctl ui. Without --actorlet-inspect it has no effect.',
  ],
  [
    'actorlet-record',
    'path',
    'record',
    'File (mode 0600) in which the flight recorder is kept; actorctl --recording opens it, also after a crash.',
  ],
  ['actorlet-record-max-mib', 'int32', 'recordMaxMib', 'Size in MiB that FILE and FILE.1 of --actorlet-record have together at most.'],
  [
    'actorlet-record-inputs',
    'path',
    'recordInputs',
    'Folder (mode 0700) for what comes in, without secrets: actorctl replay runs the node again on it.',
  ],
  [
    'actorlet-record-inputs-max-mib',
    'int32',
    'recordInputsMaxMib',
    'Size in MiB of that folder. A recording that reaches it ends; the next start removes the oldest ones.',
  ],
  [
    'actorlet-record-inputs-private',
    'bool',
    'recordInputsPrivate',
    'Leave labels, annotations, ConfigMaps and logs out of these recordings, too.',
  ],
  [
    'actorlet-deaths-max',
    'int32',
    'deathsMax',
    'Bundles of facts about deaths of containers and pods that are kept below --root-dir, for actorctl deaths. 0: none.',
  ],
  ['actorlet-deaths-max-kib', 'int32', 'deathsMaxKib', 'Size in KiB that each of these bundles has at most.'],
  [
    'actorlet-deaths-log-lines',
    'int32',
    'deathsLogLines',
    "Last lines of the container's log that each of these bundles has at most. 0: none.",
  ],
  [
    'actorlet-deaths-stuck-after',
    'duration',
    'deathsStuckAfter',
    'How long a pod may be pulling, mounting or starting, or end later than its grace period, before it gets such a bundle.',
  ],
];

const specOf = ([name, type, flag, help, deprecated]: Row): FlagSpec => ({
  ...{ name, type, flag, help },
  ...(deprecated === undefined ? {} : { deprecated }),
});

export const NODE_FLAGS: readonly FlagSpec[] = [
  ...ROWS.map(specOf),
  ...OWN.map((row) => ({ ...specOf(row), own: true as const })),
  {
    name: 'seccomp-default',
    type: 'bool',
    cfg: 'seccompDefault',
    help: "Use the runtime's default seccomp profile for workloads that name none.",
  },
  {
    name: 'actorlet-admin-socket',
    type: 'path',
    flag: 'adminSocket',
    help: 'Unix socket (mode 0600) actorctl speaks to.',
    own: true,
    shownDefault: '<root-dir>/actorlet.sock',
  },
];
