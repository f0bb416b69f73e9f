/**
 * Checksums of the reference's checkpoints. Of allocations: FNV-1a over a text in which values stand with their Go types
 * (resources and volumes 2.1). Of claims: CRC-32.
 */

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** FNV-1a of 32 bits over the bytes of the text in UTF-8. */
export function fnv1a32(text: string): number {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
}

const REVERSED_POLYNOMIAL = 0xedb88320;
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit += 1) c = (c & 1) === 1 ? (c >>> 1) ^ REVERSED_POLYNOMIAL : c >>> 1;
  return c;
});

/** CRC-32 as IEEE 802.3 has it, over the bytes of the text in UTF-8. */
export function crc32(text: string): number {
  let sum = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) sum = (CRC_TABLE[(sum ^ byte) & 0xff] ?? 0) ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

/** A Go map of strings as the dump prints it: keys sorted, no types. */
export function goMap(entries: Iterable<readonly [string, string]>): string {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `map[${sorted.map(([k, v]) => `${k}:${v}`).join(' ')}]`;
}
