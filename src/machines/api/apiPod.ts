/** Pods as the API server gives them. Pure. */
import type { Pod } from '../k8s.ts';
import { PARTS_MAX } from '../pods/bounds.ts';
import { isKubeObject, isKubeRecord, slim } from './kube.ts';

/**
 * Null when it is no pod at all. The server has validated and defaulted it; what is said here again is what a member of
 * a list leaves out.
 */
export function toApiPod(value: unknown): Pod | null {
  if (!isKubeObject(value)) return null;
  const { metadata, spec, status } = slim(value);
  if (typeof metadata.uid !== 'string' || typeof metadata.namespace !== 'string') return null;
  if (!isKubeRecord(spec) || !Array.isArray(spec.containers)) return null;
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: isKubeRecord(status) ? status : {} } as unknown as Pod;
  return withinBounds(pod);
}

/**
 * Ephemeral containers come while the pod runs, after it was let in: those that would take it out of bounds are not seen. One
 * without any is judged at admission.
 */
function withinBounds(pod: Pod): Pod {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const room = Math.max(0, PARTS_MAX - containers.length - initContainers.length);
  if (ephemeralContainers.length <= room) return pod;
  return { ...pod, spec: { ...pod.spec, ephemeralContainers: ephemeralContainers.slice(0, room) } };
}
