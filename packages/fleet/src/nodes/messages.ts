/** Messages to the node of a fleet. */
import { type Address, address, type ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';

/** Null: done. Else why not. */
export type NodeAnswer = string | null;

type Asked = { node: string; replyTo?: ReplyTo<NodeAnswer> };
export type NodeEvent =
  /** The machine is switched on; its daemon starts when its turn comes. */
  | ({ type: 'node.on' } & Asked)
  /** The daemon ends, and stays ended. */
  | ({ type: 'node.off' } & Asked)
  /** The daemon ends, and another one starts at once. */
  | ({ type: 'node.restart' } & Asked)
  /** The fleet ends, or the machine of the node. */
  | ({ type: 'node.end' } & Asked);

export const nodesAddr: Address<NodeEvent> = address('fleet/nodes');
