/** The manager of ResourceClaims as a provider of allocation. The scheduler allocates claims, so no pod is asked about at admission. */

import { claimHealthView, claimsAddr, claimsView } from '../../../machines/allocation/claims/messages.ts';
import { cdiDevices, claimHealth, claimsOfContainer, dynamicResources } from '../../../machines/allocation/claims/share.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { usesClaims } from '../../../machines/pod/resources/claims.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { Registry } from '../../supervision/types.ts';
import type { Provider } from '../provider.ts';
import { claimsSpec } from './claims.ts';
import { claimMetrics } from './metrics.ts';

type ClaimsCtx = { registry: Registry; ports: Pick<Ports, 'dra' | 'kube' | 'observer'> };

/** Longer than a call to the API server and one to a driver. */
const ANSWER_MS = 120_000;

/** Settles when every claim of the pod is prepared; refused with what is wrong. */
export async function prepareClaims({ registry, ports }: ClaimsCtx, pod: Pod, signal: AbortSignal): Promise<Built<null>> {
  // The kubelet of an observed node prepares them.
  if (ports.observer !== undefined) return built(null);
  if (ports.dra === undefined || ports.kube === undefined) return refused('this node has no dynamic resource allocation');
  const question = (replyTo: ReplyTo<Built<null>>) => ({ type: 'claims.prepare' as const, pod, replyTo });
  const answer = await registry.ask(claimsAddr, question, { timeoutMs: ANSWER_MS, signal });
  return answer.kind === 'reply'
    ? answer.value
    : refused(`the manager of ResourceClaims did not answer: ${answer.reason}; it is asked again`);
}

/** Settles when what this pod alone used is unprepared. */
export async function releaseClaims({ registry, ports }: ClaimsCtx, pod: Pod, signal: AbortSignal): Promise<Built<null>> {
  if (ports.dra === undefined || ports.kube === undefined) return built(null);
  const { uid } = pod.metadata;
  const question = (replyTo: ReplyTo<Built<null>>) => ({ type: 'claims.release' as const, uid, replyTo });
  const answer = await registry.ask(claimsAddr, question, { timeoutMs: ANSWER_MS, signal });
  return answer.kind === 'reply'
    ? answer.value
    : refused(`the manager of ResourceClaims did not answer: ${answer.reason}; it is asked again`);
}

/** What the runtime says of a device for which it finds no specification. */
const UNRESOLVED = /unresolvable CDI device/i;

/** A container could not be made. Where a device was missing that a driver had prepared, the driver prepares it again for the next try. */
export function doubtClaims({ registry }: Pick<ClaimsCtx, 'registry'>, pod: Pod, error: string): void {
  if (UNRESOLVED.test(error) && usesClaims(pod)) registry.send(claimsAddr, { type: 'claims.doubt', pod });
}

export const claimsProvider: Provider = {
  address: claimsAddr,
  timeoutMs: ANSWER_MS,
  spec: ({ flags }, { cluster, dra, facts }) =>
    cluster && dra ? claimsSpec({ rootDir: flags.rootDir, nodeName: () => facts().nodeName }) : null,
  wants: () => false,
  async share({ registry, ports }, { pod, container }, signal) {
    if (!usesClaims(pod) || ports.observer !== undefined) return built({});
    const used = claimsOfContainer(pod, container);
    if (!used.ok) return used;
    if (used.value.length === 0) return built({});
    const records = () => registry.read(claimsView)?.value ?? new Map();
    const known = cdiDevices(records(), pod, container);
    if (known.ok) return built({ cdiDevices: known.value });
    // The record was lost: the pod runs, and its claims have to be prepared again.
    const prepared = await prepareClaims({ registry, ports }, pod, signal);
    if (!prepared.ok) return prepared;
    const found = cdiDevices(records(), pod, container);
    return found.ok ? built({ cdiDevices: found.value }) : found;
  },
  held(registry) {
    const records = registry.read(claimsView)?.value;
    if (records === undefined) return undefined;
    return {
      of: (_uid, _name, { pod, container }) => ({ dynamicResources: dynamicResources(records, pod, container) }),
      allocatable: () => ({}),
    };
  },
  health({ registry, ports }) {
    const records = registry.read(claimsView)?.value ?? new Map();
    const health = registry.read(claimHealthView)?.value ?? new Map();
    const nowWallMs = ports.clock.wallMs();
    return ({ pod, container }) =>
      (container.resources?.claims ?? []).length === 0 ? [] : claimHealth({ records, health, nowWallMs }, pod, container);
  },
  metrics: (metrics) => void claimMetrics(metrics),
};
