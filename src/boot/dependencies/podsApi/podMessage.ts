/** A pod as its JSON says it, serialized as the message Pod of core/v1 (`proto/pods/pod.proto`). Unknown fields are left out. */
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import { canonicalQuantity } from '../../../machines/kube/quantity.ts';
import { isRecord } from '../../../machines/shape/conform.ts';

/** Messages whose fields JSON keeps in the object above them, by the name of their field. */
const INLINE: ReadonlySet<string> = new Set(['volumeSource', 'handler', 'localObjectReference', 'ephemeralContainerCommon']);
const NANOS_PER_MS = 1_000_000;

export type PodSerializer = (pod: object) => Uint8Array;

/** @throws Error where the file cannot be read. */
export function podSerializer(protoFile: string): PodSerializer {
  const { root } = protobuf.parse(readFileSync(protoFile, 'utf8'), new protobuf.Root(), { keepCase: true });
  root.resolveAll();
  const type = root.lookupType('core.v1.Pod');
  return (pod) => type.encode(type.fromObject(fieldsOf(type, pod))).finish();
}

function fieldsOf(type: protobuf.Type, json: object): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    const value: unknown = INLINE.has(field.name) ? json : Reflect.get(json, field.name);
    if (value === undefined || value === null) continue;
    if (field instanceof protobuf.MapField) {
      if (isRecord(value)) out[field.name] = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, oneValue(field, one)]));
    } else if (!field.repeated) out[field.name] = oneValue(field, value);
    else if (Array.isArray(value)) out[field.name] = value.map((one: unknown) => oneValue(field, one));
  }
  return out;
}

function oneValue({ resolvedType: type }: protobuf.Field, value: unknown): unknown {
  if (!(type instanceof protobuf.Type)) return value;
  switch (type.name) {
    case 'Quantity':
      return { string: canonicalQuantity(String(value)) };
    case 'Time':
      return timeOf(String(value));
    case 'IntOrString':
      return typeof value === 'number' ? { type: 0, intVal: value } : { type: 1, strVal: String(value) };
    default:
      return isRecord(value) ? fieldsOf(type, value) : {};
  }
}

function timeOf(text: string): { seconds: number; nanos: number } {
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) return { seconds: 0, nanos: 0 };
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * NANOS_PER_MS };
}
