/** Which pod is evicted first, and what is said of it (resources 3.5, 3.6). Pure. */
import { SIGNAL_FACTS, STARVED, type StarvedResource } from '../../config/evictionSignals.ts';
import { canonicalQuantity, quantityToInteger } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { podLevel } from '../../pod/resources/podLevel.ts';
import { requestOf } from '../../pod/resources/requests.ts';
import type { Met } from './pass.ts';
import { amountText, thresholdText } from './thresholds.ts';

/** Seconds that a pod gets where a hard threshold is met. */
export const HARD_GRACE_SECONDS = 1;

export interface Usage {
  memoryBytes?: number;
  diskBytes?: number;
  inodes?: number;
  /** Processes and threads. */
  tasks?: number;
}
/** What a pod uses just now. A figure that nobody knows is absent. */
export interface PodUsage extends Usage {
  containers: ReadonlyMap<string, Usage>;
}

function podRequest(pod: Pod, resource: StarvedResource): number {
  return resource === 'memory' || resource === 'ephemeral-storage' ? requestOf(pod, resource) : 0;
}

/**
 * First who uses more than it asked for, then the lower priority, then who is furthest above. A pod of unknown usage goes first.
 * No pod asks for processes: there the lower priority goes first, then who has most.
 */
export function rank(pods: readonly Pod[], usage: ReadonlyMap<string, PodUsage>, resource: StarvedResource): Pod[] {
  const figure = STARVED[resource].figure;
  const keys = (pod: Pod): [number, number, number, number] => {
    const priority = pod.spec.priority ?? 0;
    const used = usage.get(pod.metadata.uid)?.[figure];
    if (used === undefined || resource === 'pids') return [0, 0, priority, -(used ?? 0)];
    const above = used - podRequest(pod, resource);
    return [1, above > 0 ? 0 : 1, priority, -above];
  };
  return pods
    .map((pod) => ({ pod, keys: keys(pod) }))
    .sort((a, b) => a.keys.map((k, i) => k - (b.keys[i] ?? 0)).find((d) => d !== 0) ?? 0)
    .map(({ pod }) => pod);
}

/** Status and event of an evicted pod, in the reference's words: a pod with a request of its own is named whatever it uses. */
export function evictionMessage(pod: Pod, usage: PodUsage | undefined, { threshold, observation }: Met): string {
  const { resource } = SIGNAL_FACTS[threshold.signal];
  const wanted = thresholdText(threshold.value, observation.capacity);
  const head = `The node was low on resource: ${resource}. Threshold quantity: ${wanted}, available: ${amountText(observation.available)}. `;
  const { figure, bytes } = STARVED[resource];
  if (!bytes || usage === undefined) return head;
  const larger = (who: string, used: number, request: Quantity) =>
    `${who} was using ${amountText(used)}, request is ${canonicalQuantity(request)}, has larger consumption of ${resource}. `;
  const whole = podLevel(pod, 'requests', resource);
  const used = usage[figure];
  const ofPod = whole === undefined || used === undefined ? [] : [larger(`Pod ${pod.metadata.name}`, used, whole)];
  const ofContainers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].flatMap(({ name, resources }) => {
    const own = usage.containers.get(name)?.[figure];
    const request = resources?.requests?.[resource] ?? '0';
    return own === undefined || own <= quantityToInteger(request) ? [] : [larger(`Container ${name}`, own, request)];
  });
  return [head, ...ofPod, ...ofContainers].join('');
}

/** Seconds: next to none where a hard threshold is met, else the pod's own up to `maxSeconds`. */
export function evictionGraceSeconds(pod: Pod, { threshold }: Met, maxSeconds: number): number {
  if (threshold.graceMs === 0) return HARD_GRACE_SECONDS;
  return Math.min(maxSeconds, pod.spec.terminationGracePeriodSeconds ?? maxSeconds);
}
