/** Which pods the manifests of a node hold. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Asked, Script } from '../lenient/script.ts';

/** UIDs by the name of the file. A file that held something else at any time, or nothing, is not there. */
export function manifestsOf({ asked, settled, causes }: Script): Map<string, readonly string[]> {
  const reads = new Map<number, Asked>();
  for (const ask of asked) {
    const answer = ask.call === null ? undefined : settled.get(ask.call);
    if (answer !== undefined && /^fs\.(?:stat|readFile)$/.test(ask.name)) reads.set(answer.order, ask);
  }
  const pods = new Map<string, readonly string[]>();
  const mixed = new Set<string>();
  for (const { name, order, call } of asked) {
    if (name !== 'documents.decode' || call === null) continue;
    let at: number | undefined = order;
    while (at !== undefined && at >= 0 && !reads.has(at)) at = causes[at];
    const args = reads.get(at ?? -1)?.args;
    const path = Array.isArray(args) && typeof args[0] === 'string' ? args[0] : '';
    const file = path.slice(path.lastIndexOf('/') + 1);
    const uids = uidsIn(settled.get(call)?.value);
    const before = pods.get(file);
    if (file === '' || uids.length === 0 || (before !== undefined && before.join() !== uids.join())) mixed.add(file);
    else pods.set(file, uids);
  }
  for (const file of mixed) pods.delete(file);
  return pods;
}

function uidsIn(answer: unknown): string[] {
  if (!isRecord(answer) || !Array.isArray(answer.pods)) return [];
  return (answer.pods as unknown[]).flatMap((pod) => (isRecord(pod) && isRecord(pod.metadata) ? [String(pod.metadata.uid)] : []));
}
