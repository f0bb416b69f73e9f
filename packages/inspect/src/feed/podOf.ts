import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { probesAddr } from '@actorlet/kubelet/machines/services/probes/messages.ts';

const UNDER_A_POD = [`${workersAddr.path}/`, `${probesAddr.path}/`];

/** The UID in an actor's path; ''. */
export function podOf(path: string): string {
  const under = UNDER_A_POD.find((prefix) => path.startsWith(prefix));
  return under === undefined ? '' : (path.slice(under.length).split('/', 1)[0] ?? '');
}
