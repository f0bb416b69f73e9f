/** Events of a watch, one after the other, in the format in which an API server writes them. */
import protobuf from 'protobufjs';
import { statusFields } from './status.ts';

/** A watch writes one event a line, or each behind its length in four bytes. */
export type Format = 'lines' | 'lengths' | 'unknown';

/** More than any object has. */
const FRAME_BYTES_MAX = 32 * 1024 * 1024;
const LENGTH_BYTES = 4;
const NEWLINE = 0x0a;
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const TYPES = protobuf.Root.fromJSON({
  nested: {
    WatchEvent: { fields: { type: { id: 1, type: 'string' }, object: { id: 2, type: 'RawExtension' } } },
    RawExtension: { fields: { raw: { id: 1, type: 'bytes' } } },
    Unknown: { fields: { typeMeta: { id: 1, type: 'TypeMeta' }, raw: { id: 2, type: 'bytes' } } },
    TypeMeta: { fields: { apiVersion: { id: 1, type: 'string' }, kind: { id: 2, type: 'string' } } },
    Status: {
      fields: {
        status: { id: 2, type: 'string' },
        message: { id: 3, type: 'string' },
        reason: { id: 4, type: 'string' },
        code: { id: 6, type: 'int32' },
      },
    },
  },
});
const encoded = (type: string, of: object): Uint8Array => TYPES.lookupType(type).encode(of).finish();

export function formatOf(type: string, encoding = 'identity'): Format {
  if (encoding !== 'identity') return 'unknown';
  if (type.startsWith(PROTOBUF)) return 'lengths';
  return type.startsWith('application/json') ? 'lines' : 'unknown';
}

/** Whole events of a stream; those of an unknown format are what came at once. */
export class Frames {
  readonly #format: Format;
  #rest: Buffer[] = [];
  #length = 0;

  constructor(format: Format) {
    this.#format = format;
  }

  /** @throws Error where an event is longer than any can be. */
  push(chunk: Buffer): Buffer[] {
    if (this.#format === 'unknown') return [chunk];
    this.#rest.push(chunk);
    this.#length += chunk.length;
    // Parts of a long event are joined once.
    if (this.#format === 'lines' && !chunk.includes(NEWLINE)) return this.#checked();
    if (this.#format === 'lengths' && this.#length < this.#wanted()) return this.#checked();
    let all = Buffer.concat(this.#rest);
    const frames: Buffer[] = [];
    for (let end = this.#end(all); end > 0; end = this.#end(all)) {
      frames.push(all.subarray(0, end));
      all = all.subarray(end);
    }
    this.#rest = all.length === 0 ? [] : [all];
    this.#length = all.length;
    this.#checked();
    return frames;
  }

  /** Of the first event, with its length; as far as it is known. */
  #wanted(): number {
    const first = this.#rest[0];
    return first === undefined || first.length < LENGTH_BYTES ? LENGTH_BYTES : LENGTH_BYTES + first.readUInt32BE(0);
  }

  /** 0: the event has not ended. */
  #end(all: Buffer): number {
    if (this.#format === 'lines') return all.indexOf(NEWLINE) + 1;
    if (all.length < LENGTH_BYTES) return 0;
    const end = LENGTH_BYTES + all.readUInt32BE(0);
    return all.length < end ? 0 : end;
  }

  #checked(): Buffer[] {
    if (this.#length > FRAME_BYTES_MAX) throw new Error(`an event of a watch has more than ${FRAME_BYTES_MAX} bytes`);
    return [];
  }
}

const EXPIRED = { code: 410, reason: 'Expired', message: 'The resourceVersion for the provided watch is too old.' };

/** The event of type ERROR with which an API server says 410; null: in an unknown format. */
export function expiredFrame(format: Format): Buffer | null {
  if (format === 'unknown') return null;
  if (format === 'lines') return Buffer.from(`${JSON.stringify({ type: 'ERROR', object: statusFields(EXPIRED) })}\n`);
  const status = encoded('Status', { status: 'Failure', ...EXPIRED });
  const unknown = encoded('Unknown', { typeMeta: { apiVersion: 'v1', kind: 'Status' }, raw: status });
  const raw = Buffer.concat([Buffer.from('k8s\0'), unknown]);
  const event = encoded('WatchEvent', { type: 'ERROR', object: { raw } });
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}
