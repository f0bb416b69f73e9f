/** What becomes of the servers of a node's NFS volumes while faults rain: one dies or both do, come back, are slow, or refuse mounts. */

import { SERVERS } from '../draws/node/network.ts';
import { burstsOfKinds, type Trouble, type TroubleOptions } from './faultBursts.ts';

const KINDS = ['dead', 'dead', 'dead', 'all-dead', 'all-dead', 'slow', 'refuses', 'mounts-late'] as const;
type Kind = (typeof KINDS)[number];
/** Between two kinds of trouble, and how long each lasts: also longer than a container may take to end and its volume to go. */
const EVERY_MS = { min: 500, max: 8_000 } as const;
const FOR_MS = { min: 500, max: 90_000 } as const;
const SLOW_MS = 8_000;
/** What is asked of a server; all else is the machine's own. */
const SERVED: readonly string[] = ['mount', 'unmount', 'lazy', 'forced', 'sever'];

export function networkTrouble(o: TroubleOptions): Trouble {
  const { node, rng } = o;
  const { mounts } = node;
  const ordinary = mounts.trouble;
  const restore = (): void => {
    mounts.dead.clear();
    mounts.trouble = ordinary;
  };
  const wrong: Readonly<Record<Kind, () => void>> = {
    dead: () => void mounts.dead.add(rng.pick(SERVERS) ?? SERVERS[0]),
    'all-dead': () => {
      for (const server of SERVERS) mounts.dead.add(server);
    },
    slow: () => {
      mounts.trouble = { ...ordinary, delayMs: (op) => (SERVED.includes(op) ? rng.between(0, SLOW_MS) : 0) };
    },
    refuses: () => {
      mounts.trouble = { ...ordinary, failing: (op, path) => (op === 'mount' && path.includes('~nfs/') ? 'EPERM' : undefined) };
    },
    // Its caller has given it up when it comes about.
    'mounts-late': () => {
      mounts.trouble = { ...ordinary, hanging: (op, path) => op === 'mount' && path.includes('~nfs/') };
    },
  };
  return burstsOfKinds(o, { everyMs: EVERY_MS, forMs: FOR_MS, kinds: KINDS, wrong, restore });
}
