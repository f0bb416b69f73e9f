/**
 * References of a static pod to objects of the API: since 1.34 such a manifest is refused when the gate
 * PreventStaticPodAPIReferences is on (spec: pod lifecycle 1.2). Pure.
 */

import type { Volume } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { isRecord } from '../../shape/conform.ts';

/** Volume kinds that live on an API object. Of `csi` it is the CSIDriver, of `glusterfs` the Endpoints. */
const VOLUMES = ['secret', 'configMap', 'persistentVolumeClaim', 'ephemeral', 'csi', 'glusterfs', 'azureFile'];
const PROJECTED = ['secret', 'configMap', 'serviceAccountToken', 'clusterTrustBundle', 'podCertificate'];
/** Names of fields inside the other volume sources that point at a secret. */
const SECRET_FIELDS = ['secretRef', 'nodePublishSecretRef', 'secretName'];

function ofVolume(volume: Volume, path: string): string[] {
  const found: string[] = [];
  for (const [kind, source] of Object.entries(volume)) {
    if (VOLUMES.includes(kind)) found.push(`${path}.${kind}`);
    if (!isRecord(source) || VOLUMES.includes(kind)) continue;
    if (kind === 'projected' && Array.isArray(source.sources)) {
      source.sources.forEach((s: unknown, i) => {
        for (const part of PROJECTED) if (isRecord(s) && s[part] !== undefined) found.push(`${path}.projected.sources[${i}].${part}`);
      });
    }
    for (const field of SECRET_FIELDS) if (source[field] !== undefined) found.push(`${path}.${kind}.${field}`);
  }
  return found;
}

/** Paths of everything in the pod that only an API server could resolve. */
export function apiReferences(pod: Pod): string[] {
  const { spec } = pod;
  const found: string[] = [];
  if (spec.serviceAccountName) found.push('spec.serviceAccountName');
  if ((spec.imagePullSecrets ?? []).length > 0) found.push('spec.imagePullSecrets');
  if ((spec.resourceClaims ?? []).length > 0) found.push('spec.resourceClaims');
  spec.volumes?.forEach((v, i) => {
    for (const path of ofVolume(v, `spec.volumes[${i}]`)) found.push(path);
  });
  for (const kind of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    spec[kind]?.forEach((c, i) => {
      const path = `spec.${kind}[${i}]`;
      c.envFrom?.forEach((from, j) => {
        for (const ref of ['configMapRef', 'secretRef'] as const) if (from[ref] !== undefined) found.push(`${path}.envFrom[${j}].${ref}`);
      });
      c.env?.forEach((env, j) => {
        for (const ref of ['configMapKeyRef', 'secretKeyRef'] as const) {
          if (env.valueFrom?.[ref] !== undefined) found.push(`${path}.env[${j}].valueFrom.${ref}`);
        }
      });
    });
  }
  return found;
}
