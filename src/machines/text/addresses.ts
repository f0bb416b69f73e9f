/** Addresses of either family, as text. */

/** One spelling per address; null for what is none. */
export function canonicalIp(text: string): string | null {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const parts = text.split('.').map(Number);
    return parts.every((n) => n <= 255) ? parts.join('.') : null;
  }
  if (!text.includes(':') || !/^[0-9a-fA-F:.]+$/.test(text)) return null;
  const url = URL.parse(`http://[${text}]/`);
  return url === null ? null : url.hostname.slice(1, -1);
}

function isIPv6(ip: string): boolean {
  return ip.includes(':');
}

/** The first address and the first of the other family: a node or a pod shows one of each. */
export function onePerFamily(ips: readonly string[]): string[] {
  const [first] = ips;
  if (first === undefined) return [];
  const other = ips.find((ip) => isIPv6(ip) !== isIPv6(first));
  return other === undefined ? [first] : [first, other];
}

/** Addresses of a pod as its status and its containers are told them: one of each family. */
export function podAddresses(ips: readonly string[], { ipv6First = false }: { ipv6First?: boolean }): string[] {
  return onePerFamily([...ips].sort((a, b) => Number(isIPv6(a) !== ipv6First) - Number(isIPv6(b) !== ipv6First)));
}
