/** A minimal ustar writer: enough to build image layers and docker archives in memory. */

export type TarEntry =
  | { kind: 'file'; path: string; data: Uint8Array; mode?: number }
  | { kind: 'dir'; path: string; mode?: number }
  | { kind: 'symlink' | 'link'; path: string; target: string }
  | { kind: 'char'; path: string; major: number; minor: number; mode?: number };

const BLOCK = 512;
const TYPE: Readonly<Record<TarEntry['kind'], string>> = { file: '0', link: '1', symlink: '2', char: '3', dir: '5' };

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(entry.path) > 100) throw new Error(`path too long for this writer: ${entry.path}`);
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
  block.write(entry.path, 0);
  octal('target' in entry ? 0o777 : (entry.mode ?? (entry.kind === 'dir' ? 0o755 : 0o644)), 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.kind === 'file' ? entry.data.length : 0, 124, 12);
  octal(0, 136, 12);
  block.write('        ', 148);
  block.write(TYPE[entry.kind], 156);
  if ('target' in entry) block.write(entry.target, 157);
  block.write('ustar\x0000', 257, 'latin1');
  if (entry.kind === 'char') {
    octal(entry.major, 329, 8);
    octal(entry.minor, 337, 8);
  }
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Times are zero, so equal input gives equal bytes (and an equal image digest). */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    parts.push(header(entry));
    if (entry.kind !== 'file') continue;
    parts.push(Buffer.from(entry.data));
    parts.push(Buffer.alloc((BLOCK - (entry.data.length % BLOCK)) % BLOCK));
  }
  parts.push(Buffer.alloc(BLOCK * 2));
  return Buffer.concat(parts);
}
