/**
 * How many parts a pod may have. An object of the API server may have 1.5 MiB, which is 50,000 containers, and a node compares
 * the parts of a pod with each other: names with statuses, mounts with volumes, limits with requests. Within these bounds that
 * costs milliseconds. All are far beyond what a pod is known to need; the reference kubelet has none. Pure.
 */
import type { Container } from '../kube/podTable.ts';
import type { Pod } from '../kube/types.ts';
import { podReferences } from './volumes/references.ts';

/**
 * Pods that the sources of a node may name. It refuses most of them for want of places (`maxPods`), but says so of each: the
 * mailboxes on that way have room for a message about each. The API server may have thousands of a node whose places are few.
 */
export const PODS_NAMED_MAX = 32_768;
/** Containers of all kinds, volumes, and each list below. */
export const PARTS_MAX = 500;
/** Names in a list of requests or limits, and claims of devices. */
const RESOURCES_MAX = 64;

/** Each as `path: what`; empty when the pod is within bounds. */
export function beyondBounds(pod: Pod): string[] {
  const { spec } = pod;
  const found: string[] = [];
  const check = (path: string, count: number, max = PARTS_MAX): void => {
    if (count > max) found.push(`${path}: has ${count} entries, at most ${max} are taken`);
  };
  const kinds = ['initContainers', 'containers', 'ephemeralContainers'] as const;
  const containers = kinds.reduce((sum, kind) => sum + (spec[kind]?.length ?? 0), 0);
  if (containers > PARTS_MAX) return [`spec: has ${containers} containers of all kinds, at most ${PARTS_MAX} are taken`];
  for (const field of ['volumes', 'imagePullSecrets', 'readinessGates'] as const) check(`spec.${field}`, spec[field]?.length ?? 0);
  check('spec.securityContext.sysctls', spec.securityContext?.sysctls?.length ?? 0);
  check('spec.resourceClaims', spec.resourceClaims?.length ?? 0, RESOURCES_MAX);
  check('spec.overhead', Object.keys(spec.overhead ?? {}).length, RESOURCES_MAX);
  const resources = (path: string, of: Pod['spec']['resources']): void => {
    for (const kind of ['requests', 'limits'] as const)
      check(`${path}.resources.${kind}`, Object.keys(of?.[kind] ?? {}).length, RESOURCES_MAX);
  };
  resources('spec', spec.resources);
  for (const kind of kinds) {
    for (const [i, c] of (spec[kind] ?? []).entries()) {
      const at = `spec.${kind}[${i}]`;
      resources(at, c.resources);
      for (const field of LISTS) check(`${at}.${field}`, c[field]?.length ?? 0);
    }
  }
  const objects = podReferences(pod).size;
  if (objects > PARTS_MAX) found.push(`spec: names ${objects} Secrets and ConfigMaps, at most ${PARTS_MAX} are taken`);
  return found;
}

const LISTS = [
  'ports',
  'volumeMounts',
  'volumeDevices',
  'envFrom',
  'resizePolicy',
  'restartPolicyRules',
] as const satisfies readonly (keyof Container)[];
