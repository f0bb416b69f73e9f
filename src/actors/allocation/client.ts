/** How the rest of the node learns what was allocated, and what there is of it. Holds nothing. */

import { type ContainerShare, type Held, NO_SHARE, type NodeResources } from '../../machines/allocation/messages.ts';
import type { ResourceStatus } from '../../machines/kube/types.ts';
import { type Built, built } from '../../machines/result.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Registry } from '../supervision/types.ts';
import type { ContainerOfPod, ProviderCtx } from './provider.ts';
import { PROVIDERS } from './providers.ts';

export { doubtClaims, prepareClaims, releaseClaims } from './claims/provider.ts';

/** What a container that is about to be created gets, or what it has to wait for. */
export async function containerShare(ctx: ProviderCtx, of: ContainerOfPod, signal: AbortSignal): Promise<Built<ContainerShare>> {
  let all = NO_SHARE;
  for (const provider of PROVIDERS) {
    const share = await provider.share(ctx, of, signal);
    if (!share.ok) return share;
    const cdiDevices = [...all.cdiDevices, ...(share.value.cdiDevices ?? [])];
    all = { ...all, ...share.value, cdiDevices };
  }
  return built(all);
}

/** `known` false: a provider has not read yet what it allocated before. */
export function nodeResources(ctx: ProviderCtx): NodeResources & { known: boolean } {
  const all = PROVIDERS.flatMap(({ node }) => (node === undefined ? [] : [node(ctx)]));
  const said = all.filter((one) => one !== undefined);
  return {
    known: said.length === all.length,
    capacity: Object.assign({}, ...said.map((one) => one.capacity)),
    allocatable: Object.assign({}, ...said.map((one) => one.allocatable)),
    recreated: said.some((one) => one.recreated),
  };
}

/** Reads the health of a container's devices for its status. */
export function deviceHealth(ctx: ProviderCtx & { ports: Pick<Ports, 'clock'> }): (of: ContainerOfPod) => ResourceStatus[] {
  const known = PROVIDERS.flatMap((provider) => provider.health?.(ctx) ?? []);
  return (of) => known.flatMap((health) => health(of));
}

export function heldResources(registry: Registry): Held[] {
  return PROVIDERS.map((provider) => provider.held(registry)).filter((held) => held !== undefined);
}
