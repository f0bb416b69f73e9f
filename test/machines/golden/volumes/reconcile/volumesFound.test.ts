/** What a daemon finds of the volumes that an earlier one left on disk (resources and volumes 8.9): a row for each kind, and for what is no volume. */
import { CsiLedger } from '../../../../../src/actors/services/volumes/csi/state.ts';
import { encodeVolumeData } from '../../../../../src/machines/services/volumes/csi/data.ts';
import { memFs } from '../../../../integration/memFs.ts';
import { virtualTime } from '../../../../integration/virtualTime.ts';
import { quietPlugins } from '../../../../volumes/kinds/tools.ts';
import { FACTS } from '../../../pods/fixtures.ts';
import { goldenTable } from '../../table.ts';

const POD = `${FACTS.rootDir}/pods/uid-1`;
const OWN = `${POD}/volumes/kubernetes.io~`;
const data = (more: { lifecycle?: 'Persistent' | 'Ephemeral'; attached?: boolean } = {}) =>
  encodeVolumeData({
    driver: 'd.example.com',
    handle: 'h',
    specName: 'disk',
    nodeName: 'n1',
    attachmentId: 'csi-1',
    lifecycle: 'Persistent',
    attached: false,
    ...more,
  } as Parameters<typeof encodeVolumeData>[0]);

/** Paths that end in a slash are directories; the others are files with that text. */
const found = (paths: Readonly<Record<string, string>>) => async () => {
  const fs = memFs(virtualTime().clock);
  for (const [path, text] of Object.entries(paths)) {
    if (path.endsWith('/')) fs.makeDir(path.slice(0, -1));
    else {
      fs.makeDir(path.slice(0, path.lastIndexOf('/')));
      fs.put(path, text);
    }
  }
  const ledger = new CsiLedger();
  const plugins = quietPlugins({ ports: { fs }, csi: { ledger } });
  const { found: refs, strange } = await plugins.scan();
  const inUse = ledger.inUse();
  return {
    found: refs.map((r) => `${r.uid} ${r.plugin} ${r.name}${r.stands === undefined ? '' : ` at ${r.stands.plugin}/${r.stands.name}`}`),
    ...(strange === 0 ? {} : { strange }),
    ...(inUse.length === 0 ? {} : { inUse }),
  };
};
const directory = (kind: string) => found({ [`${OWN}${kind}/v/`]: '' });

goldenTable('what an earlier daemon left of volumes is found as recorded', 'volumes/reconcile/volumesFound', {
  '8.9 nothing': found({}),
  '8.9 a pod without volumes': found({ [`${POD}/etc-hosts`]: '' }),
  '8.9 emptyDir: by its directory': directory('empty-dir'),
  '8.9 configMap: by its directory': directory('configmap'),
  '8.9 secret: by its directory': directory('secret'),
  '8.9 downwardAPI: by its directory': directory('downward-api'),
  '8.9 projected: by its directory': directory('projected'),
  '8.9 hostPath: never on disk': directory('host-path'),
  '8.9 hostPath: by the parts of it that are bound': found({ [`${POD}/volume-subpaths/v/web/0/`]: '' }),
  '8.9 parts of a volume that is there are no volume': found({ [`${OWN}empty-dir/v/`]: '', [`${POD}/volume-subpaths/v/web/0/`]: '' }),
  '8.9 local: by its directory': directory('local-volume'),
  '8.9 local, a device: by its link': found({ [`${POD}/volumeDevices/kubernetes.io~local-volume/v`]: '' }),
  '8.9 CSI: by its data, behind a claim': found({ [`${OWN}csi/disk/vol_data.json`]: data() }),
  '8.9 claim: by the name of its PersistentVolume': found({
    [`${OWN}csi/pv-1/vol_data.json`]: data({ attached: true }),
    [`${POD}/plugins/kubernetes.io~empty-dir/wrapped_disk/stands`]: 'kubernetes.io~csi/pv-1',
  }),
  '8.9 claim: nothing was made of it yet': found({
    [`${POD}/plugins/kubernetes.io~empty-dir/wrapped_disk/stands`]: 'kubernetes.io~nfs/pv-1',
  }),
  '8.9 claim: a record that leads out is none': found({
    [`${POD}/plugins/kubernetes.io~empty-dir/wrapped_disk/stands`]: 'kubernetes.io~nfs/../../etc',
  }),
  '8.9 CSI, a device: by its link': found({
    [`${FACTS.rootDir}/plugins/kubernetes.io/csi/volumeDevices/disk/data/vol_data.json`]: data(),
    [`${POD}/volumeDevices/kubernetes.io~csi/disk`]: '',
  }),
  '8.9 CSI: attached for this node, so it is in use': found({ [`${OWN}csi/disk/vol_data.json`]: data({ attached: true }) }),
  '8.9 CSI: inline': found({ [`${OWN}csi/disk/vol_data.json`]: data({ lifecycle: 'Ephemeral' }) }),
  '8.9 CSI: without its data': directory('csi'),
  '8.9 CSI: its data is torn': found({ [`${OWN}csi/disk/vol_data.json`]: '{"driverName":"d' }),
  '8.9 of a kind that this node does not know': directory('quobyte'),
  '8.9 of several pods': found({ [`${OWN}secret/a/`]: '', [`${FACTS.rootDir}/pods/uid-2/volumes/kubernetes.io~secret/b/`]: '' }),
});
