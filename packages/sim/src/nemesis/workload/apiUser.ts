/** Another user of the API server: creates pods that are bound to a node, edits and deletes them, meddles with what the node wrote. */
import { type KubeObject, type KubeRequest, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { isResizing, resized } from '../draws/pods/resizes.ts';
import type { Meddling } from '../faults.ts';
import { bindVolume, bodyOf, grownBody, objectPath } from './objectBodies.ts';
import type { SimObject, SimPod } from './subjects.ts';

export const NAMESPACE = 'default';
/** Where no node is. */
const ELSEWHERE = '192.0.2.250';

export interface ApiUser {
  /**
   * A pod that is there already is edited in place when the definition has a UID of its own (images and labels only), and
   * else replaced by force by another of the same name. Gives the UID that is there then.
   */
  put(pod: SimPod): { uid: string; replaced: boolean };
  /** False: no such object. */
  remove(name: string, graceSeconds: number | null): boolean;
  meddle(name: string, what: Meddling): boolean;
  /** In place, where it is there and may change; else anew. */
  putObject(object: SimObject, o?: { /** A claim, whatever its version. */ bound?: boolean }): void;
  /** False: there is none. */
  removeObject(object: Pick<SimObject, 'kind' | 'name'>): boolean;
  hasObject(object: Pick<SimObject, 'kind' | 'name'>): boolean;
  compact(): void;
  /** Writes another address into the node's object; false: there is none. */
  moveNode(): boolean;
}

/** Names in the API end in the name of the node, as those of static pods do: nodes of one world do not get in each other's way. */
export function apiName(name: string, node: SimNode): string {
  return `${name}-${node.name}`;
}

export function apiUser(node: SimNode, kube: SimKube): ApiUser {
  const must = (request: KubeRequest): KubeObject => {
    const answer = kube.handle(request);
    if (!answer.ok) throw new Error(`${request.verb} ${request.path} by a user: ${answer.failure.message}`);
    return answer.body as KubeObject;
  };
  const pathOf = (name: string) => kubePath.pod(NAMESPACE, apiName(name, node));
  const read = (name: string): KubeObject | undefined => {
    const got = kube.handle({ verb: 'GET', path: pathOf(name) });
    return got.ok ? (got.body as KubeObject) : undefined;
  };
  const create = (pod: SimPod): string => {
    const { metadata, ...rest } = structuredClone(pod.manifest) as { metadata: Record<string, unknown>; spec: object };
    const { uid: _uid, ...named } = metadata;
    const body = { ...rest, metadata: { ...named, name: apiName(pod.name, node) }, spec: { ...rest.spec, nodeName: node.name } };
    return must({ verb: 'POST', path: kubePath.podsIn(NAMESPACE), body }).metadata.uid ?? '';
  };
  const remove = (name: string, graceSeconds: number | null): boolean => {
    if (read(name) === undefined) return false;
    const query = graceSeconds === null ? {} : { gracePeriodSeconds: String(graceSeconds) };
    must({ verb: 'DELETE', path: pathOf(name), query });
    return true;
  };
  return {
    put(pod) {
      const there = read(pod.name);
      if (there !== undefined && there.metadata.deletionTimestamp === undefined && pod.uid !== undefined) {
        must({ verb: 'PUT', path: pathOf(pod.name), body: edited(there, pod) });
        return { uid: there.metadata.uid ?? '', replaced: false };
      }
      remove(pod.name, 0);
      return { uid: create(pod), replaced: there !== undefined };
    },
    remove,
    meddle(name, what) {
      const there = read(name);
      if (there === undefined) return false;
      const path = pathOf(name);
      if (isResizing(what)) {
        const body = resized(there, what);
        if (body !== null) must({ verb: 'PATCH', path, patchType: 'merge', body });
        return body !== null;
      }
      if (what === 'label') {
        const body = { metadata: { labels: { touched: String(there.metadata.resourceVersion) } } };
        must({ verb: 'PATCH', path, patchType: 'strategic', body });
        return true;
      }
      const condition = what === 'ready' ? { type: 'Ready', status: 'Unknown' } : { type: 'example.com/seen', status: 'True' };
      must({ verb: 'PATCH', path: `${path}/status`, patchType: 'strategic', body: { status: { conditions: [condition] } } });
      return true;
    },
    putObject(object, o = {}) {
      const path = objectPath(object);
      const there = kube.handle({ verb: 'GET', path });
      // The scheduler's from then on.
      if (object.kind === 'resourceClaim' && there.ok) return;
      const wanted = bodyOf(object, o.bound) as KubeObject;
      const anew = !there.ok || (there.body as KubeObject).immutable === true;
      const body = object.kind === 'claim' && there.ok ? grownBody(wanted, there.body as KubeObject) : wanted;
      if (there.ok && anew) must({ verb: 'DELETE', path });
      const made = must(anew ? { verb: 'POST', path: path.slice(0, path.lastIndexOf('/')), body } : { verb: 'PUT', path, body });
      if (object.kind === 'claim') bindVolume(kube, made);
    },
    removeObject(object) {
      const path = objectPath(object);
      if (!kube.handle({ verb: 'GET', path }).ok) return false;
      must({ verb: 'DELETE', path });
      return true;
    },
    hasObject: (object) => kube.handle({ verb: 'GET', path: objectPath(object) }).ok,
    compact: () => kube.store.compact(),
    moveNode() {
      const path = kubePath.nodeStatus(node.name);
      if (!kube.handle({ verb: 'GET', path: kubePath.node(node.name) }).ok) return false;
      const addresses = [{ type: 'InternalIP', address: ELSEWHERE }];
      must({ verb: 'PATCH', path, patchType: 'merge', body: { status: { addresses } } });
      return true;
    },
  };
}

/** The account whose tokens pods are given. */
export function makeServiceAccount(kube: SimKube): void {
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
  const made = kube.handle({ verb: 'POST', path, body: { metadata: { name: 'default', namespace: NAMESPACE } } });
  if (!made.ok) throw new Error(`the service account cannot be made: ${made.failure.message}`);
}

/** Makes the object of a node that does not do so itself. */
export function registerNode(node: SimNode, kube: SimKube): void {
  const made = kube.handle({
    verb: 'POST',
    path: '/api/v1/nodes',
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name: node.name } },
  });
  if (!made.ok) throw new Error(`node ${node.name} cannot be made: ${made.failure.message}`);
}

function edited(there: KubeObject, pod: SimPod): KubeObject {
  const object = structuredClone(there);
  object.metadata.labels = { ...(isRecord(object.metadata.labels) ? object.metadata.labels : {}), rev: String(pod.rev) };
  const spec = object.spec as { containers: { name: string; image: string }[]; initContainers?: { name: string; image: string }[] };
  for (const c of [...spec.containers, ...(spec.initContainers ?? [])]) c.image = pod.images[c.name] ?? c.image;
  return object;
}
