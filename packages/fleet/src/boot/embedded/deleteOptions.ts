/** DeleteOptions in protobuf, which is how `kubectl drain` sends them: the one body that is read in it. */
import protobuf from 'protobufjs';

const MAGIC = 'k8s\0';
/** As much of `runtime.Unknown` and `meta/v1` as is read. */
const TYPES = protobuf.Root.fromJSON({
  nested: {
    Unknown: { fields: { raw: { id: 2, type: 'bytes' } } },
    DeleteOptions: {
      fields: {
        gracePeriodSeconds: { id: 1, type: 'int64' },
        preconditions: { id: 2, type: 'Preconditions' },
        dryRun: { id: 5, type: 'string', rule: 'repeated' },
      },
    },
    Preconditions: { fields: { uid: { id: 1, type: 'string' }, resourceVersion: { id: 2, type: 'string' } } },
  },
});
const UNKNOWN = TYPES.lookupType('Unknown');
const DELETE_OPTIONS = TYPES.lookupType('DeleteOptions');

/** As in JSON. @throws Error where it is none. */
export function deleteOptionsOf(body: Buffer): Record<string, unknown> {
  if (body.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error('is no protobuf of Kubernetes');
  const { raw = new Uint8Array() } = UNKNOWN.toObject(UNKNOWN.decode(body.subarray(MAGIC.length))) as { raw?: Uint8Array };
  return DELETE_OPTIONS.toObject(DELETE_OPTIONS.decode(raw), { longs: Number });
}
