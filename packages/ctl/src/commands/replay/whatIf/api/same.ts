/** Whether two objects of the API say the same. */
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { listKey } from './merge.ts';

/** But for the version, fields that say nothing, and the order of a list whose members have keys. */
export function sameBut(a: KubeObject, b: KubeObject): boolean {
  return sameData(plainOf(a), plainOf(b));
}

function plainOf({ metadata, ...object }: KubeObject): unknown {
  const { resourceVersion: _, managedFields: __, ...own } = metadata;
  return inOrder({ ...object, metadata: own });
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) {
    const all = value.map(inOrder);
    const key = listKey(all);
    return key === undefined ? all : Object.fromEntries(all.map((one) => [String((one as Readonly<Record<string, unknown>>)[key]), one]));
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (one === null || one === undefined ? [] : [[key, inOrder(one)]])),
  );
}
