/** IP addresses of the node and of pods, by family. */

export function isIPv6(ip: string): boolean {
  return ip.includes(':');
}

/** The first address and the first of the other family: a node or a pod shows one of each. */
export function onePerFamily(ips: readonly string[]): string[] {
  const [first] = ips;
  if (first === undefined) return [];
  const other = ips.find((ip) => isIPv6(ip) !== isIPv6(first));
  return other === undefined ? [first] : [first, other];
}
