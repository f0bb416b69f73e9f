/** What containers were granted and what is in force, some time after everything healed. */

import { quantityToInteger, quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { amountsOf, resizableContainers } from '@actorlet/kubelet/machines/pod/resources/amounts.ts';
import { cpuShares } from '@actorlet/kubelet/machines/pod/resources/resources.ts';
import { isRefused, isWanted, type PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { StatusView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';

/** More than any node has: never granted. */
const NEVER_MILLI = 64_000;
const PAGE_BYTES = 4096;

/** By the default factor. A throttle that is of no use is none, or was taken back. */
function throttledBytes(request: number, limit: number): string {
  const at = Math.floor((request + 0.9 * (limit - request)) / PAGE_BYTES) * PAGE_BYTES;
  return at > request ? String(at) : 'max';
}

/** Every running container of a pod of the API has the cpu that was granted, its status says so, and nothing impossible was granted. */
export function resourcesUnsettled(
  records: PodsView['records'],
  { statuses, dump }: { statuses: StatusView | undefined; dump: HollowDump },
): string[] {
  const found: string[] = [];
  for (const [uid, record] of records) {
    const { pod, source } = record;
    if (source !== 'api' || !isWanted(record) || isRefused(record)) continue;
    const status = statuses?.get(uid)?.status;
    const up = dump.containers.filter((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
    for (const container of resizableContainers(pod)) {
      const { requests, limits } = amountsOf(container);
      const running = up.find((c) => c.name === container.name);
      if (running === undefined || requests.cpu === undefined) continue;
      const milli = quantityToMilli(requests.cpu);
      const who = `${container.name} of pod ${pod.metadata.name} (${uid})`;
      if (milli >= NEVER_MILLI) found.push(`${who} was granted ${milli} thousandths of a cpu`);
      if (Number(running.resources.cpuShares) !== cpuShares(milli))
        found.push(`${who} has ${running.resources.cpuShares} shares of the cpu, and was granted ${milli} thousandths`);
      const bytes = quantityToInteger(limits.memory);
      if (bytes !== Number(running.resources.memoryLimitInBytes ?? 0))
        found.push(`${who} may use ${running.resources.memoryLimitInBytes} bytes of memory, and was granted ${bytes}`);
      const high = running.resources.unified?.['memory.high'];
      const throttled = throttledBytes(quantityToInteger(requests.memory), bytes);
      if (high !== undefined && bytes > 0 && high !== throttled)
        found.push(`${who} is slowed down from ${high} bytes of memory on, and was granted ${bytes}: that is ${throttled}`);
      const shown = status?.containerStatuses?.find((s) => s.name === container.name);
      if (shown?.state.running !== undefined && quantityToMilli(shown.resources?.requests?.cpu) !== milli)
        found.push(`${who} is said to have ${shown.resources?.requests?.cpu}, and was granted ${requests.cpu}`);
    }
    if (up.length > 0 && status?.conditions?.some((c) => c.type === 'AllContainersRestarting' && c.status === 'True') === true)
      found.push(`pod ${pod.metadata.name} (${uid}) still says AllContainersRestarting`);
    const whole = pod.spec.resources?.requests?.cpu;
    if (up.length > 0 && whole !== undefined)
      found.push(...wholeUnsettled(`pod ${pod.metadata.name} (${uid})`, quantityToMilli(whole), status));
    if (up.length > 0 && status?.conditions?.some((c) => c.type === 'PodResizeInProgress') === true)
      found.push(`pod ${pod.metadata.name} (${uid}) still says PodResizeInProgress`);
  }
  return found;
}

/** What a pod was granted as a whole is possible, and its status says that it has it. */
function wholeUnsettled(who: string, milli: number, status: PodStatus | undefined): string[] {
  const [inForce, granted] = [status?.resources?.requests?.cpu, status?.allocatedResources?.cpu].map((q) => quantityToMilli(q));
  return [
    ...(milli >= NEVER_MILLI ? [`${who} was granted ${milli} thousandths of a cpu`] : []),
    ...(inForce === milli && granted === milli
      ? []
      : [`${who} was granted ${milli} thousandths of a cpu, and says ${granted} and ${inForce}`]),
  ];
}
