/** Messages to the actor that gives nodes their turn to start. */
import { type Address, address, type ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';

export type StartsEvent =
  /** The reply is the turn. */
  | { type: 'turn.ask'; node: string; replyTo: ReplyTo<null> }
  /** The node has started, failed, or waits no longer. */
  | { type: 'turn.over'; node: string };

export const startsAddr: Address<StartsEvent> = address('fleet/starts');
