/** What the user of a pod is told of its volumes (resources and volumes 8.6). Of a taking down that failed nothing: that is for the log. Pure. */

import { isDevice, type PodVolume } from '../../pod/volumes/volumes.ts';
import { isWait, NO_ATTACHER } from './csi/volume.ts';
import type { SetUpDone } from './volumeMachine.ts';

export interface VolumeEventSaid {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** The event of a failed set-up. Null: the pod waits for the volume, which is no failure. `name`: of the PersistentVolume, if known. */
export function mountFailure(volume: PodVolume, message: string, name: string = volume.name): VolumeEventSaid | null {
  if (isWait(message)) return null;
  if (message === NO_ATTACHER)
    return {
      type: 'Warning',
      reason: 'FailedAttachVolume',
      message: `AttachVolume.Attach failed for volume "${name}" : ${message}`,
    };
  const [reason, stage] = isDevice(volume) ? ['FailedMapVolume', 'MapVolume.SetUpDevice'] : ['FailedMount', 'MountVolume.SetUp'];
  return { type: 'Warning', reason, message: `${stage} failed for volume "${name}" : ${message}` };
}

/** The event of a set-up. Null: the volume is no device, and only devices are announced. */
export function setUpSuccess(volume: PodVolume, done: SetUpDone | null): VolumeEventSaid | null {
  if (!isDevice(volume) || done === null) return null;
  const message = `MapVolume.MapPodDevice succeeded for volume "${done.stands?.name ?? volume.name}" volumeMapPath "${done.at}"`;
  return { type: 'Normal', reason: 'SuccessfulMountVolume', message };
}
