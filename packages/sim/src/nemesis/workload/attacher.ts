/**
 * The attach controller and the attacher of a simulated cluster: the volume of a driver is attached to a node while a pod of the
 * node wants it, and as long as the node says that it uses it. While faults rain each step may take its time.
 */
import { type KubeObject, type KubeRequest, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import { attachmentId, uniqueName } from '@actorlet/kubelet/machines/services/volumes/csi/volume.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { listOf, partOf, textOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { sha256Hex } from '@actorlet/world/src/globals.ts';
import type { StoreEvent } from '@actorlet/world/src/kube/kubeStore.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { DRIVER } from '@actorlet/world/src/plugins/machineDrivers.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { handleOf } from './objectBodies.ts';
import { DRIVER_CLAIM } from './objects.ts';

const LOOK_MS = 100;
/** An attacher takes its time on any day. */
const ATTACH_MS = { min: 200, max: 2_000, amongFaults: 8_000 } as const;
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';

interface AttacherOptions {
  kube: SimKube;
  nodes: readonly SimNode[];
  clock: Clock;
  rng: SimRng;
  on(node: string, what: string): void;
}

export class Attacher {
  readonly #o: AttacherOptions;
  readonly #nodes: readonly SimNode[];
  /** By node. */
  readonly #attached = new Map<string, Set<string>>();
  readonly #coming = new Set<string>();
  #isSlow = false;

  constructor(o: AttacherOptions) {
    this.#o = o;
    this.#nodes = o.nodes.filter((n) => n.tuning.driver !== null);
    o.kube.store.onEvent((e) => this.#heed(e));
  }

  begin(): void {
    this.#isSlow = true;
  }
  heal(): void {
    this.#isSlow = false;
    this.#settle();
  }
  isAttached(node: string, handle: string): boolean {
    return this.#attached.get(node)?.has(handle) === true;
  }

  #heed({ resource }: StoreEvent): void {
    if (['pods', 'nodes', 'persistentvolumeclaims'].includes(resource)) this.#o.clock.setTimeout(() => this.#settle(), LOOK_MS);
  }

  /** What is in use stays, and what is wanted comes. */
  #settle(): void {
    for (const { name } of this.#nodes) {
      const node = this.#o.kube.store.list('nodes').find((n) => n.metadata.name === name);
      if (node === undefined) continue;
      const wanted = this.#wantedOn(name);
      const had = this.#of(name);
      const inUse = listOf(partOf(node, 'status').volumesInUse);
      for (const handle of had) if (!wanted.has(handle) && !inUse.includes(nameOf(handle))) this.#detach(name, handle);
      for (const handle of wanted) if (!had.has(handle)) this.#attachLater(name, handle);
      this.#show(node, had);
    }
  }
  #wantedOn(node: string): ReadonlySet<string> {
    const { store } = this.#o.kube;
    const bound = store.list('persistentvolumeclaims').filter((claim) => partOf(claim, 'status').phase === 'Bound');
    const pods = store.list('pods').filter((pod) => !hasEnded(pod) && partOf(pod, 'spec').nodeName === node);
    const named = new Set(pods.flatMap(claimsOf));
    return new Set(
      bound
        .map(({ metadata: { name } }) => name)
        .filter((name) => named.has(name))
        .map(handleOf),
    );
  }
  #of(node: string): Set<string> {
    const known = this.#attached.get(node) ?? new Set<string>();
    this.#attached.set(node, known);
    return known;
  }

  #attachLater(node: string, handle: string): void {
    const id = idOf(node, handle);
    if (this.#coming.has(id)) return;
    this.#coming.add(id);
    const { clock, rng, on } = this.#o;
    const attach = (): void => {
      this.#coming.delete(id);
      if (!this.#wantedOn(node).has(handle)) return;
      on(node, `attaches ${handle}`);
      this.#of(node).add(handle);
      this.#must({ verb: 'POST', path: ATTACHMENTS, body: { metadata: { name: id }, status: { attached: true } } });
      this.#settle();
    };
    clock.setTimeout(attach, rng.between(ATTACH_MS.min, this.#isSlow ? ATTACH_MS.amongFaults : ATTACH_MS.max));
  }
  #detach(node: string, handle: string): void {
    this.#o.on(node, `detaches ${handle}`);
    this.#of(node).delete(handle);
    this.#must({ verb: 'DELETE', path: `${ATTACHMENTS}/${idOf(node, handle)}` });
  }
  #show({ metadata, status }: KubeObject, handles: ReadonlySet<string>): void {
    const volumesAttached = [...handles].sort().map((handle) => ({ name: nameOf(handle), devicePath: '' }));
    if (JSON.stringify(listOf(partOf({ status }, 'status').volumesAttached)) === JSON.stringify(volumesAttached)) return;
    this.#must({
      verb: 'PATCH',
      path: `${kubePath.node(metadata.name)}/status`,
      patchType: 'merge',
      body: { status: { volumesAttached } },
    });
  }

  #must(request: KubeRequest): void {
    const done = this.#o.kube.handle(request);
    if (!done.ok) throw new Error(`${request.verb} ${request.path} by the attach controller: ${done.failure.message}`);
  }
}

const nameOf = (handle: string): string => uniqueName({ driver: DRIVER, handle } as Parameters<typeof uniqueName>[0]);
const idOf = (node: string, handle: string): string => attachmentId({ handle, driver: DRIVER, node, sha256Hex });

function hasEnded(pod: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes(textOf(partOf(pod, 'status').phase));
}
/** Claims of the driver that a pod names. */
function claimsOf(pod: KubeObject): string[] {
  const sources = listOf(partOf(pod, 'spec').volumes)
    .filter(isRecord)
    .map((v) => textOf(partOf(v, 'persistentVolumeClaim').claimName));
  return sources.filter((claim) => claim.startsWith(DRIVER_CLAIM));
}
