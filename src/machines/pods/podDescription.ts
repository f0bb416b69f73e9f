/** How messages name a pod, and a part of it. */
import type { RecordedEvent } from '../protocol.ts';

/** `name_namespace(uid)`, the form used in the kubelet's messages. */
export function podDescription(pod: { metadata: { name: string; namespace: string; uid: string } }): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
}

/** With the part of the pod that it is about, as kubectl shows it. */
export function eventMessage({ fieldPath = '', message }: Pick<RecordedEvent, 'fieldPath' | 'message'>): string {
  return fieldPath === '' ? message : `${fieldPath}: ${message}`;
}
