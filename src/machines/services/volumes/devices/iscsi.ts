/** What iscsiadm is asked for a disk, where its devices show, and `iscsi.json`, in the reference's own keys. Pure. */

import type { Iscsi } from '../../../pod/volumes/kinds/iscsi.ts';
import { isRecord } from '../../../shape/conform.ts';
import { jsonOf } from '../../../shape/lenient.ts';
import type { ToolAnswer } from './format.ts';
import { pluginRoot } from './record.ts';

const PLUGIN = 'iscsi';
export const ISCSI_JSON = 'iscsi.json';
/** Exit codes of iscsiadm. */
const SESSION_NOT_FOUND = 2;
const SESSION_EXISTS = 15;
const NO_OBJECTS_FOUND = 21;

/** A disk as this node logs in to it. */
export interface Target {
  portals: readonly string[];
  iqn: string;
  lun: number;
  /** Interface that is logged in with; one of the volume's own where it has an initiator name of its own. */
  iface: string;
  /** The interface that this one is a copy of. */
  initIface: string;
  initiatorName: string;
  /** Name of the volume. */
  volume: string;
}

export function targetOf(v: Iscsi, volume: string): Target {
  const { portals, iqn, lun, iface, initiatorName } = v;
  return {
    ...{ portals, iqn, lun, initiatorName, volume },
    iface: initiatorName === '' ? iface : `${portals[0] ?? ''}:${volume}`,
    initIface: iface,
  };
}

export const iscsiRoot = (rootDir: string): string => pluginRoot(rootDir, PLUGIN);
/** The reference's directory of a disk. `block`: containers are given the device itself. */
export function iscsiGlobal(rootDir: string, { portals, iqn, lun, iface }: Target, block: boolean): string {
  return `${iscsiRoot(rootDir)}${block ? '/volumeDevices' : ''}/iface-${iface}/${sessionName({ portals, iqn })}-lun-${lun}`;
}
/** What the names of all disks of one target begin with. */
export function sessionName({ portals, iqn }: Pick<Target, 'portals' | 'iqn'>): string {
  return `${portals[0] ?? ''}-${iqn}`;
}
/** As the cluster calls it. */
export function iscsiUniqueName({ targetPortal, iqn, lun }: Pick<Iscsi, 'targetPortal' | 'iqn' | 'lun'>): string {
  return `kubernetes.io/iscsi/${targetPortal}:${iqn}:${lun}`;
}

export function encodeTarget({ portals, iqn, lun, iface, initIface, initiatorName, volume }: Target): string {
  return `${JSON.stringify({
    ...{ VolName: volume, Portals: portals, Iqn: iqn, Lun: String(lun), InitIface: initIface, Iface: iface },
    ...{ InitiatorName: initiatorName, MetricsProvider: null },
  })}\n`;
}
/** `global`: its directory, which says enough where the file is lost. Null: neither says which disk it was. */
export function decodeTarget(text: string | null, global: string): Target | null {
  // Torn by a crash, perhaps.
  const value = jsonOf(text ?? '');
  const fromName = targetOfName(global);
  if (!isRecord(value)) return fromName;
  const of = (key: string): string => (isRecord(value) && typeof value[key] === 'string' ? value[key] : '');
  const portals = Array.isArray(value.Portals) ? value.Portals.filter((p) => typeof p === 'string' && p !== '').map(String) : [];
  const [iqn, lun] = [of('Iqn'), Number(of('Lun'))];
  if (portals.length === 0 || iqn === '' || !Number.isInteger(lun)) return fromName;
  const named = { initIface: of('InitIface'), initiatorName: of('InitiatorName'), volume: of('VolName') };
  return { ...named, portals: [...new Set(portals)], iqn, lun, iface: of('Iface') };
}
function targetOfName(global: string): Target | null {
  const found = /\/iface-([^/]+)\/([^/]+?)-((?:iqn|eui|naa)\.[^/]+)-lun-(\d+)$/.exec(global);
  if (found === null) return null;
  const [, iface = '', portal = '', iqn = '', lun = ''] = found;
  return { portals: [portal], iqn, lun: Number(lun), iface, initIface: iface, initiatorName: '', volume: '' };
}

