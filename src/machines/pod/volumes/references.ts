/** Which secrets and config maps a pod names, and how they are known here. Pure. */
import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { kindOf } from './kinds.ts';
import { containersWithMounts } from './mounting.ts';
import { podVolumes } from './volumes.ts';

export interface ObjectRef {
  kind: 'secret' | 'configMap';
  namespace: string;
  name: string;
}

export function refKey({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

/** The reference's word for the kind in errors. */
export function kindWord(kind: ObjectRef['kind']): string {
  return kind === 'secret' ? 'secret' : 'configmap';
}

/** What the environment of this container is made of, each object once. */
export function containerReferences(container: Container, namespace: string): ObjectRef[] {
  const found = new Map<string, ObjectRef>();
  const add = (kind: ObjectRef['kind'], name: string | undefined): void => {
    if (!name) return;
    const ref = { kind, namespace, name };
    found.set(refKey(ref), ref);
  };
  for (const from of container.envFrom ?? []) {
    add('configMap', from.configMapRef?.name);
    add('secret', from.secretRef?.name);
  }
  for (const { valueFrom } of container.env ?? []) {
    add('configMap', valueFrom?.configMapKeyRef?.name);
    add('secret', valueFrom?.secretKeyRef?.name);
  }
  return [...found.values()];
}

export function pullSecretNames(pod: Pod): string[] {
  return [...new Set((pod.spec.imagePullSecrets ?? []).flatMap(({ name }) => (name ? [name] : [])))];
}

/** Everything the pod names: environment of every container, mounted volumes, pull secrets. By key. */
export function podReferences(pod: Pod): ReadonlyMap<string, ObjectRef> {
  const { namespace } = pod.metadata;
  const found = new Map<string, ObjectRef>();
  const add = (ref: ObjectRef): void => void found.set(refKey(ref), ref);
  for (const container of containersWithMounts(pod)) for (const ref of containerReferences(container, namespace)) add(ref);
  for (const name of pullSecretNames(pod)) add({ kind: 'secret', namespace, name });
  for (const { source } of podVolumes(pod).volumes) {
    for (const ref of kindOf(source).references?.(source) ?? []) add({ ...ref, namespace });
  }
  return found;
}
