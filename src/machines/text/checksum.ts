/**
 * The checksum of the reference's allocation checkpoints: FNV-1a over a text in which values stand with their Go types
 * (resources and volumes 2.1).
 */

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** FNV-1a of 32 bits over the bytes of the text in UTF-8. */
export function fnv1a32(text: string): number {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
}

/** A Go map of strings as the dump prints it: keys sorted, no types. */
export function goMap(entries: Iterable<readonly [string, string]>): string {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `map[${sorted.map(([k, v]) => `${k}:${v}`).join(' ')}]`;
}
