/** Acts of the kubelet that this tree would not have done, as a listing of the runtime shows them. Pure. */

import type { UnexpectedAct } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { lastingContainers } from '@actorlet/kubelet/machines/pod/resources/podLevel.ts';
import type { ListedPod, RuntimePodsView } from '@actorlet/kubelet/machines/pod/runtime/seen.ts';
import { isWanted, type PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';

type Listed = ListedPod['containers'][number];

/** Empty before every source has said which pods there are. */
export function unexpectedActs(listing: RuntimePodsView | undefined, pods: PodsView | undefined): UnexpectedAct[] {
  if (listing === undefined || pods?.sourcesReady !== true) return [];
  return [...listing.pods.values()].flatMap((listed) => ofPod(listed, pods));
}

function ofPod(listed: ListedPod, pods: PodsView): UnexpectedAct[] {
  const pod = `${listed.namespace}/${listed.name}`;
  const { uid } = listed;
  const running = listed.containers.filter((c) => c.state === 'running');
  const record = pods.records.get(uid);
  const act = (c: Listed, expected: string): UnexpectedAct => ({
    ...{ kind: 'StartContainer', pod, uid, expected },
    came: `container ${c.name} (${c.id.slice(0, 13)}) runs`,
  });
  if (record === undefined || !isWanted(record)) return record === undefined ? running.map((c) => act(c, 'knows no such pod')) : [];
  const { spec } = record.pod;
  const names = new Set([...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])].map((c) => c.name));
  const lasting = new Set(lastingContainers(record.pod).map((c) => c.name));
  const seen = new Set<string>();
  return running.flatMap((c) => {
    if (!names.has(c.name)) return [act(c, `knows no container ${c.name} in it`)];
    const again = lasting.has(c.name) && seen.has(c.name);
    seen.add(c.name);
    return again ? [act(c, `would run one container ${c.name} alone`)] : [];
  });
}
