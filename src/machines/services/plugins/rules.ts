/** Which plugin may register as what (resources and volumes 10). Pure. */

import { dnsSubdomain, labelValue, qualifiedName } from '../../kube/names.ts';
import { type Built, built, refused } from '../../result.ts';
import { goQuote } from '../../text/go/goQuote.ts';
import type { CsiCalls, PluginInfo } from '../../wire/csi.ts';
import type { CsiDriver } from './messages.ts';

const CSI_PLUGIN = 'CSIPlugin';
const MAJOR_MAX = 1;
/** What the API server takes: what it refuses of one driver, it refuses of all in one CSINode. */
const NAME_CHARS_MAX = 63;
const NODE_ID_BYTES_MAX = 256;
/** They become labels of the node, of which all together have a bound. */
const TOPOLOGY_KEYS_MAX = 64;

type Version = readonly [major: number, minor: number, patch: number];

function parse(text: string): Version | null {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+.].*)?$/.exec(text.trim());
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}
function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/** The highest version that this node understands of those a driver names. */
export function csiVersion(versions: readonly string[]): Built<string> {
  if (versions.length === 0) return refused('CSI driver reporting empty array for supported versions');
  const known = versions.flatMap((text) => {
    const version = parse(text);
    return version === null || version[0] > MAJOR_MAX ? [] : [{ text, version }];
  });
  const [best] = known.sort((a, b) => compare(b.version, a.version));
  const said = `[${versions.join(' ')}]`;
  if (best === undefined) return refused(`none of the versions ${said} that the driver names can be used: this node speaks 1.x`);
  if (best.version[0] !== 1) return refused(`unsupported versions ${said}: this node speaks 1.x`);
  return built(best.text);
}

/** The plugin that has a name, by the name. `socket`: the one it registered through. */
export type Names = ReadonlyMap<string, { socket: string; version: string }>;

export type Admitted = Pick<CsiDriver, 'name' | 'socket' | 'endpoint' | 'version'>;

/** What kind of driver is behind a socket, or why it may not register. */
export function admitDriver(info: PluginInfo, socket: string, names: Names): Built<Admitted> {
  const { name } = info;
  if (info.type !== CSI_PLUGIN) return refused(`no handler registered for plugin type "${info.type}" at socket ${socket}`);
  if (name.length > NAME_CHARS_MAX || dnsSubdomain(name.toLowerCase()) !== null)
    return refused(`"${name}" cannot be the name of a CSI driver`);
  const version = csiVersion(info.supportedVersions);
  if (!version.ok) return refused(`CSI driver ${name}: ${version.message}`);
  const holder = names.get(name);
  if (holder !== undefined && holder.socket !== socket) {
    const [theirs, ours] = [parse(holder.version), parse(version.value)];
    if (theirs !== null && ours !== null && compare(theirs, ours) >= 0) {
      return refused(
        `CSI driver ${name} is already registered with version ${holder.version} through ${holder.socket}: only a higher version may take its place`,
      );
    }
  }
  const endpoint = info.endpoint === '' ? socket : info.endpoint;
  return built({ name, socket, endpoint, version: version.value });
}

/** What a driver says about the node it is on. */
export function describeDriver(who: Admitted, info: CsiCalls['NodeGetInfo']['response']): Built<CsiDriver> {
  const topology = { ...info.accessibleTopology?.segments };
  const labels = Object.entries(topology);
  const bad = labels.find(([key, value]) => (qualifiedName(key) ?? labelValue(value)) !== null);
  if (info.nodeId === '') return refused(`CSI driver ${who.name} gave an empty node id`);
  if (new TextEncoder().encode(info.nodeId).length > NODE_ID_BYTES_MAX) return refused(`CSI driver ${who.name} gave too long a node id`);
  if (labels.length > TOPOLOGY_KEYS_MAX) return refused(`CSI driver ${who.name} gave ${labels.length} keys of its topology`);
  if (bad !== undefined) return refused(`CSI driver ${who.name} gave what is no label for its topology: ${goQuote(bad.join('='))}`);
  const volumesMax = Math.min(Math.max(0, Number(info.maxVolumesPerNode) || 0), 2 ** 31 - 1);
  return built({ ...who, nodeId: info.nodeId, volumesMax, topology });
}
