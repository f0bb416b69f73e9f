/** Messages of podConfig: what sources deliver, and what is wrong with their documents. */

import type { Pod } from '../../kube/types.ts';
import type { SourceName } from '../../pod/runtime/seen.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

/** Which pod a manifest file holds, by path. A pod that was taken over has another UID than its manifest gives it. */
export type ManifestsView = ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
/** The file that a pod comes from. */
export function manifestOf(manifests: ManifestsView | undefined, pod: { namespace: string; name: string }): string | undefined {
  return [...(manifests ?? [])].find(([, p]) => p.namespace === pod.namespace && p.name === pod.name)?.[0];
}

/** What is wrong with a document of a source. */
export interface SourceError {
  /** File path or URL. */
  where: string;
  message: string;
  /** Its pods are used all the same: something in it was read leniently, or is left out. */
  note?: true;
  /** Full name of the pod that it seems to define, though no pod came of it; `*`: nobody can say which. Absent: none. */
  holds?: string;
  /** The pod that this document held when it was last good, if known. */
  fullName?: string;
}

export type ConfigEvent = Message &
  (
    | {
        type: 'source.set';
        source: SourceName;
        /** Decoded, defaulted and validated pods: the complete set of this source. */
        pods: readonly Pod[];
        errors: readonly SourceError[];
      }
    /** Replaces what is known to be wrong with that source; its pods stay, and it does not count as a SET. */
    | { type: 'source.errors'; source: SourceName; errors: readonly SourceError[] }
    /** The node itself ended these pods, and they may run again: each is removed and added once more. Unknown UIDs are ignored. */
    | { type: 'pods.again'; source: SourceName; uids: readonly string[] }
    /** Beside another kubelet: UIDs that it gave to static pods may be known by now. */
    | { type: 'uids.look' }
  );

export const podConfigAddr = address<ConfigEvent>('node/pods/config');

/** Source errors by source: what `why` shows for a manifest that does not parse. */
export const sourceErrorsView = viewKey<ReadonlyMap<SourceName, readonly SourceError[]>>('sourceErrors');

/** Manifest files that hold a usable pod, by path. */
export const manifestsView = viewKey<ManifestsView>('manifests');
