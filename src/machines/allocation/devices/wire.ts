/** The bytes of a ContainerAllocateResponse (`proto/deviceplugin`), which the checkpoint keeps. Pure. */
import type { ContainerResponse } from './types.ts';

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

type Entry = readonly [field: number, value: string | boolean | readonly Entry[]];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function varint(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) out.push((rest % 0x80) | 0x80);
  return [...out, rest];
}
/** Empty texts and `false` are what is not there, as the protocol has it. */
function encodeEntries(entries: readonly Entry[]): number[] {
  return entries.flatMap(([field, value]) => {
    if (value === '' || value === false) return [];
    if (value === true) return [...varint(field * 8 + VARINT), 1];
    const bytes = typeof value === 'string' ? [...encoder.encode(value)] : encodeEntries(value);
    return [...varint(field * 8 + BYTES), ...varint(bytes.length), ...bytes];
  });
}
function pairs(field: number, map: Readonly<Record<string, string>>): Entry[] {
  return Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => [
      field,
      [
        [1, key],
        [2, value],
      ],
    ]);
}

export function encodeResponse(r: ContainerResponse): Uint8Array {
  return Uint8Array.from(
    encodeEntries([
      ...pairs(1, r.envs),
      ...r.mounts.map(
        (m): Entry => [
          2,
          [
            [1, m.containerPath],
            [2, m.hostPath],
            [3, m.readOnly],
          ],
        ],
      ),
      ...r.devices.map(
        (d): Entry => [
          3,
          [
            [1, d.containerPath],
            [2, d.hostPath],
            [3, d.permissions],
          ],
        ],
      ),
      ...pairs(4, r.annotations),
      ...r.cdiDevices.map((name): Entry => [5, [[1, name]]]),
    ]),
  );
}

interface Field {
  number: number;
  /** Value of a varint; 0 for others. */
  value: number;
  bytes: Uint8Array;
}
const NO_BYTES = new Uint8Array();

/** @throws Error on bytes that are no message. */
function fields(bytes: Uint8Array): Field[] {
  const found: Field[] = [];
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[at++];
      if (byte === undefined || scale > Number.MAX_SAFE_INTEGER) throw new Error('the bytes of an answer of a device plugin are torn');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new Error('the bytes of an answer of a device plugin are torn');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = next();
    const number = Math.floor(tag / 8);
    switch (tag % 8) {
      case VARINT:
        found.push({ number, value: next(), bytes: NO_BYTES });
        break;
      case BYTES:
        found.push({ number, value: 0, bytes: take(next()) });
        break;
      // Fields of a later version, whatever they mean.
      case FIXED64:
        take(8);
        break;
      case FIXED32:
        take(4);
        break;
      default:
        throw new Error('the bytes of an answer of a device plugin are of no known kind');
    }
  }
  return found;
}

/** @throws Error on bytes that are no message. */
export function decodeResponse(bytes: Uint8Array): ContainerResponse {
  const all = fields(bytes);
  const of = (number: number) => all.filter((f) => f.number === number).map((f) => fields(f.bytes));
  const text = (inside: readonly Field[], number: number) => decoder.decode(inside.findLast((f) => f.number === number)?.bytes ?? NO_BYTES);
  const map = (number: number) => Object.fromEntries(of(number).map((f) => [text(f, 1), text(f, 2)]));
  return {
    envs: map(1),
    mounts: of(2).map((f) => ({
      containerPath: text(f, 1),
      hostPath: text(f, 2),
      readOnly: f.findLast((x) => x.number === 3)?.value === 1,
    })),
    devices: of(3).map((f) => ({ containerPath: text(f, 1), hostPath: text(f, 2), permissions: text(f, 3) })),
    annotations: map(4),
    cdiDevices: of(5).map((f) => text(f, 1)),
  };
}
