/** `vol_data.json`: what is known of a CSI volume without asking anybody, in the reference's own keys (resources and volumes 8.17). Pure. */
import { isPathName, type PathName } from '../../../pod/pathName.ts';
import { isRecord } from '../../../shape/conform.ts';
import { jsonOf } from '../../../shape/lenient.ts';

export interface VolumeData {
  driver: PathName;
  handle: string;
  /** Name of its PersistentVolume; of one that stands in a pod, its name there. */
  specName: string;
  nodeName: string;
  attachmentId: string;
  lifecycle: 'Persistent' | 'Ephemeral';
  /** The cluster attached it to this node for us, so it is in use until it is taken down. A key of our own. */
  attached: boolean;
  /** SELinux label that it is mounted with, '' = none. */
  context: string;
  /** Pods have its device. Where the file lies says it, not the file. */
  block: boolean;
}

export function encodeVolumeData(d: VolumeData): string {
  return JSON.stringify({
    attachmentID: d.attachmentId,
    driverName: d.driver,
    nodeName: d.nodeName,
    specVolID: d.specName,
    volumeHandle: d.handle,
    volumeLifecycleMode: d.lifecycle,
    ...(d.context === '' ? {} : { seLinuxMountContext: d.context }),
    'actorlet.dev/attached': String(d.attached),
  });
}

/** Null for what is no such file. */
export function decodeVolumeData(text: string): VolumeData | null {
  const value = jsonOf(text);
  if (!isRecord(value)) return null;
  const of = (key: string): string => (typeof value[key] === 'string' ? value[key] : '');
  const [driver, handle] = [of('driverName'), of('volumeHandle')];
  if (!isPathName(driver) || handle === '') return null;
  const lifecycle = of('volumeLifecycleMode') === 'Ephemeral' ? 'Ephemeral' : 'Persistent';
  return {
    driver,
    handle,
    specName: of('specVolID'),
    nodeName: of('nodeName'),
    attachmentId: of('attachmentID'),
    context: of('seLinuxMountContext'),
    lifecycle,
    // A file of another agent does not say.
    attached: of('actorlet.dev/attached') !== 'false' && lifecycle === 'Persistent',
    block: false,
  };
}
