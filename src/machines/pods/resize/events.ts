/** What the events of a pod say about changes of its resources, in the words of the reference. Pure. */
import type { Container, Pod, PodStatus } from '../../k8s.ts';
import { sameData } from '../../sameData.ts';
import { canonicalJson } from '../sources/decode.ts';
import { isTerminal } from '../status/generate.ts';

export interface ResizeEvent {
  reason: 'ResizeStarted' | 'ResizeCompleted';
  message: string;
}

/** From the status before to the next: a change that was granted, and one that is in force everywhere. */
export function resizeEvents(before: PodStatus | undefined, now: PodStatus, pod: Pod): ResizeEvent[] {
  if (before === undefined || isTerminal(now.phase)) return [];
  const [was, is] = [inProgress(before), inProgress(now)];
  const started = (is && !was) || wasGranted(before, now);
  const event = (reason: ResizeEvent['reason'], what: string): ResizeEvent => ({
    reason,
    message: `Pod resize ${what}: ${summary(pod, now.observedGeneration ?? 0)}`,
  });
  return [
    ...(started ? [event('ResizeStarted', 'started')] : []),
    ...((started || was) && !is ? [event('ResizeCompleted', 'completed')] : []),
  ];
}

const inProgress = (status: PodStatus): boolean => status.conditions?.some((c) => c.type === 'PodResizeInProgress') === true;

function wasGranted(before: PodStatus, now: PodStatus): boolean {
  const amounts = (status: PodStatus) =>
    new Map([...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map((c) => [c.name, c.allocatedResources]));
  const old = amounts(before);
  return [...amounts(now)].some(([name, granted]) => {
    const held = old.get(name);
    return held !== undefined && granted !== undefined && !sameData(held, granted);
  });
}

function summary({ spec }: Pod, generation: number): string {
  const list = (containers: readonly Container[]) => containers.map(({ name, resources = {} }) => ({ name, resources }));
  const [init, regular] = [list(spec.initContainers ?? []), list(spec.containers)];
  const parts = [
    ...(init.length === 0 ? [] : [`"initContainers":[${init.map(encoded).join(',')}]`]),
    `"containers":[${regular.map(encoded).join(',')}]`,
    `"generation":${generation}`,
  ];
  return `{${parts.join(',')}}`;
}
const encoded = (c: Pick<Container, 'name' | 'resources'>): string => canonicalJson(c);
