/** What a container is given of its volumes (resources and volumes 8.20, 8.21), a row for each case of the specification, and the pages behind a volume of huge ones (8.11). */
import type { Container, VolumeMount } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import {
  containerDevices,
  containerMounts,
  type MountedVolume,
  type MountOptions,
} from '../../../../src/machines/pod/volumes/containerMounts.ts';
import { hugePageBytes } from '../../../../src/machines/pod/volumes/kinds/emptyDir.ts';
import { type Built, built } from '../../../../src/machines/result.ts';
import { boundClaim, claimedVolume } from '../../../../src/machines/services/volumes/claims.ts';
import { subPathParts } from '../../../../src/machines/services/volumes/subPaths.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const VOLUMES = new Map<string, MountedVolume>([
  ['rw', { hostPath: '/volumes/rw', readOnly: false, managed: true }],
  ['ro', { hostPath: '/volumes/ro', readOnly: true, managed: true }],
  ['host', { hostPath: '/srv', readOnly: false, managed: false }],
  ['image', { hostPath: '', readOnly: true, managed: true, image: true }],
]);
const IMAGE = { images: new Map([['image', { image: 'sha256:1', userSpecifiedImage: 'models:1' }]]) };
const RRO = { recursiveReadOnly: true };
const m = (name: string, more: Partial<VolumeMount> = {}): VolumeMount => ({ name, mountPath: '/m', ...more });
const mount = (one: VolumeMount, o: MountOptions = {}) => containerMounts({ name: 'main', volumeMounts: [one] }, VOLUMES, o);
const ENV = new Map([
  ['NAME', 'web'],
  ['EMPTY', ''],
  ['UP', '../x'],
]);
const parts = (more: Partial<VolumeMount>, env: Built<ReadonlyMap<string, string>> = built(ENV)) =>
  subPathParts({ name: 'main', volumeMounts: [m('rw', more)] }, () => env);
const asking = (...requests: Record<string, string>[]): Pod =>
  pod({ containers: requests.map((r, i): Container => ({ ...container(`c${i}`), resources: { requests: r } })) });

const pvc = (over: object = {}) => ({ metadata: { uid: 'c1' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' }, ...over });
const affinity = (node: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }] },
});
const claimed = (spec: object, block = false) =>
  claimedVolume(
    { spec: { claimRef: { uid: 'c1' }, ...spec } },
    {
      claim: { uid: 'c1', volume: 'pv-1' },
      name: 'data',
      node: { name: 'n1', labels: { 'kubernetes.io/hostname': 'n1' } },
      readOnly: false,
      block,
    },
  );

const OWNER = { ...pod({ containers: [container('main')] }), metadata: { name: 'web', namespace: 'ns', uid: 'uid-1' } };
const disk = (o: Partial<MountedVolume>) => new Map([['disk', { hostPath: '/devices/disk', readOnly: false, managed: true, ...o }]]);
const devices = (o: Partial<MountedVolume>, devicePath = '/dev/x') =>
  containerDevices({ name: 'main', volumeDevices: [{ name: 'disk', devicePath }] }, disk(o));

