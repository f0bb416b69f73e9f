/** What is said to plugins beside this node, in the JSON shape in which `proto/csi` and `proto/pluginregistration` are read. Pure. */

export interface PluginInfo {
  type: string;
  name: string;
  /** '' = the socket it was asked on. */
  endpoint: string;
  supportedVersions: string[];
}

export type AccessMode =
  | 'SINGLE_NODE_WRITER'
  | 'MULTI_NODE_READER_ONLY'
  | 'MULTI_NODE_MULTI_WRITER'
  | 'SINGLE_NODE_SINGLE_WRITER'
  | 'SINGLE_NODE_MULTI_WRITER';
export type NodeCapability =
  | 'STAGE_UNSTAGE_VOLUME'
  | 'GET_VOLUME_STATS'
  | 'EXPAND_VOLUME'
  | 'VOLUME_CONDITION'
  | 'SINGLE_NODE_MULTI_WRITER'
  | 'VOLUME_MOUNT_GROUP';
export interface VolumeCapability {
  block?: Record<never, never>;
  mount?: { fsType: string; mountFlags: readonly string[]; volumeMountGroup: string };
  accessMode: { mode: AccessMode };
}
type Strings = Readonly<Record<string, string>>;

export interface StageRequest {
  volumeId: string;
  publishContext: Strings;
  stagingTargetPath: string;
  volumeCapability: VolumeCapability;
  /** Secret. */
  secrets: Strings;
  volumeContext: Strings;
}
export interface PublishRequest extends StageRequest {
  targetPath: string;
  readonly: boolean;
}

export interface CsiCalls {
  NodeGetInfo: {
    request: Record<never, never>;
    response: { nodeId: string; maxVolumesPerNode: string; accessibleTopology?: { segments: Strings } | null };
  };
  NodeGetCapabilities: { request: Record<never, never>; response: { capabilities: { rpc?: { type: string } | null }[] } };
  NodeStageVolume: { request: StageRequest; response: Record<never, never> };
  NodeUnstageVolume: { request: { volumeId: string; stagingTargetPath: string }; response: Record<never, never> };
  NodePublishVolume: { request: PublishRequest; response: Record<never, never> };
  NodeUnpublishVolume: { request: { volumeId: string; targetPath: string }; response: Record<never, never> };
  NodeExpandVolume: {
    request: {
      volumeId: string;
      /** Where it is published: a directory, or the device itself. */
      volumePath: string;
      /** Whole numbers as text. */
      capacityRange: { requiredBytes: string };
      /** '' = it is not staged. */
      stagingTargetPath: string;
      volumeCapability: VolumeCapability;
      /** Secret. */
      secrets: Strings;
    };
    response: { capacityBytes: string };
  };
  NodeGetVolumeStats: {
    request: { volumeId: string; volumePath: string; stagingTargetPath: string };
    response: {
      /** Whole numbers as text. */
      usage: { available: string; total: string; used: string; unit: string }[];
      volumeCondition?: { abnormal: boolean; message: string } | null;
    };
  };
}
export type CsiMethod = keyof CsiCalls;
export type CsiRequest<M extends CsiMethod> = CsiCalls[M]['request'];
export type CsiResponse<M extends CsiMethod> = CsiCalls[M]['response'];
