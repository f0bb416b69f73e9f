/** Which pod something is about, by what the node knows. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { RuntimePodsView } from '@actorlet/kubelet/machines/pod/runtime/seen.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { runtimePodsView } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';
import type { Json } from '../entries.ts';

/** `NAMESPACE/NAME`; '' where it is about none, or about several. */
export function podOf({ tree }: Pick<Node, 'tree'>, path: string, said: Json | undefined): string {
  const records = tree.registry.read(podsView)?.value.records;
  const text = `${path} ${JSON.stringify(said ?? null)}`;
  const uids = [...(records?.keys() ?? [])].filter((uid) => text.includes(uid));
  if (uids.length === 0) uids.push(...byRuntime(tree.registry.read(runtimePodsView)?.value.pods, text));
  const [uid, ...more] = uids;
  if (uid === undefined || (more.length > 0 && !path.startsWith(`${workersAddr.path}/`))) return '';
  const pod = records?.get(path.slice(workersAddr.path.length + 1)) ?? records?.get(uid);
  return pod === undefined ? '' : `${pod.pod.metadata.namespace ?? 'default'}/${pod.pod.metadata.name}`;
}

/** By the ids of its sandboxes and containers. */
function* byRuntime(pods: RuntimePodsView['pods'] | undefined, text: string): Generator<string> {
  for (const [uid, { sandboxes, containers }] of pods ?? [])
    if ([...sandboxes, ...containers].some(({ id }) => text.includes(id))) yield uid;
}
