/** Which ResourceClaims a pod names (KEP-4381). In the words of the reference. Pure. */

import { sameData } from '../../data/sameData.ts';
import type { Container } from '../../kube/podTable.ts';
import type { Pod, PodStatus, Quantity } from '../../kube/types.ts';
import { type Built, built, refused } from '../../result.ts';
import { isRecord } from '../../shape/conform.ts';
import { textOf } from '../../shape/lenient.ts';

export interface NamedClaim {
  /** In `spec.resourceClaims`; '' for the claim behind its extended resources. */
  entry: string;
  name: string;
  /** It was made for this pod, from a template. */
  owned: boolean;
}
interface RequestMapping {
  container: string;
  resource: string;
  request: string;
}

/** The claim that the scheduler made for extended resources of this pod (KEP-5004); null: there is none. */
export function extendedClaim({ status }: Pod): { name: string; mappings: readonly RequestMapping[] } | null {
  const found: unknown = status.extendedResourceClaimStatus;
  if (!isRecord(found) || typeof found.resourceClaimName !== 'string') return null;
  const mappings = Array.isArray(found.requestMappings) ? found.requestMappings.filter(isRecord) : [];
  return {
    name: found.resourceClaimName,
    mappings: mappings.map((m) => ({
      container: textOf(m.containerName),
      resource: textOf(m.resourceName),
      request: textOf(m.requestName),
    })),
  };
}

/** The pod without resources that its claim gives: no device plugin is asked for those, and the node need not have them. */
export function unclaimed(pod: Pod): Pod {
  if (extendedClaim(pod) === null) return pod;
  const { spec } = pod;
  const each = (containers: readonly Container[]) => containers.map((container) => unclaimedContainer(pod, container));
  const inits = spec.initContainers === undefined ? {} : { initContainers: each(spec.initContainers) };
  return { ...pod, spec: { ...spec, ...inits, containers: each(spec.containers) } };
}

/** As {@link unclaimed}, of one container. */
export function unclaimedContainer(pod: Pod, container: Container): Container {
  const claimed = extendedClaim(pod)?.mappings.filter((m) => m.container === container.name) ?? [];
  if (claimed.length === 0 || container.resources === undefined) return container;
  const rest = (list: Readonly<Record<string, Quantity>> | undefined) =>
    Object.fromEntries(Object.entries(list ?? {}).filter(([name]) => !claimed.some((m) => m.resource === name)));
  const { limits, requests, ...more } = container.resources;
  return { ...container, resources: { ...more, limits: rest(limits), requests: rest(requests) } };
}

export function usesClaims(pod: Pod): boolean {
  return (pod.spec.resourceClaims ?? []).length > 0 || extendedClaim(pod) !== null;
}

/** Every claim that the pod uses. A template of which nothing had to be made names none. */
export function claimsOfPod(pod: Pod): Built<readonly NamedClaim[]> {
  const { namespace, name } = pod.metadata;
  const found: NamedClaim[] = [];
  for (const claim of pod.spec.resourceClaims ?? []) {
    const entry = claim.name ?? '';
    if (claim.resourceClaimName !== undefined) found.push({ entry, name: claim.resourceClaimName, owned: false });
    else if (claim.resourceClaimTemplateName === undefined) {
      return refused(`pod "${namespace}/${name}", spec.resourceClaim "${entry}": none of the supported fields are set`);
    } else {
      const made = claimStatus(pod, entry);
      if (made === undefined) return refused(`pod "${namespace}/${name}": ResourceClaim not created yet`);
      if (typeof made.resourceClaimName === 'string') found.push({ entry, name: made.resourceClaimName, owned: true });
    }
  }
  const extended = extendedClaim(pod);
  if (extended !== null) found.push({ entry: '', name: extended.name, owned: false });
  return built(found);
}

/** Whether both name the same claims, as the controllers made them for the pod. */
export function sameClaims(a: PodStatus, b: PodStatus): boolean {
  const claims = (s: PodStatus) => [s.resourceClaimStatuses ?? null, s.extendedResourceClaimStatus ?? null];
  return sameData(claims(a), claims(b));
}

function claimStatus({ status }: Pod, entry: string): Record<string, unknown> | undefined {
  const statuses: unknown = status.resourceClaimStatuses;
  return Array.isArray(statuses) ? statuses.filter(isRecord).find((s) => s.name === entry) : undefined;
}
