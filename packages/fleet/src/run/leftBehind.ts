/** Objects that nobody takes away any more. Pure. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

/** Objects of a kind. */
export interface OfKind {
  kind: string;
  objects: readonly KubeObject[];
}

/**
 * Those that were asked to go and wait for a finalizer, and those none of whose owners is there. `kind/namespace/name: why`. An owner of a
 * kind that could not be listed counts as there.
 */
export function leftBehind(all: readonly OfKind[]): string[] {
  const uids = new Set(all.flatMap(({ objects }) => objects.map(({ metadata }) => metadata.uid)));
  const kinds = new Set(all.map(({ kind }) => kind));
  return all.flatMap(({ kind, objects }) =>
    objects.flatMap(({ metadata }) => {
      const why = whyLeft(metadata, { uids, kinds });
      return why === null ? [] : [`${[kind, metadata.namespace ?? '', metadata.name].filter((part) => part !== '').join('/')}: ${why}`];
    }),
  );
}

function whyLeft(
  metadata: KubeObject['metadata'],
  { uids, kinds }: { uids: ReadonlySet<unknown>; kinds: ReadonlySet<string> },
): string | null {
  const finalizers = Array.isArray(metadata.finalizers) ? metadata.finalizers : [];
  if (metadata.deletionTimestamp !== undefined && finalizers.length > 0) return `waits for ${finalizers.join(', ')}`;
  const owners = (Array.isArray(metadata.ownerReferences) ? metadata.ownerReferences : []).filter(isRecord);
  const isGone = (owner: Record<string, unknown>): boolean => kinds.has(String(owner.kind)) && !uids.has(owner.uid);
  const [first] = owners;
  if (first === undefined || !owners.every(isGone)) return null;
  return `its owner ${String(first.kind)} ${String(first.name)} is gone`;
}