const ROWS: Record<string, () => unknown> = {
  'mount: as it is': () => mount(m('rw')),
  'mount: read-only by the mount': () => mount(m('rw', { readOnly: true })),
  'mount: read-only by the volume': () => mount(m('ro')),
  'mount: not ours to relabel': () => mount(m('host')),
  'mount: a path without a slash': () => mount(m('rw', { mountPath: 'm' })),
  'mount: a volume that is not there': () => mount(m('gone')),
  'mount: propagation None': () => mount(m('rw', { mountPropagation: 'None' })),
  'mount: propagation HostToContainer': () => mount(m('rw', { mountPropagation: 'HostToContainer' })),
  'mount: propagation Bidirectional': () => mount(m('rw', { mountPropagation: 'Bidirectional' })),
  'recursive: Disabled': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'Disabled' }), RRO),
  'recursive: IfPossible, possible': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'IfPossible' }), RRO),
  'recursive: IfPossible, not possible': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'IfPossible' })),
  'recursive: Enabled, possible': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'Enabled' }), RRO),
  'recursive: Enabled, not possible': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'Enabled' })),
  'recursive: not read-only': () => mount(m('rw', { recursiveReadOnly: 'IfPossible' }), RRO),
  'recursive: with propagation': () =>
    mount(m('rw', { readOnly: true, recursiveReadOnly: 'Enabled', mountPropagation: 'HostToContainer' }), RRO),
  'recursive: of no known mode': () => mount(m('rw', { readOnly: true, recursiveReadOnly: 'Maybe' }), RRO),
  'image: pulled': () => mount(m('image'), IMAGE),
  'image: a part of it': () => mount(m('image', { subPath: 'a' }), { ...IMAGE, parts: new Map([[0, 'a']]) }),
  'image: not pulled': () => mount(m('image')),
  'part: bound': () => mount(m('rw', { subPath: 'a' }), { parts: new Map([[0, '/subpaths/0']]) }),
  'part: not bound': () => mount(m('rw', { subPath: 'a' })),
  'part: none': () => parts({}),
  'part: a path': () => parts({ subPath: 'a/b' }),
  'part: an expression': () => parts({ subPathExpr: 'a/$(NAME)' }),
  'part: an expression that quotes': () => parts({ subPathExpr: 'a/$$(NAME)' }),
  'part: a missing and an empty variable': () => parts({ subPathExpr: '$(NO)/$(EMPTY)' }),
  'part: no environment': () => parts({ subPathExpr: '$(NAME)' }, { ok: false, message: 'no environment' }),
  'part: absolute': () => parts({ subPath: '/a' }),
  'part: up': () => parts({ subPath: 'a/../b' }),
  'part: up, by a variable': () => parts({ subPathExpr: 'a/$(UP)' }),
  'claim: bound': () => boundClaim(pvc()),
  'claim: going': () => boundClaim(pvc({ metadata: { uid: 'c1', deletionTimestamp: '2026-01-01T00:00:00Z' } })),
  'claim: not bound': () => boundClaim(pvc({ status: { phase: 'Pending' } })),
  'claim: without a volume': () => boundClaim(pvc({ spec: {} })),
  'claim: nothing': () => boundClaim(null),
  'volume: local': () => claimed({ local: { path: '/mnt/disk' } }),
  'volume: local, of this node': () => claimed({ local: { path: '/mnt/disk' }, nodeAffinity: affinity('n1') }),
  'volume: local, of another node': () => claimed({ local: { path: '/mnt/disk' }, nodeAffinity: affinity('n2') }),
  'volume: local, of no node': () => claimed({ local: { path: '/mnt/disk' }, nodeAffinity: { required: { nodeSelectorTerms: [] } } }),
  'volume: hostPath': () => claimed({ hostPath: { path: '/srv', type: 'DirectoryOrCreate' } }),
  'volume: hostPath, of no known type': () => claimed({ hostPath: { path: '/srv', type: 'Floppy' } }),
  'volume: a path that goes up': () => claimed({ local: { path: '/mnt/../etc' } }),
  'volume: of no claim': () => claimed({ local: { path: '/mnt/disk' }, claimRef: undefined }),
  'volume: of another claim': () => claimed({ local: { path: '/mnt/disk' }, claimRef: { uid: 'c2' } }),
  'volume: a block device': () => claimed({ local: { path: '/dev/sdb' }, volumeMode: 'Block' }),
  'volume: with mount options': () => claimed({ local: { path: '/mnt/disk' }, mountOptions: ['noatime'] }),
  'volume: of another kind': () => claimed({ quobyte: { registry: 'd', volume: 'x' } }),
  'volume: a block device, as a device': () => claimed({ local: { path: '/dev/sdb' }, volumeMode: 'Block' }, true),
  'volume: a directory, as a device': () => claimed({ local: { path: '/mnt/disk' } }, true),
  'volume: of a driver': () =>
    claimed({
      csi: {
        driver: 'd',
        volumeHandle: 'h',
        fsType: 'ext4',
        readOnly: true,
        volumeAttributes: { a: 'b' },
        nodeStageSecretRef: { name: 's', namespace: 'n' },
      },
      accessModes: ['ReadWriteMany'],
      mountOptions: ['noatime'],
    }),
  'volume: of a driver, as a device': () => claimed({ csi: { driver: 'd', volumeHandle: 'h' }, volumeMode: 'Block' }, true),
  'volume: of a driver, without a handle': () => claimed({ csi: { driver: 'd' } }),
  'claim: made for the pod': () =>
    boundClaim(pvc({ metadata: { uid: 'c1', ownerReferences: [{ controller: true, uid: 'uid-1' }] } }), OWNER),
  'claim: made for another pod': () =>
    boundClaim(
      pvc({ metadata: { uid: 'c1', namespace: 'ns', name: 'web-v', ownerReferences: [{ controller: true, uid: 'uid-0' }] } }),
      OWNER,
    ),
  'claim: made by somebody': () => boundClaim(pvc({ metadata: { uid: 'c1', namespace: 'ns', name: 'web-v' } }), OWNER),
  'device: as it is': () => devices({ device: true }),
  'device: read-only': () => devices({ device: true, readOnly: true }),
  'device: of a volume that is a directory': () => devices({}),
  'device: at a path without a slash': () => devices({ device: true }, 'dev/x'),
  'device: in volumeMounts': () => containerMounts({ name: 'main', volumeMounts: [m('disk')] }, disk({ device: true })),
  'huge pages: one size': () => hugePageBytes(asking({ 'hugepages-2Mi': '4Mi' }, { cpu: '1' }), 'HugePages'),
  'huge pages: one size, twice': () => hugePageBytes(asking({ 'hugepages-2Mi': '4Mi' }, { 'hugepages-2Mi': '2Mi' }), 'HugePages'),
  'huge pages: several sizes': () => hugePageBytes(asking({ 'hugepages-2Mi': '4Mi' }, { 'hugepages-1Gi': '1Gi' }), 'HugePages'),
  'huge pages: several sizes, one named': () =>
    hugePageBytes(asking({ 'hugepages-2Mi': '4Mi' }, { 'hugepages-1Gi': '1Gi' }), 'HugePages-1Gi'),
  'huge pages: another size named': () => hugePageBytes(asking({ 'hugepages-2Mi': '4Mi' }), 'HugePages-1Gi'),
  'huge pages: nobody asks': () => hugePageBytes(asking({ cpu: '1' }), 'HugePages'),
  'huge pages: none asked for': () => hugePageBytes(asking({ 'hugepages-2Mi': '0' }), 'HugePages'),
};

goldenTable('what a container is given of its volumes', 'volumes/volumes', ROWS);
