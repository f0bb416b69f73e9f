/** A scheduler as small as can be, for the embedded API: a Ready node that the pod tolerates and selects, with the fewest pods. */
import type { KubeObject } from '../machines/kube/request.ts';
import { isRecord } from '../machines/shape/conform.ts';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isRecord) : []);

/** The name of the node; undefined: there is none now. `podsOn`: how many pods each node has. */
export function chosenNode(pod: KubeObject, nodes: readonly KubeObject[], podsOn: ReadonlyMap<string, number>): string | undefined {
  const fitting = nodes.filter((node) => fits(fieldsOf(pod.spec), node, podsOn.get(node.metadata.name) ?? 0));
  const least = fitting.sort((a, b) => (podsOn.get(a.metadata.name) ?? 0) - (podsOn.get(b.metadata.name) ?? 0));
  return least[0]?.metadata.name;
}

function fits(pod: Fields, node: KubeObject, podsThere: number): boolean {
  const { unschedulable, taints } = fieldsOf(node.spec);
  const { conditions, allocatable } = fieldsOf(node.status);
  const labels = fieldsOf(node.metadata.labels);
  if (unschedulable === true || !listOf(conditions).some((c) => c.type === 'Ready' && c.status === 'True')) return false;
  if (podsThere >= Number(fieldsOf(allocatable).pods ?? 0)) return false;
  if (Object.entries(fieldsOf(pod.nodeSelector)).some(([key, value]) => labels[key] !== value)) return false;
  const tolerations = listOf(pod.tolerations);
  return listOf(taints).every((taint) => taint.effect === 'PreferNoSchedule' || tolerations.some((t) => tolerates(t, taint)));
}

function tolerates(t: Fields, taint: Fields): boolean {
  if (t.effect !== undefined && t.effect !== '' && t.effect !== taint.effect) return false;
  if (t.operator === 'Exists') return t.key === undefined || t.key === '' || t.key === taint.key;
  return t.key === taint.key && (t.value ?? '') === (taint.value ?? '');
}
