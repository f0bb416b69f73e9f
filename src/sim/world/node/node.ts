/** One simulated machine: disk, runtime, clock offset, and whatever daemon runs on it just now. The daemon is the production tree. */

import type { InspectionEvent } from 'xstate';
import type { Node } from '../../../actors/node.ts';
import type { SupervisionTree } from '../../../actors/supervision/tree.ts';
import type { SupervisionEvent } from '../../../actors/supervision/types.ts';
import type { MailboxTap } from '../../../machines/faults/types.ts';
import type { StatusView } from '../../../machines/protocol.ts';
import type { SimKube } from '../kube/kubeApi.ts';
import { MEMORY_BYTES } from '../paths.ts';
import type { SimRng } from '../rng.ts';
import type { SimTime } from '../time.ts';
import { Daemons } from './daemons.ts';
import { type SimMachine, simMachine } from './machine.ts';
import type { NodeTuning } from './nodeTuning.ts';
import type { Probed } from './prober.ts';

/** Who is told what this node does. */
export interface NodeWatcher {
  supervision(node: SimNode, e: SupervisionEvent): void;
  statuses(node: SimNode, statuses: StatusView): void;
  log(node: SimNode, level: string, text: string): void;
  /** A daemon began; its tree has not started yet. */
  booted(node: SimNode): void;
  /** A daemon has looked at its machine, before its tree. Its start is refused for these reasons; none: it goes on. */
  judged(node: SimNode, problems: readonly string[]): void;
  exited(node: SimNode, why: string): void;
  /** Every step of every statechart; undefined where nobody measures. */
  readonly inspect?: ((e: InspectionEvent) => void) | undefined;
  /** Something that must not happen at all. */
  broken(node: SimNode, what: string): void;
}

export interface SimNode extends SimMachine {
  /** Daemons so far. */
  readonly boots: number;
  /** Its power failed at least once. */
  readonly lostPower: boolean;
  /** The running daemon; undefined while there is none. */
  readonly daemon: { node: Node; tree: SupervisionTree; up: boolean } | undefined;
  /** What the HTTP pod source answers. */
  http: () => { status: number; body: string } | 'unreachable';
  /** What network probes of any pod find, after how many ms. */
  probed: Probed;
  /** Bytes of memory that seem to be left. */
  memoryAvailable: () => number;
  wallOffsetMs: number;
  /** Stands before the mailboxes of every daemon that boots from now on. */
  tap: MailboxTap | undefined;
  boot(): void;
  /** As `kill -9`, or with `power`, as a pulled plug: what runs is the runtime's, and for the caller to end. */
  kill(how: 'process' | 'power'): void;
  /** Orderly; resolves when the tree is down. */
  stop(): Promise<void>;
  /** Newest log lines and flight recorder of the latest daemon. */
  tail(lines: number): { log: string[]; recorder: string[] };
}

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
