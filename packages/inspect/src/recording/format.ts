/**
 * The bytes of a recording: frames one after another, each a header of 16 bytes and a JSON text. A frame that a crash cut
 * short, or that was damaged, is skipped: the next header is looked for. Pure.
 *
 * Header, little endian: magic, length of the text, CRC-32 of the text, CRC-32 of the 12 bytes before.
 */
import { crc32 } from './crc32.ts';

/** `ARF1`: actorlet recording, format 1. */
const MAGIC = [0x41, 0x52, 0x46, 0x31] as const;
export const HEADER_BYTES = 16;
/** The longest text of one frame. The writer splits what is longer; the reader takes a longer one for damage. */
export const FRAME_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that may be checksummed in vain per byte of the file, so that a hostile file costs time in proportion to its size. */
const WASTE_FACTOR = 2;

const encoder = new TextEncoder();

/** @throws for a text longer than {@link FRAME_BYTES_MAX}. */
export function frameOf(value: unknown): Uint8Array {
  const text = encoder.encode(JSON.stringify(value));
  if (text.length > FRAME_BYTES_MAX) throw new RangeError(`a frame of ${text.length} bytes; at most ${FRAME_BYTES_MAX} are allowed`);
  const frame = new Uint8Array(HEADER_BYTES + text.length);
  frame.set(MAGIC, 0);
  const head = new DataView(frame.buffer);
  head.setUint32(4, text.length, true);
  head.setUint32(8, crc32(text), true);
  head.setUint32(12, crc32(frame, 0, 12), true);
  frame.set(text, HEADER_BYTES);
  return frame;
}

/** Whether a file that begins like this is a recording. An empty one may become one. */
export function beginsLikeRecording(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => i >= bytes.length || bytes[i] === byte);
}

export interface Scanned {
  /** Where the texts of whole frames are: [from, to). */
  frames: { from: number; to: number }[];
  /** Bytes that belong to no whole frame. */
  damagedBytes: number;
  /** Bytes that were checksummed; at most a small multiple of the file's size. */
  checkedBytes: number;
  /** True: so much was damaged that the search was given up, and frames may be missing. */
  gaveUp: boolean;
}

/** Finds every whole frame, in time and memory proportional to `bytes`. */
export function scan(bytes: Uint8Array): Scanned {
  const out: Scanned = { frames: [], damagedBytes: 0, checkedBytes: 0, gaveUp: false };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let wasted = 0;
  let at = 0;
  while (at < bytes.length) {
    const end = frameEnd(bytes, { view, at, out });
    if (end > 0) {
      out.frames.push({ from: at + HEADER_BYTES, to: end });
      at = end;
      continue;
    }
    // Minus: bytes that were checksummed and were no frame.
    wasted -= end;
    const next = wasted > bytes.length * WASTE_FACTOR ? -1 : nextMagic(bytes, at + 1);
    if (next < 0) {
      out.gaveUp = wasted > bytes.length * WASTE_FACTOR;
      out.damagedBytes += bytes.length - at;
      return out;
    }
    out.damagedBytes += next - at;
    at = next;
  }
  return out;
}

/** Where the frame at `at` ends; zero or less when there is none, minus the bytes that were checksummed to find out. */
function frameEnd(bytes: Uint8Array, o: { view: DataView; at: number; out: Scanned }): number {
  const { view, at, out } = o;
  if (at + HEADER_BYTES > bytes.length || !MAGIC.every((byte, i) => bytes[at + i] === byte)) return 0;
  out.checkedBytes += HEADER_BYTES;
  if (crc32(bytes, at, at + 12) !== view.getUint32(at + 12, true)) return -HEADER_BYTES;
  const length = view.getUint32(at + 4, true);
  const from = at + HEADER_BYTES;
  if (length > FRAME_BYTES_MAX || from + length > bytes.length) return -HEADER_BYTES;
  out.checkedBytes += length;
  return crc32(bytes, from, from + length) === view.getUint32(at + 8, true) ? from + length : -(HEADER_BYTES + length);
}

/** -1: none. */
function nextMagic(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(MAGIC[0], from); at >= 0; at = bytes.indexOf(MAGIC[0], at + 1)) {
    if (MAGIC.every((byte, i) => bytes[at + i] === byte)) return at;
  }
  return -1;
}
