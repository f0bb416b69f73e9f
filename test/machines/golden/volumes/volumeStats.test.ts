/** What is found out of each kind of volume (resources and volumes 7.6): how, how often, and whether it counts as the pod's own use of the disk. */
import { measuredVolume, usageOfDriver, volumeStats } from '../../../../src/machines/figures/volumeStats.ts';
import { volumeRef } from '../../../../src/machines/pod/volumes/volumePaths.ts';
import { pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const of = (plugin: string, source: object) => () =>
  measuredVolume(pod({ volumes: [{ name: 'v', ...source }] }), volumeRef('u', `kubernetes.io~${plugin}`, 'v'));
const BYTES = { unit: 'BYTES', available: '70', total: '100', used: '30' };
const INODES = { unit: 'INODES', available: '7', total: '10', used: '3' };
const driver =
  (usage: (typeof BYTES)[], o: { health?: boolean; abnormal?: boolean } = {}) =>
  () => {
    const volumeCondition = o.abnormal === undefined ? null : { abnormal: o.abnormal, message: 'of the disk' };
    return usageOfDriver({ usage, volumeCondition }, { health: o.health === true });
  };
const claimed = of('local-volume', { persistentVolumeClaim: { claimName: 'data' } });

goldenTable('what is found out of a volume is as recorded', 'volumes/volumeStats', {
  'emptyDir on disk': of('empty-dir', { emptyDir: {} }),
  'emptyDir in memory': of('empty-dir', { emptyDir: { medium: 'Memory' } }),
  'emptyDir of huge pages': of('empty-dir', { emptyDir: { medium: 'HugePages-2Mi' } }),
  configMap: of('configmap', { configMap: { name: 'c' } }),
  secret: of('secret', { secret: { secretName: 's' } }),
  downwardAPI: of('downward-api', { downwardAPI: {} }),
  projected: of('projected', { projected: {} }),
  hostPath: of('host-path', { hostPath: { path: '/x' } }),
  image: of('image', { image: { reference: 'r' } }),
  'a claim': claimed,
  'a claim that was made for the pod': of('local-volume', { ephemeral: { volumeClaimTemplate: {} } }),
  'of a driver, in the pod': of('csi', { csi: { driver: 'd' } }),
  'of a kind that is not known': of('quobyte', { quobyte: {} }),
  'driver: bytes and inodes': driver([BYTES, INODES]),
  'driver: bytes alone': driver([BYTES]),
  'driver: nothing': driver([]),
  'driver: of an unknown unit': driver([{ ...BYTES, unit: 'UNKNOWN' }]),
  'driver: less than nothing': driver([{ ...BYTES, available: '-1' }]),
  'driver: ill, and asked for': driver([BYTES], { health: true, abnormal: true }),
  'driver: well, and asked for': driver([BYTES], { health: true, abnormal: false }),
  'driver: does not say': driver([BYTES], { health: true }),
  'driver: ill, and not asked for': driver([BYTES], { abnormal: true }),
  'as it is told': () => {
    const volume = claimed();
    if (volume === null) throw new Error('a claim is measured');
    return volumeStats(volume, driver([BYTES, INODES], { health: true, abnormal: true })(), '2026-01-02T03:04:05.000000000Z');
  },
});
