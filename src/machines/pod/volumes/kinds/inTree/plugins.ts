/**
 * Volumes of plugins that the kubelet once had, and the CSI drivers that took their place. What a volume comes to is what the
 * reference's translation gives; its answers are in `test/machines/sources/inTree.json`. Pure.
 */

import { own } from '../../../../data/own.ts';
import { type Built, built, refused } from '../../../../result.ts';
import { textOf } from '../../../../shape/lenient.ts';
import { type Topology, zoneLabel, zonesOf } from './topology.ts';

type Fields = Record<string, unknown>;

/** What stands beside a volume's own fields. */
interface Beside {
  /** Name of the volume in the pod, or of the PersistentVolume. */
  name: string;
  /** Namespace of the pod, or of the claim; '' = the PersistentVolume has none. */
  namespace: string;
  /** Labels of the PersistentVolume. */
  labels: Fields;
  annotations: Fields;
  /** It stands in a pod. */
  inline: boolean;
}

export interface InTreePlugin {
  /** In a pod's volume, and in the specification of a PersistentVolume. */
  readonly field: string;
  /** As the annotation of CSINode names it. */
  readonly plugin: string;
  readonly driver: string;
  /** Fields of its volumes in a pod. */
  readonly fields: readonly string[];
  /** Labels by which its PersistentVolumes are placed. Absent: they stay as they are. */
  readonly topology?: Topology;
  /** A secret of the API is needed to use it. */
  readonly fromApi?: true;
  /** Gives a volume in a pod what the API server would. In place. */
  defaults?(content: Fields): void;
  /** `csi` of a PersistentVolume, without the driver. */
  csi(content: Fields, beside: Beside): Built<Fields>;
  /** Name of the PersistentVolume that a volume in a pod comes to. Absent: `DRIVER-HANDLE`. */
  inlineName?(content: Fields, handle: string): string;
  /** Access mode of a volume in a pod. Absent: ReadWriteOnce. */
  inlineMode?(content: Fields): string;
  /** In place of the access modes of a PersistentVolume. */
  accessModes?(modes: readonly unknown[]): readonly string[];
}

