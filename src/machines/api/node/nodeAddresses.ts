/** Which addresses a node has (boot-and-node 9.5): given by flag, else that of its name, else that of its default route. Pure. */
import { canonicalIp } from '../../text/addresses.ts';
import type { ReportedAddress } from '../certificates/messages.ts';

/** An address of this machine that peers can reach: not loopback, link-local, multicast or unspecified. */
export interface HostAddress {
  ip: string;
  family: 4 | 6;
  interface: string;
}
export interface AddressFacts {
  /** `--node-ip`. */
  nodeIPs: readonly string[];
  nodeName: string;
  /** Addresses of the node's name, in the resolver's order. */
  resolved: readonly string[];
  addresses: readonly HostAddress[];
  /** Text of /proc/net/route; '' where there is none. */
  routes4: string;
  /** Text of /proc/net/ipv6_route; '' where there is none. */
  routes6: string;
}

/** Where a machine whose links have no address of their own has it. */
const LOOPBACK = 'lo';
const ROUTE_UP = 0x1;
const ROUTE_REJECT = 0x200;
const NO_ADDRESS_6 = '0'.repeat(32);

/** `0.0.0.0` or `::`: any address of that family. */
export function isUnspecified(ip: string): boolean {
  return /^[0.:]+$/.test(ip);
}

/** The configuration names addresses, not only their family. */
export function namesAddresses(nodeIPs: readonly string[]): boolean {
  return nodeIPs[0] !== undefined && !isUnspecified(nodeIPs[0]);
}

/** The first is the node's own; a second is of the other family, and there only where both were named. */
export function chooseNodeIPs(f: AddressFacts): string[] {
  if (namesAddresses(f.nodeIPs)) return [...f.nodeIPs];
  if (canonicalIp(f.nodeName) !== null) return [f.nodeName];
  const families: readonly (4 | 6)[] = f.nodeIPs[0]?.includes(':') ? [6, 4] : [4, 6];
  const ofName = f.resolved.flatMap((ip) => f.addresses.filter((a) => canonicalIp(a.ip) === canonicalIp(ip)));
  const ofRoutes = [...defaultRoutes4(f.routes4), ...defaultRoutes6(f.routes6)].flatMap(({ via, family }) =>
    [via, LOOPBACK].flatMap((name) => f.addresses.filter((a) => a.interface === name && a.family === family)),
  );
  for (const candidates of [ofName, ofRoutes, f.addresses]) {
    for (const family of families) {
      const found = candidates.find((a) => a.family === family);
      if (found !== undefined) return [found.ip];
    }
  }
  return [];
}

/** Of a node whose object has its addresses from the controller of its cloud: those, internal ones first. */
export function addressesByCloud(shown: readonly ReportedAddress[]): string[] {
  const of = (wanted: string) => shown.flatMap(({ type, address }) => (type === wanted && canonicalIp(address) !== null ? [address] : []));
  return [...of('InternalIP'), ...of('ExternalIP')];
}

interface DefaultRoute {
  via: string;
  family: 4 | 6;
  metric: number;
}

/** Columns: interface, destination, gateway, flags, references, use, metric, mask, ...; addresses in hexadecimal. */
function defaultRoutes4(text: string): DefaultRoute[] {
  return byMetric(
    rows(text).flatMap(([via = '', destination, , flags, , , metric, mask]) =>
      destination === '00000000' && mask === '00000000' && works(flags) ? [{ via, family: 4 as const, metric: Number(metric) }] : [],
    ),
  );
}

/** Columns: destination, its length, source, its length, gateway, metric, references, use, flags, interface; all in hexadecimal. */
function defaultRoutes6(text: string): DefaultRoute[] {
  return byMetric(
    rows(text).flatMap(([destination, length, , , gateway, metric = '', , , flags, via = '']) =>
      destination === NO_ADDRESS_6 && length === '00' && gateway !== NO_ADDRESS_6 && works(flags)
        ? [{ via, family: 6 as const, metric: Number.parseInt(metric, 16) }]
        : [],
    ),
  );
}

function works(flags: string | undefined): boolean {
  const bits = Number.parseInt(flags ?? '', 16);
  return (bits & ROUTE_UP) !== 0 && (bits & ROUTE_REJECT) === 0;
}
function byMetric(routes: DefaultRoute[]): DefaultRoute[] {
  return routes.sort((a, b) => a.metric - b.metric);
}
function rows(text: string): string[][] {
  return text.split('\n').map((line) => line.trim().split(/\s+/));
}
