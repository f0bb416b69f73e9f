/** What the pod manager judges pods by, read at the moment of an event. */

import { apiView } from '../../../machines/api/messages.ts';
import { initialNode } from '../../../machines/api/node/nodeObject.ts';
import type { NodeIdentity } from '../../../machines/nodeFacts.ts';
import { sysctlPatterns } from '../../../machines/pods/admission/ability/sysctls.ts';
import type { Offer, Placement } from '../../../machines/pods/admission/admission.ts';
import type { PodManagerEvent } from '../../../machines/pods/manager/messages.ts';
import type { Facts } from '../../../machines/pods/manager/records.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { pressureView } from '../../../machines/reclaim/eviction/messages.ts';
import { nodeShutdownView } from '../../../machines/reclaim/nodeShutdown/messages.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import type { ViewKey } from '../../../machines/supervision/address.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { handlingPod } from '../../../ports/handling.ts';
import type { Host } from '../../../ports/ports.ts';
import type { ActorCtx } from '../../supervision/types.ts';

export interface AdmissionOptions extends Omit<Offer, 'ability'> {
  /** Some of what is allocated are extended resources, of any name. */
  extendedResources: boolean;
  /** What the node registers with: its labels until the API server has shown others, or for good where there is none. */
  identity: Omit<NodeIdentity, 'os' | 'arch'>;
  allowedUnsafeSysctls: readonly string[];
  /** A cgroup of the node's own holds each pod as a whole. */
  podGroups: boolean;
  declaredFeatures: readonly string[] | undefined;
}

/** What this machine and the configuration can give a pod. */
export function abilityOf(
  host: Pick<Host, 'identity'>,
  opts: Pick<AdmissionOptions, 'allowedUnsafeSysctls' | 'podGroups' | 'extendedResources' | 'declaredFeatures'>,
): Offer['ability'] {
  const { kernelVersion = '', appArmor = true } = host.identity?.() ?? {};
  const { podGroups, extendedResources, declaredFeatures } = opts;
  return { sysctls: sysctlPatterns(kernelVersion, opts.allowedUnsafeSysctls), podGroups, extendedResources, appArmor, declaredFeatures };
}

/** The node as it registers, before an API server has shown another. */
export function ownPlacement(host: Pick<Host, 'identity'>, identity: AdmissionOptions['identity']): Placement {
  const machine = host.identity?.();
  const { metadata, spec } = initialNode({ ...identity, os: machine?.os ?? 'linux', arch: machine?.arch ?? 'amd64' }, {});
  return { name: metadata.name, labels: metadata.labels ?? {}, taints: spec.taints ?? [] };
}

export function factsFrom(ctx: ActorCtx<PodManagerEvent>, opts: AdmissionOptions): () => Facts {
  const { podsMax, allocatable, cluster, allocates, fixed } = opts;
  const ability = abilityOf(ctx.ports.host, opts);
  const offer: Offer = { podsMax, allocatable, ability, cluster, allocates, fixed };
  return () => new Seen(ctx, { offer, identity: opts.identity });
}

class Seen extends LazyMoment implements Facts {
  readonly by: string;
  readonly #offer: Offer;
  readonly #ctx: ActorCtx<PodManagerEvent>;
  readonly #identity: AdmissionOptions['identity'];

  constructor(ctx: ActorCtx<PodManagerEvent>, { offer, identity }: { offer: Offer; identity: AdmissionOptions['identity'] }) {
    super(ctx.ports);
    this.by = ctx.path;
    this.#offer = offer;
    this.#ctx = ctx;
    this.#identity = identity;
  }
  /** With what others count for this node. */
  get offer(): Offer {
    const extended = this.#read(apiView.placement)?.extended;
    if (extended === undefined || Object.keys(extended).length === 0) return this.#offer;
    return { ...this.#offer, allocatable: { ...extended, ...this.#offer.allocatable } };
  }
  get inName(): Facts['inName'] {
    const { ports } = this.#ctx;
    return (uid, fn) => handlingPod(ports, uid, fn);
  }
  get listing() {
    return this.#read(runtimePodsView);
  }
  get statuses() {
    return this.#read(statusesView);
  }
  /** The node as the API server last showed it; before that, and without one, as it registers. */
  get placement(): Placement {
    const identity = this.#identity;
    const seen = this.#read(apiView.placement);
    if (seen !== undefined) return { name: identity.name, labels: seen.labels, taints: seen.taints };
    return ownPlacement(this.#ctx.ports.host, identity);
  }
  get placementAtMonoMs() {
    return this.#read(apiView.placement)?.readAtMonoMs ?? Number.NEGATIVE_INFINITY;
  }
  get strictGroups() {
    const cri = this.#read(criView);
    return (cri?.lastGoodMonoMs ?? null) === null ? null : cri?.strictGroups === true;
  }
  get pressures() {
    return this.#read(pressureView)?.pressures ?? [];
  }
  get shutsDown() {
    return this.#read(nodeShutdownView)?.active === true;
  }
  #read<T>(key: ViewKey<T>): T | undefined {
    return this.#ctx.registry.read(key)?.value;
  }
}
