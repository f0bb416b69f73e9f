/** Faults of the API server, which is one for all nodes. */
import { type Acts, hit, missed, type Stage } from './act.ts';

const NO_SERVER = 'this world has no API server';

export function clusterActs({ nodes, kube, active, windows }: Stage): Acts<'api.call' | 'api.watch' | 'api.partition'> {
  const open = (f: Parameters<typeof windows.open>[0]) => {
    if (kube === undefined) return missed(NO_SERVER);
    windows.open(f);
    return hit();
  };
  return {
    'api.call': open,
    'api.watch': open,
    'api.partition'(f) {
      if (kube === undefined) return missed(NO_SERVER);
      kube.trouble.partitioned = true;
      windows.open(f, () => {
        if (nodes.every((_, i) => active.of(i, f.kind).length === 0)) kube.heal();
      });
      return hit();
    },
  };
}
