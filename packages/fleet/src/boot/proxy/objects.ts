/** One object out of a list, in the format in which an API server wrote it: JSON, or the protobuf of built-in kinds. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import protobuf from 'protobufjs';

const MAGIC = Buffer.from('k8s\0');
/** As much of `runtime.Unknown` and of lists as is read. All lists have their items in field 2. */
const TYPES = protobuf.Root.fromJSON({
  nested: {
    Unknown: {
      fields: {
        typeMeta: { id: 1, type: 'TypeMeta' },
        raw: { id: 2, type: 'bytes' },
        // Empty, and written all the same.
        contentEncoding: { id: 3, type: 'string' },
        contentType: { id: 4, type: 'string' },
      },
    },
    TypeMeta: { fields: { apiVersion: { id: 1, type: 'string' }, kind: { id: 2, type: 'string' } } },
    List: { fields: { items: { id: 2, type: 'bytes', rule: 'repeated' } } },
  },
});
const UNKNOWN = TYPES.lookupType('Unknown');
const LIST = TYPES.lookupType('List');
interface Unknown {
  typeMeta?: { apiVersion?: string; kind?: string };
  raw?: Uint8Array;
}

/** Null: the list is empty. @throws Error where it is no list. */
export function firstOf(type: string, body: Buffer): Buffer | null {
  return type.startsWith('application/vnd.kubernetes.protobuf') ? firstInProtobuf(body) : firstInJson(body);
}

function firstInJson(body: Buffer): Buffer | null {
  const list: unknown = JSON.parse(body.toString('utf8'));
  if (!isRecord(list)) throw new Error('is no list');
  // kubectl's table of one row has the form of that of the object.
  if (list.kind === 'Table') return Array.isArray(list.rows) && list.rows.length > 0 ? body : null;
  if (!Array.isArray(list.items)) throw new Error('is no list');
  const [item] = list.items as unknown[];
  if (!isRecord(item)) return null;
  return Buffer.from(`${JSON.stringify({ kind: kindIn(String(list.kind)), apiVersion: list.apiVersion, ...item })}\n`);
}

function firstInProtobuf(body: Buffer): Buffer | null {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) throw new Error('is no protobuf of Kubernetes');
  const list = UNKNOWN.decode(body.subarray(MAGIC.length)) as unknown as Unknown;
  const { typeMeta = {}, raw = new Uint8Array() } = list;
  const { items = [] } = LIST.decode(raw) as unknown as { items?: Uint8Array[] };
  const [item] = items;
  if (item === undefined) return null;
  const object: Unknown = { ...list, typeMeta: { apiVersion: typeMeta.apiVersion ?? '', kind: kindIn(typeMeta.kind ?? '') }, raw: item };
  return Buffer.concat([MAGIC, UNKNOWN.encode(object as object).finish()]);
}

function kindIn(list: string): string {
  return list.replace(/List$/, '');
}
