/** Volumes of CSI drivers (resources and volumes 8.17, 10), a row for each case of the specification's tables. */
import { csiNodeUpdate, newCsiNode, nodeMetadataPatch, renewals } from '../../../../src/machines/api/csiNodeMachine.ts';
import { pathName } from '../../../../src/machines/pod/pathName.ts';
import { type CsiVolume, inlineCsi } from '../../../../src/machines/pod/volumes/kinds/csi.ts';
import { MIGRATED_PLUGINS } from '../../../../src/machines/pod/volumes/kinds/inTree/inTree.ts';
import type { CsiDriver } from '../../../../src/machines/services/plugins/messages.ts';
import { admitDriver, csiVersion, describeDriver, type Names } from '../../../../src/machines/services/plugins/rules.ts';
import { decodeVolumeData, encodeVolumeData } from '../../../../src/machines/services/volumes/csi/data.ts';
import { attachmentOf, driverRules, NO_DRIVER_OBJECT } from '../../../../src/machines/services/volumes/csi/driver.ts';
import {
  accessMode,
  groupApplies,
  isFinal,
  lifecycleRefusal,
  podContext,
  uniqueName,
  volumeCapability,
} from '../../../../src/machines/services/volumes/csi/volume.ts';
import type { PluginInfo } from '../../../../src/machines/wire/csi.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const dueShown = ({ now, due }: ReturnType<typeof renewals>) => ({ now, due: Object.fromEntries(due) });
const VOLUME: CsiVolume = {
  driver: pathName('d.example.com'),
  handle: 'h',
  lifecycle: 'Persistent',
  readOnly: false,
  fsType: 'ext4',
  attributes: { a: 'b' },
  mountOptions: ['noatime'],
  accessModes: ['ReadWriteOnce'],
  stageSecret: null,
  publishSecret: null,
  expandSecret: null,
  block: false,
};
const INLINE: CsiVolume = { ...VOLUME, lifecycle: 'Ephemeral', accessModes: [] };
const SEVERAL = new Set(['SINGLE_NODE_MULTI_WRITER']);
const NONE = new Set<string>();
const rules = (spec: object = {}) => driverRules({ spec });
const mode = (accessModes: string[], capabilities = NONE) => accessMode({ accessModes }, capabilities);
const group = (policy: string | undefined, v: Partial<CsiVolume> = {}, gid: number | undefined = 7) =>
  groupApplies({ ...VOLUME, ...v }, rules(policy === undefined ? {} : { fsGroupPolicy: policy }), gid);
const POD = pod({ containers: [container('main')], serviceAccountName: 'robot' });
const PLACES = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, '']));
const PLACED = { nodeId: 'i-1', maxVolumesPerNode: '9' };
const WHO = { name: 'd.example.com', socket: '/s', endpoint: '/s', version: '1.0.0' };
const DRIVER: CsiDriver = { ...WHO, nodeId: 'i-1', volumesMax: 3, topology: { zone: 'z1' } };
const plugin = (over: Partial<PluginInfo> = {}, names: Names = new Map()) =>
  admitDriver({ type: 'CSIPlugin', name: 'd.example.com', endpoint: '', supportedVersions: ['1.2.0'], ...over }, '/s', names);
const taken = (version: string, socket = '/other') => new Map([['d.example.com', { socket, version }]]);
const node = { name: 'n1', uid: 'u1' };
const told = (o: { drivers?: CsiDriver[]; gone?: string[] }) => ({ node, drivers: o.drivers ?? [], gone: new Set(o.gone) });
const ANNOTATION = 'storage.alpha.kubernetes.io/migrated-plugins';
/** In another order than ours. */
const PLUGINS = [...MIGRATED_PLUGINS].reverse().join(',');
const existing = (...drivers: object[]) => ({ metadata: { name: 'n1', annotations: { [ANNOTATION]: PLUGINS } }, spec: { drivers } });
const ENTRY = { name: 'd.example.com', nodeID: 'i-1', topologyKeys: ['zone'], allocatable: { count: 3 } };
const DATA = {
  driver: pathName('d'),
  handle: 'h',
  specName: 'disk',
  nodeName: 'n1',
  attachmentId: 'csi-1',
  lifecycle: 'Persistent' as const,
  attached: true,
  context: '',
  block: false,
};

