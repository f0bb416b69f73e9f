/** A volume of a driver that its controller has given more room: the driver makes its file system use it. */

import type { CsiVolume } from '../../../../machines/pod/volumes/kinds/csi.ts';
import type { VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import { accessMode, isFinal, volumeCapability } from '../../../../machines/services/volumes/csi/volume.ts';
import { failureOfCode, requiredBytes } from '../../../../machines/services/volumes/growth.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { CsiError } from '../../../../ports/sockets/csi.ts';
import { GrowthFailure } from '../growth/failure.ts';
import type { CsiApi } from './api.ts';
import { type Driver, driverNamed } from './calls.ts';
import { type CsiOptions, placeOf } from './place.ts';

/** @throws GrowthFailure */
export async function growCsi(
  o: CsiOptions & { api: CsiApi | null },
  { volume, csi, size }: { volume: VolumeRef; csi: CsiVolume; size: string },
  signal: AbortSignal,
): Promise<void> {
  const driver = registered(o, csi, volume);
  const capabilities = await driver.capabilities(signal);
  if (!capabilities.has('EXPAND_VOLUME'))
    throw new GrowthFailure('unsupported', `NodeExpand is not supported by the CSI driver ${csi.driver}`);
  const mode = accessMode(csi, capabilities);
  if (!mode.ok) throw new GrowthFailure('final', mode.message);
  const secrets = csi.expandSecret === null || o.api === null ? {} : await o.api.secret(csi.expandSecret, signal);
  const place = placeOf(o, volume, csi);
  const request = {
    volumeId: csi.handle,
    volumePath: place.target,
    capacityRange: { requiredBytes: requiredBytes(size) },
    stagingTargetPath: capabilities.has('STAGE_UNSTAGE_VOLUME') ? place.staging : '',
    volumeCapability: volumeCapability(csi, { mode: mode.value, group: '' }),
    secrets,
  };
  try {
    await driver.call('NodeExpandVolume', request, signal);
  } catch (error) {
    if (!(error instanceof CsiError)) throw error;
    const kind = failureOfCode(error.code, isFinal(error.code));
    // The words of the reference.
    throw new GrowthFailure(
      kind,
      `Expander.NodeExpand failed to expand the volume ${kind === 'infeasible' ? '' : ': '}${messageOf(error)}`,
    );
  }
}

/** A driver that is not there now comes back: nothing is known of the volume meanwhile. */
function registered(o: CsiOptions, { driver, migrated }: CsiVolume, of: VolumeRef): Driver {
  try {
    return driverNamed(o, driver, { who: 'Expander.NodeExpand failed to get CSI client', of, migrated: migrated === true });
  } catch (error) {
    throw new GrowthFailure('open', messageOf(error));
  }
}
