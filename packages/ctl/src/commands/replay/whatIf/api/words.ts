/** How a pod is in the API, for people. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KnownPod } from '@actorlet/replay/src/player/pods.ts';
import type { KubeStore } from '@actorlet/world/src/kube/kubeStore.ts';

const MIRROR = 'kubernetes.io/config.mirror';

const GONE = 'gone';

/** @param how As the node sees it. */
export function wordsOf(store: KubeStore, pod: KnownPod, how: string): string {
  return words(store.find('pods', pod.namespace, pod.name), pod, how);
}

/** As it is now in the API. */
export function wordsThen(store: KubeStore): (pod: KnownPod, how: string) => string {
  const pods = new Map(store.list('pods').map((object) => [`${object.metadata.namespace}/${object.metadata.name}`, object]));
  return (pod, how) => words(pods.get(`${pod.namespace}/${pod.name}`), pod, how);
}

function words(object: KubeObject | undefined, { uid }: KnownPod, how: string): string {
  const annotations = object?.metadata.annotations;
  const isIt = object?.metadata.uid === uid || (isRecord(annotations) && annotations[MIRROR] !== undefined);
  if (object === undefined || !isIt) return how === GONE ? GONE : `${how}; not in the API`;
  const { metadata, status } = object as unknown as Pod;
  const ready = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true ? ', Ready' : '';
  const deleted = metadata.deletionTimestamp === undefined ? '' : ', being deleted';
  return `${how}; in the API ${status?.phase ?? 'Pending'}${ready}${deleted}`;
}
