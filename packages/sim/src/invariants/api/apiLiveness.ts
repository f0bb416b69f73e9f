/** What the API server must say some time after everything healed: each pod as its node has it, and no other pod of that node. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { NODE_PRESSURES } from '@actorlet/kubelet/machines/nodeFacts.ts';
import { ANNOTATION_MIRROR } from '@actorlet/kubelet/machines/pod/names.ts';
import { isRefused, isWanted, type PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { StatusView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { apiName } from '../../nemesis/workload/apiUser.ts';
import type { Operator } from '../../nemesis/workload/operator.ts';

interface Known {
  op: Operator;
  records: PodsView['records'] | undefined;
  statuses: StatusView | undefined;
}

export function apiUnsettled(node: SimNode, kube: SimKube, { op, records, statuses }: Known): string[] {
  const found: string[] = [];
  const mine = kube.store.list('pods').filter((o) => isRecord(o.spec) && o.spec.nodeName === node.name);
  const byName = new Map(mine.map((o) => [o.metadata.name, o]));
  for (const [name, w] of op.wanted) {
    const object = byName.get(apiName(name, node));
    byName.delete(apiName(name, node));
    const record = [...(records?.values() ?? [])].find((r) => r.pod.metadata.name === apiName(name, node) && isWanted(r));
    if (record === undefined) continue;
    // A mirror is made of what runs; what was refused or is to go has none.
    if (object === undefined) {
      if (!isRefused(record) && w.pod.fate !== 'deleted') found.push(`pod ${name} is not in the API`);
      continue;
    }
    const mirror = isRecord(object.metadata.annotations) && object.metadata.annotations[ANNOTATION_MIRROR] !== undefined;
    if (mirror !== (w.source !== 'api')) found.push(`pod ${name} by ${w.source} is ${mirror ? 'a' : 'no'} mirror in the API`);
    const status = statuses?.get(record.pod.metadata.uid)?.status;
    for (const [what, here, there] of [
      ['phase', status?.phase, isRecord(object.status) ? object.status.phase : undefined],
      ['Ready', readyOf(status?.conditions), readyOf(isRecord(object.status) ? object.status.conditions : undefined)],
    ] as const) {
      // A condition that this node says nothing of (of a pod that it refused, say) is whose it is.
      if (here !== undefined && here !== there)
        found.push(`${what} of pod ${name} is ${String(here)} here and ${String(there)} in the API`);
    }
  }
  for (const [name, o] of byName) found.push(`pod ${name} (${o.metadata.uid ?? ''}) is still in the API`);
  if (!registered(kube, node)) found.push('the node is not Ready in the API');
  const conditions = objectOf(kube, node)?.status;
  for (const type of NODE_PRESSURES) {
    const told = conditionOf(isRecord(conditions) ? conditions.conditions : undefined, type);
    if (told === 'True') found.push(`the node says ${type} in the API`);
  }
  return found;
}

function readyOf(conditions: unknown): unknown {
  return conditionOf(conditions, 'Ready');
}
function conditionOf(conditions: unknown, type: string): unknown {
  const found = (Array.isArray(conditions) ? conditions : []).find((c) => isRecord(c) && c.type === type);
  return isRecord(found) ? found.status : undefined;
}
function objectOf(kube: SimKube, node: SimNode): KubeObject | undefined {
  return kube.store.list('nodes').find((o) => o.metadata.name === node.name);
}
function registered(kube: SimKube, node: SimNode): boolean {
  const object = objectOf(kube, node);
  return isRecord(object?.status) && readyOf(object.status.conditions) === 'True';
}
