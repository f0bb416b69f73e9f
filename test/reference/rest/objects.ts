/** What the node of `record.ts` and of `rest.test.ts` holds while its requests are counted: each kind of object that a pod can use. */
import type { Pod } from '../../../src/machines/kube/types.ts';

/** Which driver serves a claim, and whether it wants its volumes published again and again. */
export const DRIVERS = { 'csi.rest.test': false, 'again.rest.test': true } as const;
export const CLAIMS = {
  data: { csi: { driver: 'csi.rest.test', volumeHandle: 'data', fsType: 'ext4' } },
  again: { csi: { driver: 'again.rest.test', volumeHandle: 'again', fsType: 'ext4' } },
  host: { hostPath: { path: '/srv', type: '' } },
} as const;
const SIZE = '16Mi';
const SPEC = { storageClassName: '', accessModes: ['ReadWriteOnce'] };

/** Without a scheduler and controllers: a claim names its volume, and its status is patched by the caller. */
export const clusterObjects = (): object[] => [
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'secret', namespace: 'default' }, data: { key: btoa('value') } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'words', namespace: 'default' }, data: { key: btoa('value') } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'config', namespace: 'default' }, data: { key: 'value' } },
  ...Object.entries(DRIVERS).map(([name, requiresRepublish]) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec: { attachRequired: false, requiresRepublish },
  })),
  ...Object.entries(CLAIMS).flatMap(([name, source]) => [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-${name}` },
      spec: { ...SPEC, capacity: { storage: SIZE }, claimRef: { namespace: 'default', name }, ...source },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default' },
      spec: { ...SPEC, volumeName: `pv-${name}`, resources: { requests: { storage: SIZE } } },
    },
  ]),
];

type Volume = NonNullable<Pod['spec']['volumes']>[number];
/** By the name of the pod. */
export const VOLUMES: Readonly<Record<string, readonly Volume[]>> = {
  plain: [],
  files: [
    { name: 'secret', secret: { secretName: 'secret' } },
    { name: 'config', configMap: { name: 'config' } },
    {
      name: 'token',
      projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 600 } }, { configMap: { name: 'config' } }] },
    },
  ],
  ...Object.fromEntries(
    Object.keys(CLAIMS).map((claimName) => [`uses-${claimName}`, [{ name: 'disk', persistentVolumeClaim: { claimName } }]]),
  ),
};
/** Of one more variable from a Secret that no volume names. */
export const ENV = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'words', key: 'key' } } }];

/** Nothing is counted until this time after all pods are Ready, and then for so long. */
export const SETTLE_MS = 120_000;
export const COUNTED_MS = 900_000;

/** `VERB RESOURCE[/SUBRESOURCE] [NAME]`: how often. */
export type Counts = Record<string, number>;
export function counted(asked: readonly { verb: string; resource: string; name: string }[]): Counts {
  const counts: Counts = {};
  for (const { verb, resource, name } of asked) {
    const key = [verb, resource, name].filter((word) => word !== '').join(' ');
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}
