/** What the events of a pod say about changes of its resources, in the words of the reference. Pure. */

import { sameData } from '../../data/sameData.ts';
import type { Container } from '../../kube/podTable.ts';
import type { Pod, PodCondition, PodStatus } from '../../kube/types.ts';
import { canonicalJson } from '../names.ts';
import { isTerminal } from '../phase.ts';
import { WHOLE_POD } from './amounts.ts';

export interface ResizeEvent {
  reason: 'ResizeStarted' | 'ResizeCompleted';
  message: string;
}

/** From the status before to the next: a change that was granted, and one that is in force everywhere. */
export function resizeEvents(before: PodStatus | undefined, now: PodStatus, pod: Pod): ResizeEvent[] {
  if (before === undefined || isTerminal(now.phase)) return [];
  const [was, is] = [resizeInProgress(before), resizeInProgress(now)];
  const started = (is !== undefined && is.observedGeneration !== was?.observedGeneration) || wasGranted(before, now);
  const of = is ?? (started ? now : was);
  const message = (what: 'started' | 'completed') => resizeMessage(what, pod, { generation: of?.observedGeneration });
  return [
    ...(started ? [{ reason: 'ResizeStarted', message: message('started') } as const] : []),
    ...(of !== undefined && is === undefined ? [{ reason: 'ResizeCompleted', message: message('completed') } as const] : []),
  ];
}

/** With the resources of every container, as programs may read them. `error`: why it is not in force. */
export function resizeMessage(what: string, { metadata, spec }: Pod, o: { generation?: number | undefined; error?: string }): string {
  const list = (containers: readonly Container[]) =>
    containers.map(({ name, resources = {} }) => canonicalJson({ name, resources })).join(',');
  const { initContainers = [], containers } = spec;
  const parts = [
    ...(initContainers.length === 0 ? [] : [`"initContainers":[${list(initContainers)}]`]),
    `"containers":[${list(containers)}]`,
    `"generation":${o.generation ?? metadata.generation ?? 0}`,
    ...(o.error === undefined ? [] : [`"error":${JSON.stringify(o.error)}`]),
  ];
  return `Pod resize ${what}: {${parts.join(',')}}`;
}

/** Its `observedGeneration` is that of the definition that was granted. */
export function resizeInProgress({ conditions }: PodStatus): PodCondition | undefined {
  return conditions?.find((c) => c.type === 'PodResizeInProgress');
}

function wasGranted(before: PodStatus, now: PodStatus): boolean {
  const amounts = (status: PodStatus) =>
    new Map(
      [
        { name: WHOLE_POD, allocatedResources: status.allocatedResources },
        ...(status.initContainerStatuses ?? []),
        ...(status.containerStatuses ?? []),
      ].map((c) => [c.name, c.allocatedResources]),
    );
  const old = amounts(before);
  return [...amounts(now)].some(([name, granted]) => {
    const held = old.get(name);
    return held !== undefined && granted !== undefined && !sameData(held, granted);
  });
}