const ROWS: Record<string, () => unknown> = {
  'mode: none': () => mode([]),
  'mode: ReadWriteOnce': () => mode(['ReadWriteOnce']),
  'mode: ReadOnlyMany': () => mode(['ReadOnlyMany']),
  'mode: ReadWriteMany': () => mode(['ReadWriteMany']),
  'mode: ReadWriteOncePod': () => mode(['ReadWriteOncePod']),
  'mode: ReadWriteOnce, several writers': () => mode(['ReadWriteOnce'], SEVERAL),
  'mode: ReadWriteOncePod, several writers': () => mode(['ReadWriteOncePod'], SEVERAL),
  'mode: the first of several': () => mode(['ReadOnlyMany', 'ReadWriteOnce']),
  'mode: unknown': () => mode(['Whatever']),
  'capability: a mount': () => volumeCapability(VOLUME, { mode: 'SINGLE_NODE_WRITER', group: '7' }),
  'capability: a device': () => volumeCapability({ ...VOLUME, block: true }, { mode: 'SINGLE_NODE_WRITER', group: '' }),
  'group: None': () => group('None'),
  'group: File': () => group('File'),
  'group: File, read-only': () => group('File', { readOnly: true }),
  'group: File, without a group': () => groupApplies(VOLUME, rules({ fsGroupPolicy: 'File' }), undefined),
  'group: by default': () => group(undefined),
  'group: by default, without a file system type': () => group(undefined, { fsType: '' }),
  'group: by default, ReadWriteMany': () => group(undefined, { accessModes: ['ReadWriteMany'] }),
  'group: by default, ReadWriteOncePod': () => group(undefined, { accessModes: ['ReadWriteOncePod'] }),
  'group: by default, inline': () => group(undefined, { lifecycle: 'Ephemeral', accessModes: [] }),
  'group: by default, read-only': () => group(undefined, { readOnly: true }),
  'group: a device': () => group('File', { block: true }),
  'codes: those after which a call may go on': () => Array.from({ length: 17 }, (_, code) => code).filter((code) => !isFinal(code)),
  'driver: no object': () => NO_DRIVER_OBJECT,
  'driver: as the API server completes it': () =>
    rules({ attachRequired: true, podInfoOnMount: false, volumeLifecycleModes: ['Persistent'] }),
  'driver: all that it may say': () =>
    rules({
      attachRequired: false,
      podInfoOnMount: true,
      fsGroupPolicy: 'File',
      volumeLifecycleModes: ['Ephemeral'],
      requiresRepublish: true,
      tokenRequests: [{ audience: 'a', expirationSeconds: 600 }, { audience: '' }],
      serviceAccountTokenInSecrets: true,
    }),
  'lifecycle: inline, no object': () => lifecycleRefusal(INLINE, NO_DRIVER_OBJECT),
  'lifecycle: inline, for persistent ones': () => lifecycleRefusal(INLINE, rules()),
  'lifecycle: inline, for both': () => lifecycleRefusal(INLINE, rules({ volumeLifecycleModes: ['Persistent', 'Ephemeral'] })),
  'lifecycle: persistent, for inline ones': () => lifecycleRefusal(VOLUME, rules({ volumeLifecycleModes: ['Ephemeral'] })),
  'context: without the pod': () => podContext(VOLUME, POD, rules()),
  'context: with the pod': () => podContext(VOLUME, POD, rules({ podInfoOnMount: true })),
  'context: with the pod, inline': () => podContext(INLINE, POD, rules({ podInfoOnMount: true })),
  'inline: all that it may say': () =>
    inlineCsi({ driver: 'd', readOnly: true, fsType: 'xfs', volumeAttributes: { a: 'b' }, nodePublishSecretRef: { name: 's' } }),
  'inline: no driver': () => inlineCsi({}),
  'attachment: attached': () => attachmentOf({ status: { attached: true, attachmentMetadata: { device: '/dev/vdb' } } }, 'h'),
  'attachment: not yet': () => attachmentOf({ status: { attached: false } }, 'h'),
  'attachment: failed': () => attachmentOf({ status: { attached: false, attachError: { message: 'no room' } } }, 'h'),
  'attachment: going': () => attachmentOf({ metadata: { deletionTimestamp: 'x' }, status: { attached: true } }, 'h'),
  'names: as the attacher calls it': () => uniqueName(VOLUME),
  'data: written': () => JSON.parse(encodeVolumeData(DATA)) as unknown,
  'data: read': () => decodeVolumeData(encodeVolumeData(DATA)),
  'data: of another agent': () =>
    decodeVolumeData('{"driverName":"d","volumeHandle":"h","specVolID":"pv","volumeLifecycleMode":"Persistent"}'),
  'data: of another agent, inline': () => decodeVolumeData('{"driverName":"d","volumeHandle":"h","volumeLifecycleMode":"Ephemeral"}'),
  'data: torn': () => decodeVolumeData('{"driverName":"d","vol'),
  'data: of nothing': () => decodeVolumeData('{}'),
  'versions: one': () => csiVersion(['1.0.0']),
  'versions: the highest': () => csiVersion(['0.3.0', 'v1.10.0', '1.9.0']),
  'versions: a later major left out': () => csiVersion(['2.0.0', '1.1.0']),
  'versions: none': () => csiVersion([]),
  'versions: old ones': () => csiVersion(['0.2.0', '0.3.0']),
  'versions: none that can be read': () => csiVersion(['one']),
  'plugin: free': () => plugin(),
  'plugin: with an endpoint': () => plugin({ endpoint: '/run/csi.sock' }),
  'plugin: of another type': () => plugin({ type: 'DevicePlugin' }),
  'plugin: without a good name': () => plugin({ name: '../d' }),
  'plugin: a name that is taken, equal version': () => plugin({}, taken('1.2.0')),
  'plugin: a name that is taken, lower version': () => plugin({}, taken('1.3.0')),
  'plugin: a name that is taken, higher version': () => plugin({}, taken('1.1.9')),
  'plugin: again through its own socket': () => plugin({}, taken('1.2.0', '/s')),
  'node: as it is told': () => describeDriver(WHO, { nodeId: 'i-1', maxVolumesPerNode: '0', accessibleTopology: null }),
  'node: with a limit and a place': () => describeDriver(WHO, { ...PLACED, accessibleTopology: { segments: { zone: 'z1' } } }),
  'plugin: a name with an empty part': () => plugin({ name: 'a..b' }),
  'node: too long an id': () => describeDriver(WHO, { nodeId: 'ä'.repeat(129), maxVolumesPerNode: '0' }),
  'node: what is no label': () => describeDriver(WHO, { ...PLACED, accessibleTopology: { segments: { zone: 'a b\n' } } }),
  'node: too many places': () => describeDriver(WHO, { ...PLACED, accessibleTopology: { segments: PLACES } }),
  'node: without an id': () => describeDriver(WHO, { nodeId: '', maxVolumesPerNode: '0' }),
  'CSINode: made': () => newCsiNode(told({ drivers: [DRIVER] })),
  'CSINode: as it should be': () => csiNodeUpdate(existing(ENTRY), told({ drivers: [DRIVER] })),
  'CSINode: topology keys that are no strings are replaced': () =>
    csiNodeUpdate(
      existing({ name: DRIVER.name, nodeID: DRIVER.nodeId, topologyKeys: [{ toString: '' }, 'a'] }),
      told({ drivers: [DRIVER] }),
    ),
  'CSINode: without the annotation of old plugins': () => csiNodeUpdate({ metadata: { name: 'n1' }, spec: { drivers: [] } }, told({})),
  'CSINode: one more': () => csiNodeUpdate(existing({ name: 'other', nodeID: 'o', topologyKeys: null }), told({ drivers: [DRIVER] })),
  'CSINode: one gone': () => csiNodeUpdate(existing(ENTRY), told({ gone: ['d.example.com'] })),
  'CSINode: one that this daemon never knew stays': () => csiNodeUpdate(existing(ENTRY), told({})),
  'CSINode: another count of volumes': () => csiNodeUpdate(existing({ ...ENTRY, allocatable: { count: 1 } }), told({ drivers: [DRIVER] })),
  'CSINode: another count of volumes, on a server that lets no entry be changed': () =>
    csiNodeUpdate(existing({ ...ENTRY, allocatable: { count: 1 } }), { ...told({ drivers: [DRIVER] }), inPlace: false }),
  'renewals: at first none is due': () => dueShown(renewals(new Map(), new Map([['d', 60_000]]), 1_000)),
  'renewals: one is due': () => dueShown(renewals(new Map([['d', 1_000]]), new Map([['d', 60_000]]), 1_000)),
  'renewals: a shorter period counts at once': () => dueShown(renewals(new Map([['d', 600_000]]), new Map([['d', 60_000]]), 1_000)),
  'renewals: one whose period went is forgotten': () => dueShown(renewals(new Map([['d', 1_000]]), new Map(), 1_000)),
  'attachment: no room': () => attachmentOf({ status: { attached: false, attachError: { message: 'no room', errorCode: 8 } } }, 'h'),
  'CSINode: another id goes before it comes': () => csiNodeUpdate(existing({ ...ENTRY, nodeID: 'i-0' }), told({ drivers: [DRIVER] })),
  'Node: annotation and labels': () => nodeMetadataPatch({}, told({ drivers: [DRIVER] })),
  'Node: as it should be': () =>
    nodeMetadataPatch(
      { annotations: { 'csi.volume.kubernetes.io/nodeid': '{"d.example.com":"i-1"}' }, labels: { zone: 'z1' } },
      told({ drivers: [DRIVER] }),
    ),
  'Node: a label that says something else': () => nodeMetadataPatch({ labels: { zone: 'z9' } }, told({ drivers: [DRIVER] })),
  'Node: the last one gone': () =>
    nodeMetadataPatch({ annotations: { 'csi.volume.kubernetes.io/nodeid': '{"d.example.com":"i-1"}' } }, told({ gone: ['d.example.com'] })),
};

goldenTable('volumes of CSI drivers', 'volumes/csi', ROWS);
