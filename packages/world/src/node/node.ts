/** One simulated machine: disk, runtime, clock offset, and whatever daemon runs on it just now. The daemon is the production tree. */

import type { SimKube } from '../kube/types.ts';
import { MEMORY_BYTES } from '../paths.ts';
import type { SimRng } from '../rng.ts';
import type { SimTime } from '../time.ts';
import { Daemons } from './daemons.ts';
import { simMachine } from './machine.ts';
import type { NodeTuning } from './nodeTuning.ts';
import type { NodeWatcher, SimNode } from './types.ts';

export interface SimNodeOptions {
  index: number;
  rng: SimRng;
  time: SimTime;
  tuning: NodeTuning;
  watcher: NodeWatcher;
  /** The API server of the cluster that this node belongs to; absent: it stands alone. */
  kube?: SimKube | undefined;
}

export function simNode(o: SimNodeOptions): SimNode {
  const { rng, time, watcher } = o;
  const wallOffset = { ms: 0 };
  const clock = time.clockFor({ on: true }, () => wallOffset.ms);
  const daemons = new Daemons({ node: () => self, rng, time, clock, watcher });
  const self: SimNode = {
    ...simMachine({ ...o, clock }),
    get boots() {
      return daemons.boots;
    },
    get lostPower() {
      return daemons.lostPower;
    },
    get daemon() {
      return daemons.daemon;
    },
    http: () => ({ status: 200, body: '{"apiVersion":"v1","kind":"PodList","items":[]}' }),
    probed: () => ({ kind: 'healthy', afterMs: 1 }),
    memoryAvailable: () => MEMORY_BYTES / 2,
    get wallOffsetMs() {
      return wallOffset.ms;
    },
    set wallOffsetMs(ms) {
      wallOffset.ms = ms;
    },
    tap: undefined,
    boot: () => daemons.boot(),
    kill: (how) => daemons.kill(how),
    stop: () => daemons.stop(),
    tail: (lines) => daemons.tail(lines),
  };
  return self;
}
