/** Hard admission of one pod on this node (pod lifecycle 2.6): supported fields, then what the node can hold. Pure. */
import type { Pod } from '../k8s.ts';
import { quantityToInteger, quantityToMilli } from './quantity.ts';
import { ANNOTATION_SOURCE } from './sources/decode.ts';
import { unsupportedFields } from './sources/supported.ts';

export interface Refusal {
  reason: string;
  message: string;
  /** The refusal is about room on the node, not about the pod itself. */
  capacity: boolean;
}
export interface AdmissionInput {
  pod: Pod;
  /** Pods that hold room: not terminal, and not the predecessor of the same full name. */
  others: readonly Pod[];
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
}

/** Of a pod that the cluster placed here: the scheduler has honoured the first four; the gates are judged with the status. */
const CLUSTER_FIELDS = /^spec\.(nodeSelector|affinity|topologySpreadConstraints|schedulingGates|readinessGates)([.[]|$)/;

export function admit(input: AdmissionInput): Refusal | null {
  const { pod, others } = input;
  const fromApi = pod.metadata.annotations?.[ANNOTATION_SOURCE] === 'api';
  const fields = unsupportedFields(pod, { api: fromApi }).filter((path) => !fromApi || !CLUSTER_FIELDS.test(path));
  if (fields.length > 0) {
    return {
      reason: 'UnsupportedField',
      message: `this node cannot honour ${fields.length === 1 ? 'the field' : 'the fields'} ${fields.join(', ')}`,
      capacity: false,
    };
  }
  if (others.length + 1 > input.podsMax) {
    return {
      reason: 'OutOfpods',
      message: `Node didn't have enough resource: pods, requested: 1, used: ${others.length}, capacity: ${input.podsMax}`,
      capacity: true,
    };
  }
  for (const resource of ['cpu', 'memory'] as const) {
    const requested = requestOf(pod, resource);
    if (requested === 0) continue;
    const capacity = amount(input.allocatable[resource] ?? '0', resource);
    const used = others.reduce((sum, p) => sum + requestOf(p, resource), 0);
    if (used + requested > capacity) {
      return {
        reason: `OutOf${resource}`,
        message: `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
        capacity: true,
      };
    }
  }
  const taken = new Map(others.flatMap((p) => hostPorts(p).map((port): [string, Pod] => [port, p])));
  for (const port of hostPorts(pod)) {
    const holder = taken.get(port);
    if (holder !== undefined) {
      return {
        reason: 'NodePorts',
        message: `Node didn't have free ports for the requested pod ports: ${port} is used by ${holder.metadata.namespace}/${holder.metadata.name}`,
        capacity: true,
      };
    }
  }
  return null;
}

function amount(q: string | number, resource: 'cpu' | 'memory'): number {
  return resource === 'cpu' ? quantityToMilli(q) : quantityToInteger(q);
}

/** Sum over regular containers and sidecars, or the largest ordinary init container if that is more. CPU in milli, memory in bytes. */
export function requestOf(pod: Pod, resource: 'cpu' | 'memory'): number {
  let sum = 0;
  let peak = 0;
  const of = (c: Pod['spec']['containers'][number]): number => {
    const q = c.resources?.requests?.[resource] ?? c.resources?.limits?.[resource];
    return q === undefined ? 0 : amount(q, resource);
  };
  for (const c of pod.spec.initContainers ?? []) {
    if (c.restartPolicy === 'Always') sum += of(c);
    else peak = Math.max(peak, of(c) + sum);
  }
  const regular = pod.spec.containers.reduce((s, c) => s + of(c), 0);
  return Math.max(peak, sum + regular);
}

function hostPorts(pod: Pod): string[] {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always')].flatMap((c) =>
    (c.ports ?? []).filter((p) => (p.hostPort ?? 0) > 0).map((p) => `${p.protocol ?? 'TCP'}/${p.hostIP ?? '0.0.0.0'}:${p.hostPort}`),
  );
}
