/**
 * Each kind of volume that a pod can name, also those that this node has no plugin for (resources and volumes 8.22): what
 * admission says of it to a pod of the API and to a static one, and what the volume manager makes of it in a pod and behind a
 * claim. And each field of a pod that is refused, with why.
 */
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { VOLUME_SOURCES } from '../../../../src/machines/kube/volumeTable.ts';
import { podVolumes } from '../../../../src/machines/pod/volumes/volumes.ts';
import { unsupported } from '../../../../src/machines/pods/admission/admission.ts';
import { FIELD_TABLE } from '../../../../src/machines/pods/admission/fieldTable.ts';
import { claimedVolume } from '../../../../src/machines/services/volumes/claims.ts';
import { cluster, create, events, isReady } from '../../../integration/cluster/clusterPods.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { CLAIMING, provideClaim } from '../driver.ts';
import { goldenTable } from '../table.ts';

/** A plain one of each kind that this node can set up; of all others what is in them is not looked at. */
const PLAIN: Readonly<Record<string, object>> = {
  hostPath: { path: '/srv' },
  emptyDir: {},
  configMap: { name: 'c' },
  secret: { secretName: 's' },
  downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] },
  projected: { sources: [{ configMap: { name: 'c' } }] },
  persistentVolumeClaim: { claimName: 'data' },
  image: { reference: 'example.org/files:v1' },
  csi: { driver: 'd.example.com' },
  ephemeral: { volumeClaimTemplate: { spec: {} } },
  nfs: { server: 'files.example.org', path: '/exports' },
  iscsi: { targetPortal: '192.0.2.7:3260', iqn: 'iqn.2001-04.com.example:disk', lun: 0 },
  fc: { targetWWNs: ['500a0982991b8dc5'], lun: 2 },
  flexVolume: { driver: 'example/lvm' },
  gitRepo: { repository: 'https://git.example.org/it.git' },
};
const sourceOf = (kind: string): object => PLAIN[kind] ?? { anything: 'x' };
const mounted = (volume: object, source: string): Pod =>
  pod(
    {
      containers: [container('web', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
      volumes: [{ name: 'v', ...volume }],
    } as Parameters<typeof pod>[0],
    { source },
  );
const admitted = (p: Pod): string => unsupported(p, { podGroups: false, extendedResources: false })?.message ?? 'let in';
const inPod = (volume: object) => {
  const { volumes, failed } = podVolumes(mounted(volume, 'api'));
  return volumes[0]?.plugin ?? failed[0]?.message ?? 'nothing';
};
const behindClaim = (kind: string, source: object): string => {
  const of = { claim: { uid: 'c1', volume: 'pv-1' }, name: 'v', node: { name: 'n1', labels: {} }, readOnly: false, block: false };
  const found = claimedVolume({ spec: { claimRef: { uid: 'c1' }, [kind]: source } }, of);
  return found.ok ? found.value.kind : found.message;
};
const kinds = Object.fromEntries(
  VOLUME_SOURCES.map((kind): [string, () => unknown] => [
    `8.22 volume of a pod: ${kind}`,
    () => ({
      api: admitted(mounted({ [kind]: sourceOf(kind) }, 'api')),
      static: admitted(mounted({ [kind]: sourceOf(kind) }, 'file')),
      setUp: inPod({ [kind]: sourceOf(kind) }),
    }),
  ]),
);
/** Kinds of a PersistentVolume: those of a pod that the cluster can hold, and `local`. */
const PERSISTENT = ['local', 'hostPath', 'csi', 'nfs', 'iscsi', 'fc', 'flexVolume', 'rbd', 'cephfs', 'awsElasticBlockStore'] as const;
const persistent = Object.fromEntries(
  PERSISTENT.map((kind): [string, () => unknown] => [
    `8.22 volume behind a claim: ${kind}`,
    () => {
      const more = kind === 'csi' ? { volumeHandle: 'h' } : kind === 'local' ? { path: '/mnt/disk' } : {};
      return behindClaim(kind, { ...sourceOf(kind), ...more });
    },
  ]),
);
/** What a second pod of the node comes to that names the same claim. */
const second = (accessMode: string) => async () => {
  await using h = await cluster({ drivers: true });
  await provideClaim(h, accessMode);
  create(h, 'one', CLAIMING);
  await h.until('the first is ready', () => isReady(h, 'one'), 120_000);
  create(h, 'two', CLAIMING);
  await h.until('the second is ready, or is told why not', () => isReady(h, 'two') || events(h, 'FailedMount').length > 0, 120_000);
  return { ready: isReady(h, 'two'), said: [...new Set(events(h, 'FailedMount'))] };
};
const rules = (which: 'refused' | 'leftAlone' | 'ignored') =>
  Object.fromEntries(
    FIELD_TABLE.flatMap((rule) => {
      const why = rule[which];
      return why === undefined ? [] : [[`${rule.path}${rule.api === true ? ' (of the API)' : ''}`, why]];
    }),
  );

goldenTable('what is said of other kinds of volumes, and of fields that are refused, is as recorded', 'admission/otherPlugins', {
  ...kinds,
  '8.22 volume of a pod: of no kind at all': () => ({ api: admitted(mounted({}, 'api')), setUp: inPod({}) }),
  '8.22 volume of a pod: of a kind that no Pod has': () => ({
    api: admitted(mounted({ floppy: { drive: 'A' } }, 'api')),
    setUp: inPod({ floppy: { drive: 'A' } }),
  }),
  '8.22 volume of a pod: ephemeral, as the claim that it stands for': () =>
    podVolumes(mounted({ ephemeral: sourceOf('ephemeral') }, 'api')).volumes.map((v) => v.source),
  ...persistent,
  '8.22 ReadWriteOncePod: a second pod': second('ReadWriteOncePod'),
  '8.22 ReadWriteOnce: a second pod of the same node': second('ReadWriteOnce'),
  '8.22 fields that are refused': () => rules('refused'),
  '8.22 fields that are left alone': () => rules('leftAlone'),
  '8.22 fields that have no effect': () => rules('ignored'),
  '8.22 fields of which only some values are honoured': () =>
    Object.fromEntries(FIELD_TABLE.flatMap((rule) => (rule.only === undefined ? [] : [[rule.path, rule.only]]))),
  '8.22 fields that only a pod of the API may have': () => FIELD_TABLE.filter((rule) => rule.api === true).map((rule) => rule.path),
});
