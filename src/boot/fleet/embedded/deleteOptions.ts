/** DeleteOptions in protobuf, which is how `kubectl drain` sends them: the one body that is read in it. */

const MAGIC = 'k8s\0';
/** Fields by number, of `runtime.Unknown`, `meta/v1.DeleteOptions` and `meta/v1.Preconditions`. */
const [RAW, GRACE, PRECONDITIONS, UID, RESOURCE_VERSION] = [2, 1, 2, 1, 2];

/** As in JSON. @throws Error where it is none. */
export function deleteOptionsOf(body: Buffer): Record<string, unknown> {
  if (body.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error('is no protobuf of Kubernetes');
  const options = fieldsOf(bytesOf(fieldsOf(body.subarray(MAGIC.length)), RAW));
  const preconditions = fieldsOf(bytesOf(options, PRECONDITIONS));
  const grace = options.get(GRACE);
  const uid = bytesOf(preconditions, UID).toString();
  const resourceVersion = bytesOf(preconditions, RESOURCE_VERSION).toString();
  return {
    ...(Number.isSafeInteger(grace) ? { gracePeriodSeconds: grace } : {}),
    preconditions: { ...(uid === '' ? {} : { uid }), ...(resourceVersion === '' ? {} : { resourceVersion }) },
  };
}

type Fields = ReadonlyMap<number, number | Buffer>;

function bytesOf(fields: Fields, field: number): Buffer {
  const value = fields.get(field);
  return typeof value === 'object' ? value : Buffer.alloc(0);
}

function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, number | Buffer>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('ends inside a field');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const [field, type] = [Math.floor(key / 8), key % 8];
    if (type !== 0 && type !== 2) throw new Error(`has a field of type ${type}`);
    const value = varint();
    if (type === 2 && at + value > bytes.length) throw new Error('ends inside a field');
    fields.set(field, type === 0 ? value : bytes.subarray(at, at + value));
    if (type === 2) at += value;
  }
  return fields;
}
