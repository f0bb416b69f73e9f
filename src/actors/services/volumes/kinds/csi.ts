/** `csi`: volumes of drivers. What a driver does for a pod or for a claim is the same, and stands in `../csi`. */

import { CSI, type CsiVolume, type InlineCsi } from '../../../../machines/pod/volumes/kinds/csi.ts';
import { pluginName, standOf, type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import { ephemeralCsi, uniqueName } from '../../../../machines/services/volumes/csi/volume.ts';
import type { SetUpDone, SetUpJob } from '../../../../machines/services/volumes/volumeMachine.ts';
import { growCsi } from '../csi/grow.ts';
import { type CsiOptions, readData, standing } from '../csi/place.ts';
import { setUpCsi } from '../csi/setUp.ts';
import { takeDownCsi } from '../csi/takeDown.ts';
import { directoryOf, type InlineActs, mounterOf, type PersistentActs, type VolumeTools } from '../kind.ts';
import type { Served } from '../measured.ts';

export const csi: { inline: InlineActs<{ kind: 'csi'; csi: InlineCsi }>; persistent: PersistentActs<{ kind: 'csi'; csi: CsiVolume }> } = {
  inline: {
    async setUp(o, job, signal) {
      const { volume, pod, source } = job;
      const served = await stands(o, job, signal);
      if (served !== null) return served;
      const { sha256Hex } = o.ports.entropy;
      return publish(o, { ...job, csi: ephemeralCsi(source.csi, { pod, name: volume.name, sha256Hex }) }, signal);
    },
    takeDown,
    async found(o, ref) {
      await stillInUse(o, ref);
      return ref;
    },
    root: async (o, ref) => (await published(o, ref)) ?? directoryOf(o, ref),
  },
  persistent: {
    setUp: (o, job, signal) => publish(o, { ...job, csi: job.behind.csi }, signal),
    standing: stands,
    found: stillInUse,
    takeDown,
    root: published,
    grow: (o, { volume, behind, size }, signal) => growCsi({ ...options(o), api: o.csi.api }, { volume, csi: behind.csi, size }, signal),
  },
};

function servedBy(ref: VolumeRef, { driver, block, migrated }: Pick<CsiVolume, 'driver' | 'block' | 'migrated'>): Served {
  return { plugin: `${pluginName(CSI)}:${driver}`, migrated: migrated === true, device: block, volume: standOf(ref).name };
}

function options(o: VolumeTools): CsiOptions {
  return { ...o, ...o.csi, mounter: mounterOf(o) };
}

/** A driver that wants its volumes set up again gets its way at each refresh. */
async function stands(o: VolumeTools, { volume, first }: SetUpJob, signal: AbortSignal): Promise<SetUpDone | null> {
  const served = await standing(options(o), volume, signal);
  return served !== null && (first || !served.republish) ? served : null;
}

function publish(o: VolumeTools, { volume, pod, csi, first }: SetUpJob & { csi: CsiVolume }, signal: AbortSignal): Promise<SetUpDone> {
  const { api, reportedInUse } = o.csi;
  if (api === null) throw new Error('this node has no API to ask about the driver of a volume');
  o.serves(volume, servedBy(volume, csi));
  return setUpCsi(
    { ...options(o), api, reportedInUse, objects: o.objects, warn: o.warn },
    { ref: volume, pod, csi, again: !first },
    signal,
  );
}

async function takeDown(o: VolumeTools, ref: VolumeRef, signal: AbortSignal): Promise<void> {
  if (o.ports.mounter !== undefined) await takeDownCsi(options(o), ref, signal);
}

/** Where a driver has published it; null: none has. */
async function published(o: VolumeTools, ref: VolumeRef): Promise<string | null> {
  const { rootDir } = o.facts();
  return (await readData(o.ports.fs, rootDir, ref)) === null ? null : `${directoryOf(o, ref)}/mount`;
}

/** A volume that was attached for us must stay so until it is taken down. */
async function stillInUse(o: VolumeTools, ref: VolumeRef): Promise<void> {
  const data = await readData(o.ports.fs, o.facts().rootDir, ref);
  if (data !== null) o.serves(ref, servedBy(ref, data));
  if (data?.attached === true) o.csi.ledger.use(volumeKey(ref), uniqueName(data));
}
