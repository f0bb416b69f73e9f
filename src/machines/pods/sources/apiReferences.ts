/**
 * References of a static pod to objects of the API: since 1.34 such a manifest is refused when the gate
 * PreventStaticPodAPIReferences is on (spec: pod lifecycle 1.2). Pure.
 */

import type { Pod } from '../../kube/types.ts';
import type { Volume } from '../../kube/volumeTable.ts';
import { kindOfField } from '../../pod/volumes/kinds.ts';
import { isRecord } from '../../shape/conform.ts';

/** Kinds that live on an object of the API, and that this node has no plugin for. Of `glusterfs` it is the Endpoints. */
const OTHERS_OF_API = ['glusterfs'];
/** Names of fields inside the other volume sources that point at a secret. */
const SECRET_FIELDS = ['secretRef', 'nodePublishSecretRef', 'secretName'];

function ofVolume(volume: Volume, path: string): string[] {
  const found: string[] = [];
  for (const [field, source] of Object.entries(volume)) {
    const kind = kindOfField(field);
    if (kind?.fromApi === true || OTHERS_OF_API.includes(field)) {
      found.push(`${path}.${field}`);
      continue;
    }
    if (!isRecord(source)) continue;
    for (const part of kind?.apiReferences?.(source, `${path}.${field}`) ?? []) found.push(part);
    for (const name of SECRET_FIELDS) if (source[name] !== undefined) found.push(`${path}.${field}.${name}`);
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
