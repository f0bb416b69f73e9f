/** A scheduler as small as can be, for the embedded API: a Ready node that the pod tolerates and selects, with the fewest pods. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

const DEFAULT_NAME = 'default-scheduler';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isRecord) : []);

/** Whether this scheduler is asked for it, and may begin. */
export function isMine({ spec }: KubeObject): boolean {
  const { schedulerName = '', schedulingGates } = fieldsOf(spec);
  return (schedulerName === '' || schedulerName === DEFAULT_NAME) && listOf(schedulingGates).length === 0;
}

export function hasNode({ spec }: KubeObject): boolean {
  const { nodeName = '' } = fieldsOf(spec);
  return nodeName !== '';
}

/** The node whose room the pod takes: one that has ended takes none. */
export function placeOf(pod: KubeObject | undefined): string | undefined {
  const { nodeName } = fieldsOf(pod?.spec);
  const { phase } = fieldsOf(pod?.status);
  return typeof nodeName === 'string' && nodeName !== '' && phase !== 'Succeeded' && phase !== 'Failed' ? nodeName : undefined;
}

/** Pods of the same wishes have the same nodes to choose from. */
export function wishesOf({ spec }: KubeObject): string {
  const { nodeSelector, tolerations } = fieldsOf(spec);
  return JSON.stringify([nodeSelector, tolerations]);
}

/** The name of the node; undefined: there is none now. `podsOn`: how many pods each node has. */
export function chosenNode(pod: KubeObject, nodes: readonly KubeObject[], podsOn: ReadonlyMap<string, number>): string | undefined {
  let least: { name: string; pods: number } | undefined;
  for (const node of nodes) {
    const { name } = node.metadata;
    const pods = podsOn.get(name) ?? 0;
    if (pods < (least?.pods ?? Number.POSITIVE_INFINITY) && fits(fieldsOf(pod.spec), node, pods)) least = { name, pods };
  }
  return least?.name;
}

function fits(pod: Fields, node: KubeObject, podsThere: number): boolean {
  const { unschedulable, taints } = fieldsOf(node.spec);
  const { conditions, allocatable } = fieldsOf(node.status);
  const labels = fieldsOf(node.metadata.labels);
  if (unschedulable === true || !listOf(conditions).some((c) => c.type === 'Ready' && c.status === 'True')) return false;
  const { pods } = fieldsOf(allocatable);
  if (podsThere >= (typeof pods === 'object' ? 0 : Number(pods ?? 0))) return false;
  if (Object.entries(fieldsOf(pod.nodeSelector)).some(([key, value]) => labels[key] !== value)) return false;
  const tolerations = listOf(pod.tolerations);
  return listOf(taints).every((taint) => taint.effect === 'PreferNoSchedule' || tolerations.some((t) => tolerates(t, taint)));
}

function tolerates(t: Fields, taint: Fields): boolean {
  if (t.effect !== undefined && t.effect !== '' && t.effect !== taint.effect) return false;
  if (t.operator === 'Exists') return t.key === undefined || t.key === '' || t.key === taint.key;
  return t.key === taint.key && (t.value ?? '') === (taint.value ?? '');
}
