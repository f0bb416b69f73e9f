/**
 * Taking over static pods that another node agent started from the same manifests. A static pod's UID is a hash of its text in a form that
 * every agent has of its own, so the same manifest has another UID there. Where the runtime holds a pod of the same full name, from a
 * static source, whose containers are those of the manifest, the manifest's pod takes its UID: nothing is restarted. Pure.
 */

import type { Pod } from '../../kube/types.ts';
import { ANNOTATION_AGENT, ANNOTATION_HASH, ANNOTATION_SOURCE } from '../../pod/names.ts';
import { matchesHash } from '../../pod/runtime/containerHash.ts';
import { sortContainers } from '../../pod/runtime/runtimeStatus.ts';
import type { ListedPod } from '../../pod/runtime/seen.ts';
import { CRI_ANNOTATIONS } from '../../wire/cri.ts';

export interface TakeoverInput {
  pods: readonly Pod[];
  /** From a source's second set on only pods whose manifest could not be used: else later definitions replace what runs. */
  listing: ReadonlyMap<string, ListedPod>;
  /** UID of the manifest to UID of the pod it took over, from earlier sets. */
  aliases: ReadonlyMap<string, string>;
}
export interface TakeoverResult {
  /** In the same order; a pod that took another's UID keeps its own as `kubernetes.io/config.hash`. */
  pods: readonly Pod[];
  aliases: ReadonlyMap<string, string>;
  /** Taken over for the first time by this call. */
  adopted: { pod: Pod; from: string }[];
  /** Live static pods of a wanted name that are not what the manifest says: to be wound down before it starts. */
  predecessors: ListedPod[];
}

export function takeOver(input: TakeoverInput): TakeoverResult {
  if (input.listing.size === 0 && input.aliases.size === 0) {
    return { pods: input.pods, aliases: input.aliases, adopted: [], predecessors: [] };
  }
  const wanted = new Set(input.pods.map((p) => p.metadata.uid));
  const aliases = new Map(input.aliases);
  const adopted: TakeoverResult['adopted'] = [];
  const predecessors: ListedPod[] = [];
  const byName = new Map<string, ListedPod[]>();
  for (const listed of input.listing.values()) {
    if (wanted.has(listed.uid) || !isStatic(listed) || !isLive(listed)) continue;
    const name = `${listed.namespace}/${listed.name}`;
    byName.set(name, [...(byName.get(name) ?? []), listed]);
  }
  const pods = input.pods.map((pod) => {
    const own = pod.metadata.uid;
    const known = aliases.get(own);
    if (known !== undefined) return withUid(pod, known);
    const namesakes = byName.get(`${pod.metadata.namespace}/${pod.metadata.name}`) ?? [];
    const mine = input.listing.get(own);
    // What is left of its own may be from before another agent ran the pod.
    const runs = mine !== undefined && isLive(mine);
    const same = runs ? undefined : namesakes.find((listed) => isSamePod(pod, listed));
    predecessors.push(...namesakes.filter((listed) => listed !== same));
    if (same === undefined) return pod;
    aliases.set(own, same.uid);
    const taken = withUid(pod, same.uid);
    adopted.push({ pod: taken, from: own });
    return taken;
  });
  return { pods, aliases, adopted, predecessors: predecessors.filter((p) => !pods.some((pod) => pod.metadata.uid === p.uid)) };
}

function withUid(pod: Pod, uid: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, uid } };
}

export function isStatic(listed: ListedPod): boolean {
  return listed.sandboxes.some((s) => {
    const source = s.annotations[ANNOTATION_SOURCE];
    return source === 'file' || source === 'http';
  });
}

export function isLive(listed: ListedPod): boolean {
  return listed.containers.some((c) => c.state === 'running') || listed.sandboxes.some((s) => s.ready);
}

/** Started by this agent from this very text, or by another one with the same containers, all of them unchanged. */
function isSamePod(pod: Pod, listed: ListedPod): boolean {
  if (listed.sandboxes.some((s) => s.annotations[ANNOTATION_HASH] === pod.metadata.uid)) return true;
  // Ours, from another text: the definition was edited, perhaps in what no hash covers.
  if (listed.sandboxes.some((s) => s.annotations[ANNOTATION_AGENT] !== undefined)) return false;
  const specs = new Map([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => [c.name, c]));
  const newest = new Map<string, ListedPod['containers'][number]>();
  for (const c of sortContainers(listed.containers)) if (!newest.has(c.name)) newest.set(c.name, c);
  if (newest.size === 0 || !pod.spec.containers.every((c) => newest.has(c.name))) return false;
  return [...newest.values()].every((c) => {
    const spec = specs.get(c.name);
    return spec !== undefined && matchesHash(spec, c.annotations[CRI_ANNOTATIONS.hash] ?? '');
  });
}
