/** `iscsi`: a disk of a SAN that the node logs in to, named by a pod or by a PersistentVolume. */

import { type Built, built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { listOf, textOf } from '../../../shape/lenient.ts';
import { isLun, LUN_RANGE, mountable } from './mountable.ts';

export interface Iscsi {
  kind: 'iscsi';
  /** Each with its port; the first names the disk. */
  portals: readonly string[];
  /** As it was written: the cluster names the volume by it. */
  targetPortal: string;
  iqn: string;
  lun: number;
  /** Interface of iscsiadm. */
  iface: string;
  /** '' = that of the node. */
  initiatorName: string;
  chapDiscovery: boolean;
  chapSession: boolean;
  /** Namespace '' = the pod's. */
  secret: { namespace: string; name: string } | null;
  fsType: string;
  /** Options of mount(8). */
  options: readonly string[];
}

const FIELDS = ['targetPortal', 'portals', 'iqn', 'lun', 'iscsiInterface', 'initiatorName', 'fsType', 'readOnly', 'chapAuthDiscovery'];
const PORT = 3260;

export const iscsi = mountable<Iscsi>({
  kind: 'iscsi',
  fields: [...FIELDS, 'chapAuthSession', 'secretRef.name'],
  defaults: (content) => {
    content.iscsiInterface ??= 'default';
  },
  problems: ({ targetPortal, iqn, lun }) => [
    ...(textOf(targetPortal) === '' ? [{ field: 'targetPortal', what: 'required' }] : []),
    ...(isTarget(textOf(iqn)) ? [] : [{ field: 'iqn', what: 'must be the name of a target (iqn., eui. or naa.)' }]),
    ...(isLun(lun) ? [] : [{ field: 'lun', what: LUN_RANGE }]),
  ],
  decode,
  labelled: true,
});

/** Names of targets become names of files, and arguments of iscsiadm. */
const isTarget = (iqn: string): boolean =>
  /^(?:iqn\.\d{4}-\d{2}\.[a-z0-9.-]+(?::[^\s/,"'\0]+)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{16,32})$/.test(iqn);
const isPortal = (portal: string): boolean => /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(?::\d{1,5})?$/.test(portal);
const isName = (name: string): boolean => /^[^\s/\0-][^\s/\0]*$/.test(name);
const withPort = (portal: string): string => (/(?:^|\])[^:\]]*:\d+$/.test(portal) ? portal : `${portal}:${PORT}`);

function decode(content: Record<string, unknown>, options: readonly string[]): Built<Iscsi> {
  const [targetPortal, iqn, initiatorName] = [textOf(content.targetPortal), textOf(content.iqn), textOf(content.initiatorName)];
  const given = [targetPortal, ...listOf(content.portals).map(textOf)];
  const wrong = given.find((portal) => !isPortal(portal));
  if (wrong !== undefined) return refused(`iscsi: portal "${wrong}" is not an address`);
  if (!isTarget(iqn)) return refused(`iscsi.iqn "${iqn}" is not the name of a target`);
  if (!isLun(content.lun)) return refused(`iscsi.lun ${LUN_RANGE}`);
  const iface = textOf(content.iscsiInterface) || 'default';
  if (!isName(iface)) return refused(`iscsi.iscsiInterface "${iface}" is not the name of an interface`);
  if (initiatorName !== '' && !isTarget(initiatorName))
    return refused(`iscsi.initiatorName "${initiatorName}" is not the name of an initiator`);
  const secret = isRecord(content.secretRef) ? content.secretRef : null;
  return built({
    ...{ kind: 'iscsi', portals: [...new Set(given.map(withPort))], targetPortal, iqn, lun: content.lun, iface, initiatorName },
    chapDiscovery: content.chapAuthDiscovery === true,
    chapSession: content.chapAuthSession === true,
    secret: secret === null || textOf(secret.name) === '' ? null : { namespace: textOf(secret.namespace), name: textOf(secret.name) },
    fsType: textOf(content.fsType) || 'ext4',
    options,
  });
}
