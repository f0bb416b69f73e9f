/** Addresses that the status of a pod shows: its own, and its host's. */

import type { Pod, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { PodRuntimeStatus } from '../../pod/runtime/seen.ts';
import { onePerFamily, podAddresses } from '../../text/addresses.ts';

/** While nobody knows them (a node in a cloud whose object was not read yet), those that were shown. */
export function hostAddresses(facts: NodeFacts, { hostIP, hostIPs }: PodStatus): string[] {
  if (facts.hostIPs.length > 0) return onePerFamily(facts.hostIPs);
  return hostIPs?.map(({ ip }) => ip) ?? (hostIP ? [hostIP] : []);
}

/**
 * Addresses of the sandbox, one of each family, that of --node-ip first. A pod without a ready sandbox keeps those it had, or those
 * that the API shows of a sandbox that nobody here saw ready. Host network: the node's own, which may be others than before its restart.
 */
export function podAddressesOf({ pod, status, facts }: { pod: Pod; status: PodRuntimeStatus; facts: NodeFacts }, old: PodStatus): string[] {
  const shown = status.sandboxes.length > 0 ? shownAddresses(pod.status) : [];
  const before = shownAddresses(old).length > 0 ? shownAddresses(old) : shown;
  const { hostIPs } = facts;
  if (pod.spec.hostNetwork === true) return hostIPs.length > 0 ? onePerFamily(hostIPs) : before;
  const seen = status.ips.length > 0 || status.sandboxes.some((s) => s.ready) ? status.ips : before;
  return podAddresses(seen, facts);
}

function shownAddresses({ podIP, podIPs }: PodStatus): string[] {
  return podIPs?.map(({ ip }) => ip) ?? (podIP === undefined ? [] : [podIP]);
}
