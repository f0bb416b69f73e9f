/** Volumes of CSI drivers of every sort, each with a driver, a pod and a claim of its own: what a node agent is asked to do with them. */
import type { PodSpec } from '../../../src/machines/kube/podTable.ts';

export interface CsiCase {
  capabilities?: readonly string[];
  /** `spec` of the CSIDriver object; null: the cluster has none. */
  rules?: object | null;
  /** Of the PersistentVolume, beside what every one has. */
  pv?: object;
  /** `csi` of the PersistentVolume. */
  source?: object;
  /** `csi` of a volume that stands in the pod. There is no claim then. */
  inline?: object;
  /** Of the claim in the pod. */
  readOnly?: boolean;
  /** A second volume of the pod names the same claim. */
  twice?: { readOnly?: true };
  pod?: Partial<PodSpec>;
  /** Codes that the first calls of a method are answered with; the last one is repeated with `forever`. */
  faults?: Readonly<Record<string, { codes: readonly number[]; forever?: boolean }>>;
  /** The pod does not start: what is waited for is this text in an event. */
  fails?: string;
  /** What the driver can do when it has come back, while the pod runs. */
  returns?: readonly string[];
  /** Plugin of the cloud that the driver took the place of: the PersistentVolume names that. */
  inTree?: { driver: string; source: object };
  growth?: Growth;
  /** The driver is asked how full the volume is. */
  stats?: true;
}
export interface Growth {
  /** Sizes that the user asks for and the controller grants, in turn. */
  sizes: readonly string[];
  /** The controller is done before there is a pod. */
  beforePod?: true;
  /** Text of an event, or in the status of the claim, that ends the wait for a size that is not reached. */
  fails?: readonly (string | null)[];
}

export const STAGE_UNSTAGE = 'STAGE_UNSTAGE_VOLUME';
const STAGE = STAGE_UNSTAGE;
const SEVERAL = 'SINGLE_NODE_MULTI_WRITER';
const GROUP = 'VOLUME_MOUNT_GROUP';
const EXPAND = 'EXPAND_VOLUME';
const STATS = ['GET_VOLUME_STATS', 'VOLUME_CONDITION'];
const modes = (...accessModes: string[]) => ({ accessModes });
const ext4 = { fsType: 'ext4' };
const BLOCK = { volumeMode: 'Block' };
export const FS_GROUP = 4321;
const group: Partial<PodSpec> = { securityContext: { fsGroup: FS_GROUP } };
const secrets = (...of: ('Stage' | 'Publish' | 'Expand')[]) =>
  Object.fromEntries(of.map((of) => [`node${of}SecretRef`, { name: of.toLowerCase(), namespace: 'default' }]));
