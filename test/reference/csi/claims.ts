/** What the statuses of claims go through, as a watch shows it. */
import { type Cluster, LONG, startKubectl } from '../../cluster/cluster.ts';

export interface Claimed {
  of(name: string): string[];
  bound(name: string): Promise<void>;
  stop(): void;
}
interface Status {
  phase?: string;
  capacity?: { storage?: string };
  allocatedResources?: { storage?: string };
  allocatedResourceStatuses?: { storage?: string };
  conditions?: { type: string; status: string; message?: string }[];
}

const ROW = '{.metadata.name}{"\\t"}{.status}{"\\n"}';

export function watchClaims(c: Cluster): Claimed {
  const kubectl = startKubectl(c.plane, ['get', 'persistentvolumeclaims', '--watch-only', '-o', `jsonpath=${ROW}`]);
  const of = (name: string): string[] => {
    const lines = kubectl.ran.out.split('\n').filter((line) => line.startsWith(`${name}\t`));
    const said = lines.map((line) => sayStatus(JSON.parse(line.slice(name.length + 1)) as Status)).filter((line) => line !== '');
    return said.filter((line, at) => line !== said[at - 1]);
  };
  return {
    of,
    bound: async (name) => void (await c.daemon.wait(`claim ${name} is bound`, () => of(name).length > 0, LONG)),
    stop: () => kubectl.stop(),
  };
}

/** '' for one that is not bound. */
function sayStatus(s: Status): string {
  if (s.phase !== 'Bound') return '';
  const parts = [
    `capacity ${s.capacity?.storage}`,
    ...(s.allocatedResources === undefined ? [] : [`allocated ${s.allocatedResources.storage}`]),
    ...(s.allocatedResourceStatuses === undefined ? [] : [String(s.allocatedResourceStatuses.storage)]),
    ...(s.conditions ?? []).map(({ type, status, message }) => `${type}=${status}${message === undefined ? '' : ` (${message})`}`),
  ];
  return parts.join(', ');
}
