/**
 * The scheduler and the controller of ResourceClaims of a simulated cluster: claims of templates are made, claims are allocated
 * and reserved for the pods that name them. While faults rain each step may take its time, so nodes meet pods that are ahead of it.
 */
import { type KubeObject, type KubeRequest, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { StoreEvent } from '@actorlet/world/src/kube/kubeStore.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

/** Claims with this in their name have a part of every driver of the node, others of the first. */
export const OF_ALL_DRIVERS = 'both';
export const TEMPLATE = 'one';
const PENDING_MS_MAX = 6_000;
const SLOW = 0.5;

interface PodClaim {
  name: string;
  resourceClaimName?: string;
  resourceClaimTemplateName?: string;
}

export class ClaimScheduler {
  readonly #kube: SimKube;
  readonly #nodes: readonly SimNode[];
  readonly #clock: Clock;
  readonly #rng: SimRng;
  readonly #reserved = new Set<string>();
  #isSlow = false;

  constructor(o: { kube: SimKube; nodes: readonly SimNode[]; clock: Clock; rng: SimRng }) {
    this.#kube = o.kube;
    this.#nodes = o.nodes.filter((n) => n.tuning.claims !== null);
    this.#clock = o.clock;
    this.#rng = o.rng;
    o.kube.store.onEvent((e) => this.#heed(e));
  }

  begin(): void {
    this.#isSlow = true;
  }
  heal(): void {
    this.#isSlow = false;
    this.#clock.setTimeout(() => this.#settle(), 0);
  }
  /** The claim of this UID was at some time reserved for the pod of this UID. */
  wasReserved(claim: string, pod: string): boolean {
    return this.#reserved.has(`${claim} ${pod}`);
  }

  #heed({ resource, type, object }: StoreEvent): void {
    if (resource !== 'pods' && resource !== 'resourceclaims') return;
    if (type === 'MODIFIED' && resource === 'pods') return;
    if (resource === 'pods' && claimsOf(object).length === 0) return;
    this.#clock.setTimeout(() => this.#settle(), this.#isSlow && this.#rng.chance(SLOW) ? this.#rng.between(0, PENDING_MS_MAX) : 0);
  }

  /** Everything as it is to be by now. */
  #settle(): void {
    const pods = this.#kube.store.list('pods').filter((pod) => claimsOf(pod).length > 0);
    for (const pod of pods) this.#makeOwn(pod);
    for (const claim of this.#kube.store.list('resourceclaims')) {
      const owner = ownerOf(claim);
      if (owner !== null && !pods.some((pod) => pod.metadata.uid === owner))
        this.#must({ verb: 'DELETE', path: pathOf(claim.metadata.name) });
      else this.#reserve(claim, pods);
    }
  }

  #makeOwn(pod: KubeObject): void {
    const statuses = statusesOf(pod);
    const missing = claimsOf(pod).filter((c) => c.resourceClaimTemplateName !== undefined && !statuses.some((s) => s.name === c.name));
    if (missing.length === 0) return;
    const { name: podName, uid = '' } = pod.metadata;
    const made = missing.map(({ name }) => {
      const resourceClaimName = `own-${name}-${uid.slice(0, 8)}-${podName}`;
      const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: podName, uid, controller: true }];
      this.#must({ verb: 'POST', path: folder(), body: { metadata: { name: resourceClaimName, ownerReferences }, spec: {} } });
      return { name, resourceClaimName };
    });
    const status = { resourceClaimStatuses: [...statuses, ...made] };
    this.#must({ verb: 'PATCH', path: `${kubePath.pod('default', podName)}/status`, patchType: 'merge', body: { status } });
  }

  #reserve(claim: KubeObject, pods: readonly KubeObject[]): void {
    const { name, uid = '' } = claim.metadata;
    const node = this.#nodes.find((n) => name.endsWith(`-${n.name}`));
    const users = pods.filter((pod) => namesClaim(pod, name));
    if (node === undefined) return;
    const [first = '', ...more] = node.tuning.claims?.drivers ?? [];
    const drivers = name.includes(OF_ALL_DRIVERS) ? [first, ...more] : [first];
    const results = drivers.map((driver) => ({ driver, pool: 'node', device: uid, request: 'r' }));
    const reservedFor = users.map(({ metadata }) => ({ resource: 'pods', name: metadata.name, uid: metadata.uid ?? '' }));
    const status = { allocation: { devices: { results } }, reservedFor };
    if (JSON.stringify(claim.status) === JSON.stringify(status)) return;
    for (const { uid: pod } of reservedFor) this.#reserved.add(`${uid} ${pod}`);
    this.#must({ verb: 'PATCH', path: `${pathOf(name)}/status`, patchType: 'merge', body: { status } });
  }

  #must(request: KubeRequest): void {
    const done = this.#kube.handle(request);
    if (!done.ok) throw new Error(`${request.verb} ${request.path} by the scheduler: ${done.failure.message}`);
  }
}

function folder(): string {
  return pathOf('').slice(0, -1);
}
function pathOf(claim: string): string {
  return kubePath.resourceClaim('default', claim);
}
function claimsOf({ spec }: KubeObject): PodClaim[] {
  return isRecord(spec) && Array.isArray(spec.resourceClaims) ? spec.resourceClaims : [];
}
function statusesOf({ status }: KubeObject): { name: string; resourceClaimName: string }[] {
  return isRecord(status) && Array.isArray(status.resourceClaimStatuses) ? status.resourceClaimStatuses : [];
}
function namesClaim(pod: KubeObject, name: string): boolean {
  return [...claimsOf(pod), ...statusesOf(pod)].some((c) => c.resourceClaimName === name);
}
/** UID of the pod that it was made for; null: of none. */
function ownerOf({ metadata }: KubeObject): string | null {
  const owners: unknown = metadata.ownerReferences;
  const [owner] = Array.isArray(owners) ? owners : [];
  return isRecord(owner) && typeof owner.uid === 'string' ? owner.uid : null;
}
