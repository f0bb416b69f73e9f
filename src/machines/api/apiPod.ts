/** Pods as the API server gives them. Pure. */
import type { Pod } from '../k8s.ts';
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
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: isKubeRecord(status) ? status : {} } as unknown as Pod;
}
