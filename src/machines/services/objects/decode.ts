/** Secrets and config maps as the API gives them, decoded. What is wrong is said without its content. Pure. */

import { fromBase64 } from '../../data/base64.ts';
import { put } from '../../data/own.ts';
import type { ApiConfigMap, ApiObject, ApiSecret } from '../../kube/objects.ts';
import { type KubeObject, UNREADABLE } from '../../kube/request.ts';
import type { ObjectRef } from '../../pod/volumes/references.ts';
import { isRecord } from '../../shape/conform.ts';
import { textOf } from '../../shape/lenient.ts';

export type DecodedObject = { ok: true; value: ApiObject; immutable: boolean } | { ok: false; message: string };

/** `binaryData` of a config map. Null: some value of it is no base64 text. */
function binary(map: unknown): Record<string, Uint8Array> | null {
  const out: Record<string, Uint8Array> = {};
  for (const [key, value] of Object.entries(isRecord(map) ? map : {})) {
    const bytes = typeof value === 'string' ? fromBase64(value) : null;
    if (bytes === null) return null;
    put(out, key, bytes);
  }
  return out;
}

export function decodeObject(ref: ObjectRef, object: KubeObject): DecodedObject {
  const immutable = object.immutable === true;
  const unreadable = object[UNREADABLE];
  if (unreadable !== undefined) {
    return { ok: false, message: `${ref.kind === 'secret' ? 'secret' : 'configmap'} "${ref.name}" cannot be read: ${unreadable}` };
  }
  const malformed = (): DecodedObject => ({
    ok: false,
    message: `${ref.kind === 'secret' ? 'secret' : 'configmap'} "${ref.name}" holds data that is not base64 text`,
  });
  if (ref.kind === 'secret') {
    const data = binary(object.data);
    if (data === null) return malformed();
    const { uid = '' } = object.metadata;
    const value: ApiSecret = { uid, type: textOf(object.type), data };
    return { ok: true, value, immutable };
  }
  const binaryData = binary(object.binaryData);
  if (binaryData === null) return malformed();
  const data: Record<string, string> = {};
  for (const [key, value] of Object.entries(isRecord(object.data) ? object.data : {})) if (typeof value === 'string') put(data, key, value);
  const value: ApiConfigMap = { data, binaryData };
  return { ok: true, value, immutable };
}
