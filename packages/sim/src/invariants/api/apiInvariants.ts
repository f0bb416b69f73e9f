/** Invariants about what the node writes to the API server: whose status it is, when an object goes for good, how phases move. */

import { apiSubject } from '@actorlet/faults/src/subjects.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { ANNOTATION_MIRROR } from '@actorlet/kubelet/machines/pod/names.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Checker, Scene } from '../checker.ts';

const TERMINAL = new Set<unknown>(['Succeeded', 'Failed']);

/** The object at a path as it is now; undefined where there is none. */
function objectAt(s: Scene, path: string): KubeObject | undefined {
  const got = s.kube?.handle({ verb: 'GET', path: path.replace(/\/status$/, '') });
  return got?.ok === true ? (got.body as KubeObject) : undefined;
}
function isMirror(o: KubeObject): boolean {
  return isRecord(o.metadata.annotations) && o.metadata.annotations[ANNOTATION_MIRROR] !== undefined;
}
function phaseOf(o: KubeObject | undefined): unknown {
  return isRecord(o?.status) ? o.status.phase : undefined;
}

/** A status is written with the UID of the pod it is of: one that was recreated under the same name never gets it (trap 28). */
export function statusReachesItsPod(): Checker {
  return {
    name: 'status-reaches-its-pod',
    request(s, { verb, path, body }) {
      const { resource } = apiSubject({ verb, path });
      if (resource !== 'pods/status' || verb === 'GET') return undefined;
      const uid = isRecord(body) && isRecord(body.metadata) ? body.metadata.uid : undefined;
      if (typeof uid !== 'string' || uid === '') return `${s.node.name}: a status is written to ${path} without the UID of its pod`;
      const object = objectAt(s, path);
      // Refused by the server for its UID, and written to nobody.
      if (object === undefined || object.metadata.uid !== uid || isMirror(object)) return undefined;
      const status = isRecord(body) && isRecord(body.status) ? body.status : {};
      const lists = [status.containerStatuses, status.initContainerStatuses].flatMap((l) => (Array.isArray(l) ? l : []));
      const { containers } = s.node.runtime.hollow.dump();
      for (const c of lists) {
        const id = isRecord(c) && typeof c.containerID === 'string' ? c.containerID.replace(/^.*:\/\//, '') : '';
        const real = containers.find((one) => one.id === id);
        if (real !== undefined && real.podUid !== uid)
          return `${s.node.name}: the status of pod ${uid} at ${path} names container ${id} of pod ${real.podUid}`;
      }
      return undefined;
    },
  };
}

/** An object is taken out of the API when nothing of its pod runs any more, and never another of the same name (traps 52, 53). */
export function deletionComesLast(): Checker {
  return {
    name: 'deletion-comes-last',
    request(s, { verb, path, body }) {
      if (verb !== 'DELETE' || apiSubject({ verb, path }).resource !== 'pods') return undefined;
      const pre = isRecord(body) && isRecord(body.preconditions) ? body.preconditions : {};
      if (typeof pre.uid !== 'string') return `${s.node.name}: ${path} is deleted without the UID it is meant for`;
      const object = objectAt(s, path);
      if (object === undefined || object.metadata.uid !== pre.uid || isMirror(object)) return undefined;
      if (object.metadata.deletionTimestamp === undefined) return `${s.node.name}: ${path} is deleted, and nobody asked for that`;
      const up = s.node.runtime.hollow.dump().containers.find((c) => c.podUid === pre.uid && c.state === 'CONTAINER_RUNNING');
      return up === undefined ? undefined : `${s.node.name}: ${path} is taken out of the API while container ${up.id} (${up.name}) runs`;
    },
  };
}

/** In the API a terminal phase is never left, however late a request is carried out. A mirror belongs to a name, not to one life of it. */
export function phasesOnlyGoForward(): Checker {
  return {
    name: 'phases-only-go-forward',
    object(s, { resource, before, object }) {
      if (resource !== 'pods' || before === undefined || isMirror(object)) return undefined;
      const { name, uid = '' } = object.metadata;
      if (!TERMINAL.has(phaseOf(before)) || phaseOf(object) === phaseOf(before)) return undefined;
      return `${s.node.name}: pod ${name} (${uid}) went from ${String(phaseOf(before))} to ${String(phaseOf(object))} in the API`;
    },
  };
}

/** A pod that the API server had before the version the node stands at, and has: half a list lacks some of those. */
function lackedByNode({ node, kube }: Scene): string | undefined {
  const shown = node.daemon?.tree.registry.read(apiView.pods)?.value;
  if (kube === undefined || shown?.synced !== true || !shown.resourceVersion) return undefined;
  const version = Number(shown.resourceVersion);
  for (const pod of kube.store.list('pods')) {
    const { uid = '', name, resourceVersion } = pod.metadata;
    if (!isRecord(pod.spec) || pod.spec.nodeName !== node.name || Number(resourceVersion) > version || shown.byUid.has(uid)) continue;
    return `${node.name}: pod ${name} (${uid}) of version ${resourceVersion ?? ''} is in the API, and the node, which knows version ${version}, does not know it`;
  }
  return undefined;
}

/** No pod is taken for deleted since a list, or a stream of initial events, was not read to its end. */
export function noPodIsOverlooked(): Checker {
  return { name: 'no-pod-is-overlooked', changed: lackedByNode, beat: lackedByNode };
}
