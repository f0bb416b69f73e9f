/** The pods of a replay, and how each of them is. */
import type { Node } from '../../actors/node.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { workersAddr } from '../../machines/pods/workers/messages.ts';
import type { Json } from '../entries.ts';

export interface KnownPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** With its containers. */
  readonly spec: Json;
}

export class KnownPods {
  readonly #byUid = new Map<string, KnownPod>();

  get all(): KnownPod[] {
    return [...this.#byUid.values()];
  }

  /** The actor at this path made a step: the worker of a pod, perhaps. */
  see(path: string, node: Node): void {
    const uid = uidOf(path);
    if (uid === '' || this.#byUid.has(uid)) return;
    const pod = node.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
    if (pod === undefined) return;
    const { name, namespace = 'default' } = pod.metadata;
    this.#byUid.set(uid, { uid, namespace, name, spec: pod.spec as unknown as Json });
  }

  /** The last one of this name. */
  named(fullName: string | undefined): KnownPod | null {
    return this.all.findLast((pod) => fullNameOf(pod) === fullName) ?? null;
  }
}

export function fullNameOf({ namespace, name }: Pick<KnownPod, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** '' where it is no worker's path. */
export function uidOf(path: string): string {
  return path.startsWith(`${workersAddr.path}/`) ? path.slice(workersAddr.path.length + 1) : '';
}

/** How a pod is, for people: the state of its worker, its phase, and the states of its containers. */
export function howIs(node: Node, uid: string): string {
  const { tree } = node;
  const status = tree.registry.read(statusesView)?.value.get(uid)?.status;
  const containers = (status?.containerStatuses ?? []).map(
    (c) => `${c.name} ${Object.keys(c.state)[0] ?? 'unknown'} after ${c.restartCount} restarts`,
  );
  const worker = tree.stateAt(`${workersAddr.path}/${uid}`)?.state ?? 'gone';
  return [worker, status?.phase ?? '', ...containers].filter((word) => word !== '').join(', ');
}
