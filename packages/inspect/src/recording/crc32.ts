/** CRC-32 (the polynomial of gzip and PNG): finds bytes that a crash or a bad disk has changed. Pure. */
const POLYNOMIAL = 0xedb88320;

function tableOf(): Uint32Array {
  const table = new Uint32Array(256);
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let bit = 0; bit < 8; bit++) c = (c & 1) === 1 ? POLYNOMIAL ^ (c >>> 1) : c >>> 1;
    table[n] = c;
  }
  return table;
}
const TABLE: Uint32Array = tableOf();

/** The checksum of `bytes[from..to)`. */
export function crc32(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let crc = 0xffffffff;
  for (let i = from; i < to; i++) crc = (TABLE[(crc ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
