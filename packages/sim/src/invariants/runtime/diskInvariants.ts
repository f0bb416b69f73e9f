/** Invariants about eviction: who is evicted, and what is collected before on nodes with two disks. */
import { SIGNAL_FACTS, type Signal } from '@actorlet/kubelet/machines/config/evictionSignals.ts';
import type { Checker } from '../checker.ts';
import { nobodyIsEvictedForNothing } from '../pods/statusInvariants.ts';

const EVICTION = 'node/reclaim/eviction';

/** Dead containers free nothing where only the disk of images is short: a pod's last logs stay readable. */
function splitDisksFreeTheirOwn(): Checker {
  return {
    name: 'split-disks-free-their-own',
    beat({ node }) {
      if (!node.tuning.splitDisks) return undefined;
      const snapshot = node.daemon?.tree.actorAt(EVICTION)?.getSnapshot() as
        | { value: unknown; context: { last: { due: readonly { threshold: { signal: Signal } }[] } } }
        | undefined;
      const signal = snapshot?.context.last.due[0]?.threshold.signal;
      if (snapshot?.value !== 'collecting' || signal === undefined || SIGNAL_FACTS[signal].reading !== 'imagefs') return undefined;
      return `${node.name}: dead containers are collected for ${signal}, and lie on another disk`;
    },
  };
}

export function evictionCheckers(): Checker[] {
  return [nobodyIsEvictedForNothing(), splitDisksFreeTheirOwn()];
}