const readOnlyMode = ({ readOnly }: Fields): string => (readOnly === true ? 'ReadOnlyMany' : 'ReadWriteOnce');
const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** `aws://ZONE/vol-ID`, `aws:///vol-ID`; anything else is the id itself. */
function ebsVolumeId(id: string): Built<string> {
  if (!id.startsWith('aws://')) return built(id);
  const because = (why: string) => refused(`failed to translate Kubernetes ID to EBS Volume ID ${why}`);
  const [, authority = '', path = ''] = /^aws:\/\/([^/?#]*)([^?#]*)/.exec(id) ?? [];
  let volume: string;
  try {
    volume = decodeURIComponent(path).replace(/^\/+|\/+$/g, '');
  } catch {
    return because(`Invalid disk name (${id}): it has an invalid URL escape`);
  }
  if (/[\s\\^`{}|%]/.test(authority) || /:(?!\d*$)/.test(authority) || [...id].some((c) => c < ' ' || c === '\x7f')) {
    return because(`Invalid disk name (${id}): it is not a URL`);
  }
  return /^vol-[^/]*$/.test(volume) ? built(volume) : because(`Invalid format for AWS volume (${id})`);
}

const awsEbs: InTreePlugin = {
  field: 'awsElasticBlockStore',
  plugin: 'kubernetes.io/aws-ebs',
  driver: 'ebs.csi.aws.com',
  fields: ['volumeID', 'fsType', 'partition', 'readOnly'],
  topology: { zone: 'topology.ebs.csi.aws.com/zone' },
  csi({ volumeID, readOnly, fsType, partition }) {
    const id = ebsVolumeId(textOf(volumeID));
    if (!id.ok) return id;
    return built({ volumeHandle: id.value, readOnly, fsType, volumeAttributes: { partition: String(numberOf(partition)) } });
  },
};

const UNSPECIFIED = 'UNSPECIFIED';
/** Handle of a disk whose project is not known. */
function gceVolumeId(disk: string, labels: Fields): Built<string> {
  const [first = '', ...more] = zonesOf(zoneLabel(labels));
  const named = (where: string) => built(`projects/${UNSPECIFIED}/${where}/disks/${disk}`);
  if (more.length === 0) return named(`zones/${first || UNSPECIFIED}`);
  const regions = new Set<string>();
  for (const zone of [first, ...more]) {
    const parts = zone.split('-');
    if (parts.length !== 3) {
      return refused(`failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: ${zone}`);
    }
    regions.add(parts.slice(0, 2).join('-'));
  }
  const [region] = regions;
  if (regions.size !== 1) {
    const found = [...regions].sort().map((r) => `${r}:{}`);
    return refused(`failed to get region from zones: multiple or no regions gotten from zones, got: map[${found.join(' ')}]`);
  }
  return named(`regions/${region}`);
}

const GCE_DRIVER = 'pd.csi.storage.gke.io';
const gcePd: InTreePlugin = {
  field: 'gcePersistentDisk',
  plugin: 'kubernetes.io/gce-pd',
  driver: GCE_DRIVER,
  fields: ['pdName', 'fsType', 'partition', 'readOnly'],
  topology: { zone: 'topology.gke.io/zone' },
  csi({ pdName, readOnly, fsType, partition }, { labels }) {
    const id = gceVolumeId(textOf(pdName), labels);
    if (!id.ok) return id;
    const at = numberOf(partition);
    return built({ volumeHandle: id.value, readOnly, fsType, volumeAttributes: { partition: at === 0 ? '' : String(at) } });
  },
  inlineMode: readOnlyMode,
  inlineName: ({ pdName }) => `${GCE_DRIVER}-${textOf(pdName)}`,
  // The old plugin attached a disk to one node whatever its modes said, and the driver refuses what it cannot do.
  accessModes: (modes) => {
    const writes = modes.includes('ReadWriteOnce') || modes.includes('ReadWriteMany');
    return [!writes && modes.includes('ReadOnlyMany') ? 'ReadOnlyMany' : 'ReadWriteOnce'];
  },
};

const MANAGED = 'Managed';
const azureDisk: InTreePlugin = {
  field: 'azureDisk',
  plugin: 'kubernetes.io/azure-disk',
  driver: 'disk.csi.azure.com',
  inlineName: (_, handle) => handle,
  fields: ['diskName', 'diskURI', 'cachingMode', 'fsType', 'readOnly', 'kind'],
  defaults: (content) => {
    content.cachingMode ??= 'ReadWrite';
    content.kind ??= 'Shared';
    content.fsType ??= 'ext4';
    content.readOnly ??= false;
  },
  csi({ diskURI, cachingMode, fsType, readOnly, kind }, { inline }) {
    if (typeof kind === 'string' && kind.toLowerCase() !== MANAGED.toLowerCase()) {
      return refused(`kind(${kind}) is not supported in csi migration`);
    }
    const cached = typeof cachingMode === 'string' && !(inline && cachingMode === '');
    const volumeAttributes = {
      kind: MANAGED,
      ...(cached ? { cachingmode: cachingMode } : {}),
      ...(typeof fsType === 'string' ? { fstype: fsType } : {}),
    };
    return built({ volumeHandle: textOf(diskURI), readOnly, fsType, volumeAttributes });
  },
};

const azureFile: InTreePlugin = {
  field: 'azureFile',
  plugin: 'kubernetes.io/azure-file',
  driver: 'file.csi.azure.com',
  inlineName: (_, handle) => handle,
  fields: ['secretName', 'shareName', 'readOnly'],
  fromApi: true,
  csi({ secretName, shareName, secretNamespace, readOnly }, { name, namespace: besides, annotations, inline }) {
    const [secret, share] = [textOf(secretName), textOf(shareName)];
    const namespace = !inline && typeof secretNamespace === 'string' ? secretNamespace : besides;
    if (namespace === '') return refused('could not find a secret namespace in PersistentVolumeSource or ClaimRef');
    const account = /azure-storage-account-([^\n]+)-secret/.exec(secret)?.[1] ?? secret;
    const group = textOf(own(annotations, 'kubernetes.io/azure-file-resource-group'));
    return built({
      volumeHandle: [group, account, share, name, namespace].join('#'),
      readOnly,
      volumeAttributes: { sharename: share },
      nodeStageSecretRef: { name: secret, namespace },
    });
  },
  inlineMode: () => 'ReadWriteMany',
};

const cinder: InTreePlugin = {
  field: 'cinder',
  plugin: 'kubernetes.io/cinder',
  driver: 'cinder.csi.openstack.org',
  fields: ['volumeID', 'fsType', 'readOnly', 'secretRef.name'],
  topology: { zone: 'topology.cinder.csi.openstack.org/zone' },
  csi: ({ volumeID, readOnly, fsType }) => built({ volumeHandle: textOf(volumeID), readOnly, fsType }),
};

const vsphere: InTreePlugin = {
  field: 'vsphereVolume',
  plugin: 'kubernetes.io/vsphere-volume',
  driver: 'csi.vsphere.vmware.com',
  fields: ['volumePath', 'fsType', 'storagePolicyName', 'storagePolicyID'],
  topology: { zone: 'topology.csi.vmware.com/zone', region: 'topology.csi.vmware.com/region' },
  csi({ volumePath, fsType, storagePolicyName }) {
    const policy = textOf(storagePolicyName);
    return built({ volumeHandle: textOf(volumePath), fsType, volumeAttributes: policy === '' ? {} : { storagepolicyname: policy } });
  },
};

const portworx: InTreePlugin = {
  field: 'portworxVolume',
  plugin: 'kubernetes.io/portworx-volume',
  driver: 'pxd.portworx.com',
  fields: ['volumeID', 'fsType', 'readOnly'],
  csi({ volumeID, fsType }, { annotations }) {
    const [name, namespace] = ['name', 'namespace'].map((part) => own(annotations, `openstorage.io/auth-secret-${part}`));
    const csi = { volumeHandle: textOf(volumeID), fsType };
    if (typeof name !== 'string' || typeof namespace !== 'string') return built(csi);
    const ref = { name, namespace };
    const calls = ['controllerPublish', 'nodeStage', 'nodePublish', 'controllerExpand', 'nodeExpand'];
    return built({ ...csi, ...Object.fromEntries(calls.map((call) => [`${call}SecretRef`, ref])) });
  },
  inlineMode: readOnlyMode,
};

export const IN_TREE_PLUGINS: readonly InTreePlugin[] = [awsEbs, gcePd, azureDisk, azureFile, cinder, vsphere, portworx];
