/** A simulated machine, as the rest of the world sees it. */

import type { Node, NodeOptions } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { StatusView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { MailboxTap } from '@actorlet/kubelet/machines/supervision/mailboxTap.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { InspectionEvent } from 'xstate';
import type { SimMachine } from './machine.ts';
import type { Probed } from './prober.ts';

/** Hears what this node does. */
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
  /** Stands between a daemon and its ports; undefined where nobody records. */
  readonly between?: ((node: SimNode, config: NodeConfig, ports: Ports) => Between) | undefined;
  /** Something that must not happen at all. */
  broken(node: SimNode, what: string): void;
}

/** What stands between a daemon and its ports. */
interface Between {
  /** As the node's option. */
  readonly acting?: NodeOptions['acting'];
  ports: Ports;
  /** The daemon as the simulation gets it. */
  wrap(node: Node): Node;
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