export type Admin = readonly string[];
const discovery = (portal: string, iface: string): Admin => ['-m', 'discoverydb', '-t', 'sendtargets', '-p', portal, '-I', iface];
const node = (portal: string, { iqn, iface }: Target): Admin => ['-m', 'node', '-p', portal, '-T', iqn, '-I', iface];
export const admin = {
  showIface: (iface: string): Admin => ['-m', 'iface', '-I', iface, '-o', 'show'],
  newIface: (iface: string): Admin => ['-m', 'iface', '-I', iface, '-o', 'new'],
  setIface: (iface: string, name: string, value: string): Admin => ['-m', 'iface', '-I', iface, '-o', 'update', '-n', name, '-v', value],
  deleteIface: (iface: string): Admin => ['-m', 'iface', '-I', iface, '-o', 'delete'],
  newDiscovery: (portal: string, iface: string): Admin => [...discovery(portal, iface), '-o', 'new'],
  discover: (portal: string, iface: string): Admin => [...discovery(portal, iface), '--discover'],
  deleteDiscovery: (portal: string, iface: string): Admin => [...discovery(portal, iface), '-o', 'delete'],
  setNode: (portal: string, t: Target, [name, value]: readonly [string, string]): Admin => [
    ...node(portal, t),
    '-o',
    'update',
    '-n',
    name,
    '-v',
    value,
  ],
  login: (portal: string, t: Target): Admin => [...node(portal, t), '--login'],
  logout: (portal: string, t: Target): Admin => [...node(portal, t), '--logout'],
  deleteNode: (portal: string, t: Target): Admin => [...node(portal, t), '-o', 'delete'],
};
/** Only the LUNs that pods ask for are looked at, and nobody logs in again at the next boot of the machine. */
export const NODE_SETTINGS: readonly (readonly [string, string])[] = [
  ['node.session.scan', 'manual'],
  ['node.startup', 'manual'],
];

/** It was not logged in, or has no record: what was asked for is so. */
export function isNothingLeft({ code }: ToolAnswer): boolean {
  return code === 0 || code === SESSION_NOT_FOUND || code === NO_OBJECTS_FOUND;
}
export function isThere({ code }: ToolAnswer): boolean {
  return code === 0 || code === SESSION_EXISTS;
}

/** Fields of an interface as iscsiadm shows them, for a copy of it with an initiator name of its own. */
export function clonedFields(shown: string, initiatorName: string): [string, string][] {
  const fields = new Map<string, string>();
  for (const line of shown.split('\n')) {
    const found = /^(iface\.\S+) = (\S+)$/.exec(line.trim());
    const [, name = '', value = ''] = found ?? [];
    if (name !== '' && value !== '<empty>' && name !== 'iface.iscsi_ifacename') fields.set(name, value);
  }
  fields.set('iface.initiatorname', initiatorName);
  return [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
}
/** 'tcp' where it names none. */
export function transportOf(shown: string): string {
  const named = /iface\.transport_name = (\S+)/.exec(shown)?.[1] ?? '';
  return named === '' || named === '<empty>' ? 'tcp' : named;
}

const CHAP = {
  discovery: 'discovery.sendtargets.auth',
  session: 'node.session.auth',
} as const;
/** Lines of a record of open-iscsi. Of a secret the keys are the names of these fields. */
export function chapFields(of: keyof typeof CHAP, secret: Readonly<Record<string, string>>): [string, string][] {
  const prefix = CHAP[of];
  const own = ['username', 'password', 'username_in', 'password_in'].map((key) => `${prefix}.${key}`);
  return [[`${prefix}.authmethod`, 'CHAP'], ...own.flatMap((key): [string, string][] => (secret[key] ? [[key, secret[key]]] : []))];
}
/** A record with these fields in place of its own: a password on a command line is everybody's to read. Null: one cannot be a line. */
export function withFields(record: string, fields: readonly (readonly [string, string])[]): string | null {
  if (fields.some(([, value]) => /[\n\r\0]/.test(value))) return null;
  const names = new Set(fields.map(([name]) => name));
  const lines = record.split('\n').filter((line) => !names.has(line.split(' = ', 1)[0]?.trim() ?? ''));
  const end = lines.findIndex((line) => line.trim() === '# END RECORD');
  lines.splice(end < 0 ? lines.length : end, 0, ...fields.map(([name, value]) => `${name} = ${value}`));
  return lines.join('\n');
}

/** Where open-iscsi keeps its records, by distribution. */
export const RECORD_HOMES = ['/var/lib/iscsi', '/etc/iscsi'] as const;
/** In names of records `ADDRESS,PORT`. */
export function recordName(portal: string): string {
  const at = portal.lastIndexOf(':');
  return `${portal.slice(0, at).replace(/^\[|\]$/g, '')},${portal.slice(at + 1)}`;
}

/** Names of folders of records may have the number of a portal group behind. */
export function isRecordName(name: string, wanted: string): boolean {
  return name === wanted || (name.startsWith(`${wanted},`) && /^\d+$/.test(name.slice(wanted.length + 1)));
}

/** Name of the link that udev makes to the device of a portal. */
function deviceName(portal: string, { iqn, lun }: Pick<Target, 'iqn' | 'lun'>): string {
  return `ip-${portal.replaceAll(/[[\]]/g, '')}-iscsi-${iqn}-lun-${lun}`;
}
/** The name begins with that of a card where the transport is not tcp. */
export function deviceNamed(
  names: readonly string[],
  portal: string,
  o: Pick<Target, 'iqn' | 'lun'> & { transport: string },
): string | undefined {
  const name = deviceName(portal, o);
  return names.find((n) => (o.transport === 'tcp' ? n === name : n.startsWith('pci-') && n.endsWith(`-${name}`)));
}

/** Enough paths are there, or have been tried for long enough: the rules of the reference. */
export function enoughPaths(o: { found: number; wanted: number; attempt: number }): boolean {
  const { found, wanted, attempt } = o;
  return found === wanted || (found >= 2 && attempt >= 2) || attempt >= 5;
}
