/**
 * Static pods beside another kubelet: its UID of a manifest is a hash of a form of its own. So a pod takes the UID that the runtime and
 * the mirror pods show for its name, as soon as they do. Pure.
 */
import type { Pod } from '../../kube/types.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../pod/names.ts';
import type { ListedPod } from '../../pod/runtime/seen.ts';
import { isStatic } from './takeover.ts';

/** `NAMESPACE/NAME` to the UIDs that the kubelet gave it, the newest first. */
export type KubeletUids = ReadonlyMap<string, readonly string[]>;

export function kubeletUids(listing: Iterable<ListedPod>, shown: Iterable<Pod>): KubeletUids {
  const newest = (pod: ListedPod) => pod.sandboxes.reduce((most, s) => (s.createdAtNs > most ? s.createdAtNs : most), 0n);
  const inRuntime = [...listing].filter(isStatic).sort((a, b) => Number(newest(b) - newest(a)));
  const found = inRuntime.map(({ namespace, name, uid }) => [`${namespace}/${name}`, uid] as const);
  for (const { metadata } of shown) {
    const uid = metadata.annotations?.[ANNOTATION_MIRROR];
    if (uid !== undefined) found.push([`${metadata.namespace}/${metadata.name}`, uid]);
  }
  const uids = new Map<string, string[]>();
  for (const [name, uid] of found) uids.set(name, [...new Set([...(uids.get(name) ?? []), uid])]);
  return uids;
}

/** `aliases`: UID of the manifest to that of the kubelet, from earlier sets. */
export function asTheKubelet(
  pods: readonly Pod[],
  { uids, aliases }: { uids: KubeletUids; aliases: ReadonlyMap<string, string> },
): { pods: readonly Pod[]; aliases: ReadonlyMap<string, string> } {
  if (uids.size === 0 && aliases.size === 0) return { pods, aliases };
  const next = new Map(aliases);
  // The UID of an earlier text of a manifest: the kubelet has not taken up the new one yet.
  const manifestOf = new Map([...aliases].map(([own, uid]) => [uid, own]));
  const known = pods.map((pod) => {
    const own = pod.metadata.uid;
    const shown = uids.get(`${pod.metadata.namespace}/${pod.metadata.name}`) ?? [];
    const uid = shown.includes(own) ? own : (shown.find((u) => (manifestOf.get(u) ?? own) === own) ?? aliases.get(own) ?? own);
    if (uid === own) return pod;
    next.set(own, uid);
    const annotations = { ...pod.metadata.annotations, [ANNOTATION_HASH]: uid };
    return { ...pod, metadata: { ...pod.metadata, uid, annotations } };
  });
  return { pods: known, aliases: next };
}