const INLINE = { volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
const TOKENS = { tokenRequests: [{ audience: 'a' }, { audience: '' }] };
const grows = (sizes: string[], more: Partial<Growth> = {}): Growth => ({ sizes, ...more });

export const CASES: Readonly<Record<string, CsiCase>> = {
  plain: {},
  'no-object': { rules: null, capabilities: [STAGE], source: ext4 },
  staged: {
    capabilities: [STAGE],
    source: { ...ext4, volumeAttributes: { tier: 'gold' } },
    pv: { mountOptions: ['noatime', 'nodiratime'] },
  },
  secrets: {
    ...{ capabilities: [STAGE], source: secrets('Stage', 'Publish', 'Expand'), readOnly: true },
    rules: { podInfoOnMount: true },
  },
  'secrets-unstaged': { source: secrets('Stage', 'Publish') },
  tokens: { capabilities: [STAGE], rules: TOKENS, source: { volumeAttributes: { tier: 'gold' } } },
  'tokens-secret': { rules: { ...TOKENS, serviceAccountTokenInSecrets: true }, source: secrets('Publish') },
  attached: { capabilities: [STAGE], rules: { attachRequired: true } },
  'attached-unstaged': { rules: { attachRequired: true } },

  block: { pv: BLOCK, source: secrets('Stage', 'Publish') },
  'block-staged': {
    ...{ capabilities: [STAGE], rules: { ...TOKENS, podInfoOnMount: true }, source: secrets('Stage', 'Publish'), pod: group },
    pv: { ...BLOCK, mountOptions: ['noatime'] },
  },
  'block-attached': { capabilities: [STAGE, SEVERAL, GROUP], rules: { attachRequired: true }, pv: BLOCK, readOnly: true },

  twice: { capabilities: [STAGE], rules: { podInfoOnMount: true }, twice: {} },
  'twice-first-read-only': { readOnly: true, twice: {} },
  'twice-last-read-only': { twice: { readOnly: true } },
  'twice-block': { capabilities: [STAGE], pv: BLOCK, twice: {} },
  'twice-grows': { capabilities: [STAGE, EXPAND], twice: {}, growth: grows(['32Mi']) },
  'twice-fails': { capabilities: [STAGE], twice: {}, faults: { NodePublishVolume: { codes: [13] } } },

  rox: { pv: modes('ReadOnlyMany'), capabilities: [STAGE] },
  rwx: { pv: modes('ReadWriteMany'), capabilities: [STAGE] },
  rwop: { pv: modes('ReadWriteOncePod'), capabilities: [STAGE] },
  'several-rwo': { capabilities: [STAGE, SEVERAL] },
  'several-rox': { pv: modes('ReadOnlyMany', 'ReadWriteOnce'), capabilities: [STAGE, SEVERAL] },
  'several-rwx': { pv: modes('ReadWriteMany'), capabilities: [STAGE, SEVERAL] },
  'several-rwop': { pv: modes('ReadWriteOncePod'), capabilities: [STAGE, SEVERAL] },

  'group-rwo': { source: ext4, pod: group },
  'group-rwop': { source: ext4, pod: group, pv: modes('ReadWriteOncePod') },
  'group-rwx': { source: ext4, pod: group, pv: modes('ReadWriteMany') },
  'group-mixed': { source: ext4, pod: group, pv: modes('ReadWriteMany', 'ReadWriteOnce') },
  'group-no-type': { pod: group },
  'group-read-only': { source: ext4, pod: group, readOnly: true, rules: { fsGroupPolicy: 'File' } },
  'group-file': { pod: group, pv: modes('ReadWriteMany'), rules: { fsGroupPolicy: 'File' } },
  'group-none': { source: ext4, pod: group, rules: { fsGroupPolicy: 'None' } },
  'group-driver': { source: ext4, pod: group, capabilities: [STAGE, GROUP] },
  'group-driver-none': { pod: group, capabilities: [STAGE, GROUP], rules: { fsGroupPolicy: 'None' } },
  'group-inline': { inline: ext4, pod: group, rules: INLINE },
  'group-inline-no-type': { inline: {}, pod: group, rules: INLINE },
  'group-inline-driver': { inline: {}, pod: group, rules: INLINE, capabilities: [STAGE, GROUP] },

  inline: {
    rules: { ...INLINE, ...TOKENS, podInfoOnMount: true, attachRequired: true },
    ...{ capabilities: [STAGE, SEVERAL] },
    inline: { ...ext4, readOnly: true, volumeAttributes: { tier: 'gold' }, nodePublishSecretRef: { name: 'publish' } },
  },
  'inline-no-object': { rules: null, inline: {}, fails: 'not supported by driver' },
  'inline-persistent': { inline: {}, fails: 'not supported by driver' },
  'ephemeral-only': { rules: { volumeLifecycleModes: ['Ephemeral'] }, fails: 'not supported by driver' },

  'stage-fails': { capabilities: [STAGE], faults: { NodeStageVolume: { codes: [13] } } },
  'stage-unsure': { capabilities: [STAGE], faults: { NodeStageVolume: { codes: [4] } } },
  'publish-fails': { capabilities: [STAGE], faults: { NodePublishVolume: { codes: [13] } } },
  'publish-unsure': { capabilities: [STAGE], faults: { NodePublishVolume: { codes: [10] } } },
  'stage-never': { capabilities: [STAGE], faults: { NodeStageVolume: { codes: [13], forever: true } }, fails: 'code = Internal' },
  'stage-never-unsure': {
    capabilities: [STAGE],
    faults: { NodeStageVolume: { codes: [4], forever: true } },
    fails: 'code = DeadlineExceeded',
  },
  'publish-never': { capabilities: [STAGE], faults: { NodePublishVolume: { codes: [13], forever: true } }, fails: 'code = Internal' },
  'publish-never-unsure': {
    capabilities: [STAGE],
    faults: { NodePublishVolume: { codes: [14], forever: true } },
    fails: 'code = Unavailable',
  },
  'unstage-fails': { capabilities: [STAGE], faults: { NodeUnstageVolume: { codes: [13] } } },
  'unpublish-fails': { capabilities: [STAGE], faults: { NodeUnpublishVolume: { codes: [13] } } },

  'gains-staging': { returns: [STAGE] },
  'loses-staging': { capabilities: [STAGE], returns: [] },

  migrated: {
    capabilities: [STAGE, EXPAND],
    inTree: { driver: 'ebs.csi.aws.com', source: { awsElasticBlockStore: { volumeID: 'vol-migrated', fsType: 'ext4' } } },
    growth: grows(['32Mi']),
  },
  stats: { capabilities: [STAGE, ...STATS], stats: true },
  'stats-block': { capabilities: STATS, pv: BLOCK, stats: true },

  grows: {
    capabilities: [STAGE, EXPAND],
    source: { ...ext4, ...secrets('Expand') },
    pv: { mountOptions: ['noatime'] },
    growth: grows(['32Mi', '48Mi']),
  },
  'grows-unstaged': { capabilities: [EXPAND], pv: modes('ReadWriteMany'), growth: grows(['32Mi']) },
  'grows-rwop': { capabilities: [EXPAND, SEVERAL, GROUP], pv: modes('ReadWriteOncePod'), pod: group, growth: grows(['32Mi']) },
  'grows-block': { capabilities: [STAGE, EXPAND], pv: BLOCK, growth: grows(['32Mi']) },
  'grows-block-unstaged': { capabilities: [EXPAND], pv: BLOCK, growth: grows(['32Mi']) },
  'grows-at-mount': { capabilities: [STAGE, EXPAND], growth: grows(['32Mi'], { beforePod: true }) },
  'grows-block-at-mount': { capabilities: [STAGE, EXPAND], pv: BLOCK, growth: grows(['32Mi'], { beforePod: true }) },
  'cannot-grow': { capabilities: [STAGE], growth: grows(['32Mi'], { fails: ['VolumeResizeFailed'] }) },
  'growth-fails': { capabilities: [EXPAND], faults: { NodeExpandVolume: { codes: [13] } }, growth: grows(['32Mi']) },
  'growth-unsure': { capabilities: [EXPAND], faults: { NodeExpandVolume: { codes: [4] } }, growth: grows(['32Mi']) },
  'growth-in-use': {
    ...{ capabilities: [EXPAND], faults: { NodeExpandVolume: { codes: [9], forever: true } } },
    growth: grows(['32Mi'], { fails: ['NodeResizeError'] }),
  },
  'growth-recovers': {
    ...{ capabilities: [EXPAND], faults: { NodeExpandVolume: { codes: [11] } } },
    growth: grows(['64Mi', '32Mi'], { fails: ['VolumeResizeFailed', null] }),
  },
  'growth-never-at-mount': {
    ...{ capabilities: [EXPAND], faults: { NodeExpandVolume: { codes: [13], forever: true } }, fails: 'code = Internal' },
    growth: grows(['32Mi'], { beforePod: true }),
  },
};

export function isBlock(of: CsiCase): boolean {
  return (of.pv as { volumeMode?: string } | undefined)?.volumeMode === 'Block';
}

/** Volumes of the pod of a case, and what its container does with them. */
export function volumesOf(name: string, of: CsiCase, driver: string): { volumes: { name: string }[]; uses: object } {
  const claim = (readOnly: boolean | undefined) => ({
    persistentVolumeClaim: { claimName: name, ...(readOnly === true ? { readOnly } : {}) },
  });
  const disk = { name: 'disk', ...(of.inline === undefined ? claim(of.readOnly) : { csi: { driver, ...of.inline } }) };
  const volumes = [disk, ...(of.twice === undefined ? [] : [{ name: 'again', ...claim(of.twice.readOnly) }])];
  const at = (folder: string) => (v: { name: string }) => `${folder}/${v.name === 'disk' ? 'data' : v.name}`;
  const uses = isBlock(of)
    ? { volumeDevices: volumes.map((v) => ({ name: v.name, devicePath: at('/dev')(v) })) }
    : { volumeMounts: volumes.map((v) => ({ name: v.name, mountPath: at('')(v) })) };
  return { volumes, uses };
}
