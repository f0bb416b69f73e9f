/** Which allocations may be released soon. Pure. */
import { isRefused, isWanted, type PodsView } from '../pods/manager/messages.ts';

/** On its way out, or over, or not known for certain to be wanted: nobody is refused for what it has. */
export function mayLeave(uid: string, pods: PodsView | undefined): boolean {
  const record = pods?.records.get(uid);
  if (pods?.sourcesReady !== true || record === undefined) return true;
  const phase = record.worker?.phase ?? 'waiting';
  const stays = phase === 'waiting' || phase === 'syncing';
  return !stays || !isWanted(record) || isRefused(record) || Boolean(record.pod.metadata.deletionTimestamp);
}
