/**
 * What a node is configured with: the command line's own flags, the KubeletConfiguration (kubelet.config.k8s.io/v1beta1)
 * with every default filled in, and the feature gates. Types only; boot builds them, everybody else reads them.
 *
 * Field names are those of v1beta1. Durations are numbers in milliseconds under the same name (fractions for what is
 * shorter). `null` stands for a pointer field that was left unset and for which "unset" has a meaning of its own.
 */

import type { KubeletConfigurationOf } from './schema.ts';

/** KubeletConfiguration v1beta1 with all defaults filled in. Fields, their meaning and their types: `config/schema.ts`. */
export interface KubeletConfiguration extends KubeletConfigurationOf {}
type Item<L> = L extends readonly (infer I)[] ? I : never;
/** A mark that repels pods without a toleration, which the node registers with (v1 Taint without timeAdded). */
export type ConfigTaint = Item<KubeletConfiguration['registerWithTaints']>;
export type LoggingConfig = KubeletConfiguration['logging'];
export type VModuleItem = Item<LoggingConfig['vmodule']>;
export type MemoryReservation = Item<KubeletConfiguration['reservedMemory']>;

/** What only the command line can say. Paths are absolute (against the working directory) where they are not ''. */
export interface KubeletFlags {
  config: string;
  configDir: string;
  /** '' = standalone mode. */
  kubeconfig: string;
  bootstrapKubeconfig: string;
  hostnameOverride: string;
  /** None, one, or a dual-stack pair. */
  nodeIPs: readonly string[];
  certDir: string;
  rootDir: string;
  nodeLabels: Readonly<Record<string, string>>;
  lockFile: string;
  exitOnLockContention: boolean;
  runtimeCgroups: string;
  podInfraContainerImage: string;
  imageCredentialProviderConfig: string;
  imageCredentialProviderBinDir: string;
  cloudProvider: string;
  cloudConfig: string;
  /** Milliseconds a dead container is kept before it may be collected. */
  minimumContainerTTLDuration: number;
  maximumDeadContainersPerContainer: number;
  /** Negative = unlimited. */
  maximumDeadContainers: number;
  registerSchedulable: boolean;
  experimentalMounterPath: string;
  experimentalAllocatableIgnoreEviction: boolean;
  /** Our own: path of the admin socket; default `<root-dir>/actorlet.sock`. */
  adminSocket: string;
  /** Our own: allows `actorctl inject`. */
  faultInjection: boolean;
  /** Our own: `HOST:PORT` of the inspection page; '' for none. */
  inspect: string;
  /** Our own: the inspection page may restart and delete pods. */
  inspectActions: boolean;
  /** Our own: file of the recording; '' for none. */
  record: string;
  /** Our own: MiB of the recording's two segments together. */
  recordMaxMib: number;
  /** Our own: folder of the recordings of inputs; '' for none. */
  recordInputs: string;
  /** Our own: MiB of that folder. */
  recordInputsMaxMib: number;
  /** Our own: labels, annotations, ConfigMaps and logs are left out of them. */
  recordInputsPrivate: boolean;
  /** Our own: bundles of facts about deaths that are kept; 0 for none. */
  deathsMax: number;
  /** Our own: KiB of each. */
  deathsMaxKib: number;
  /** Our own: lines of a container's log in each; 0 for none. */
  deathsLogLines: number;
  /** Our own: milliseconds after which a pod that does not get on is one. */
  deathsStuckAfter: number;
}

export interface FeatureGates {
  /** The effective value. Throws on a name that is not registered: that is a programming error. */
  enabled(name: string): boolean;
  /** Every registered gate with its effective value, sorted by name; for the metric `kubernetes_feature_enabled`. */
  list(): readonly GateState[];
}
/** Stage as the reference names it; GA is the empty stage in some of its output, here it is spelled out. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';
export interface GateState {
  name: string;
  stage: GateStage;
  enabled: boolean;
  default: boolean;
  locked: boolean;
}

/** Everything `createNode` is told. Never changed after boot. */
export interface NodeConfig {
  readonly flags: Readonly<KubeletFlags>;
  readonly config: Readonly<KubeletConfiguration>;
  readonly gates: FeatureGates;
}
