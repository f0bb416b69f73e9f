/** What the user of a pod is told of its volumes (resources and volumes 8.6). Of a taking down that failed nothing: that is for the log. Pure. */

import { isDevice, type PodVolume } from '../../pod/volumes/volumes.ts';
import { isWait, NO_ATTACHER } from './csi/volume.ts';
import type { SetUpDone } from './volumeMachine.ts';

export interface VolumeEventSaid {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** Null: it is being waited for, which is nothing that went wrong. `name`: of the PersistentVolume, where it is known. */
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

/** Null: only of a device is said that it is there. */
export function setUpSuccess(volume: PodVolume, done: SetUpDone | null): VolumeEventSaid | null {
  if (!isDevice(volume) || done === null) return null;
  const message = `MapVolume.MapPodDevice succeeded for volume "${done.stands?.name ?? volume.name}" volumeMapPath "${done.at}"`;
  return { type: 'Normal', reason: 'SuccessfulMountVolume', message };
}
