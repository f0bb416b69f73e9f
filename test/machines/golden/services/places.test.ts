/** Where things of a pod are on the disk (resources and volumes 5.4, 8.2, 8.3; pod lifecycle 5.7): a row for each line of the tables there. */
import { pathName } from '../../../../src/machines/pod/pathName.ts';
import {
  containerIdOfLink,
  containerLogDir,
  containerLogLink,
  containerLogPath,
  logFilesOf,
  podFolder,
  podLogDir,
  podUidOfLogDir,
} from '../../../../src/machines/pod/runtime/logNames.ts';
import { LOCAL_VOLUME } from '../../../../src/machines/pod/volumes/kinds/claim.ts';
import { CSI } from '../../../../src/machines/pod/volumes/kinds/csi.ts';
import { deviceLink, markerDir, subPathsDir, volumePath, volumeRef } from '../../../../src/machines/pod/volumes/volumePaths.ts';
import { podVolumes } from '../../../../src/machines/pod/volumes/volumes.ts';
import { csiPath, csiRef, uniqueName } from '../../../../src/machines/services/volumes/csi/volume.ts';
import { container, FACTS, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const ROOT = FACTS.rootDir;
const POD = podFolder({ uid: 'uid-1', name: 'web', namespace: 'shop' });
const MAIN = pathName('main');
const ID = pathName('abcdef0123456789');
/** Directory of a volume of that kind, which some container mounts. */
const at = (source: object): string[] =>
  podVolumes(
    pod({
      containers: [container('web', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
      volumes: [{ name: 'v', ...source }],
    } as Parameters<typeof pod>[0]),
  ).volumes.map((v) => volumePath(ROOT, v));

goldenTable('places on the disk are as recorded', 'services/places', {
  '5.4 logs of a pod': () => podLogDir('/var/log/pods', POD),
  '5.4 logs of a container': () => containerLogDir('/var/log/pods', POD, MAIN),
  '5.4 log of one instance, as the runtime is told': () => [0, 3].map((n) => containerLogPath(MAIN, n)),
  '5.4 link of a log': () => containerLogLink('/var/log/containers', POD, { container: MAIN, id: ID }),
  '5.4 link of a log: a name that is cut': () => {
    const link = containerLogLink('/l', { ...POD, name: pathName('x'.repeat(253)) }, { container: MAIN, id: ID });
    return [link.length - '/l/'.length, link.endsWith('.log')];
  },
  '5.4 the container of a link': () =>
    [`web_shop_main-${ID}.log`, 'web_shop_main-abc.log', `web_shop_main-${ID}.txt`, 'strange.log'].map((n) => containerIdOfLink(n) ?? null),
  '5.4 the pod of a directory': () => ['shop_web_uid-1', 'shop_web', 'shop_web_'].map((n) => podUidOfLogDir(n) ?? null),
  '5.4 logs of one instance': () => logFilesOf(1, ['0.log', '1.log', '1.log.20240102-030405', '1.log.20240102-030405.gz', '11.log', 'x']),
  '8.2 volumes': () => ({
    emptyDir: at({ emptyDir: {} }),
    configMap: at({ configMap: { name: 'c' } }),
    secret: at({ secret: { secretName: 's' } }),
    downwardAPI: at({ downwardAPI: { items: [] } }),
    projected: at({ projected: { sources: [] } }),
    claim: at({ persistentVolumeClaim: { claimName: 'data' } }),
    csi: at({ csi: { driver: 'd.example.com' } }),
  }),
  '8.2 volumes: set up in full': () =>
    ['kubernetes.io~empty-dir', 'kubernetes.io~secret'].map((plugin) => markerDir(ROOT, volumeRef('uid-1', plugin, 'v'))),
  '8.2 volumes: link to a device': () => deviceLink(ROOT, volumeRef('uid-1', LOCAL_VOLUME, 'v')),
  '8.2 volumes: parts': () => subPathsDir(ROOT, volumeRef('uid-1', LOCAL_VOLUME, 'v')),
  '8.2 drivers: of a pod, staged, a device': () => [
    volumePath(ROOT, csiRef({ ...volumeRef('uid-1', LOCAL_VOLUME, 'v'), stands: { plugin: CSI, name: pathName('pv-1') } })),
    csiPath.staging(ROOT, pathName('d.example.com'), 'HASH'),
    csiPath.block(ROOT, pathName('pv-1')),
  ],
  '8.3 unique name of what a driver has': () =>
    uniqueName({ driver: 'd.example.com', handle: 'vol-1' } as Parameters<typeof uniqueName>[0]),
});
