/** `name_namespace(uid)`, the form used in the kubelet's messages. */
export function podDescription(pod: { metadata: { name: string; namespace: string; uid: string } }): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
}
