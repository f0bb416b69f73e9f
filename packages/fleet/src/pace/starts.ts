/**
 * Gives nodes their turn to start.
 *
 * State held: which nodes wait, and which start.
 * Lost on restart: both.
 * Rebuilt from: nodes that wait, which ask again.
 */
import type { ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import type { Leases } from './leases.ts';
import type { StartsEvent } from './messages.ts';
import { type StartsFacts, startsMachine } from './startsMachine.ts';

export interface StartsOptions {
  leases: Leases;
  /** Nodes of the fleet. */
  nodes: number;
}

/** Messages of one node that wait at the same time. */
const WAITING_OF_NODE_MAX = 4;

export function startsSpec({ leases, nodes }: StartsOptions): ActorSpec<StartsEvent> {
  return {
    type: 'actor',
    id: 'starts',
    mailbox: { capacity: Math.max(1, nodes) * WAITING_OF_NODE_MAX },
    start: ({ ports: { clock }, log }) => {
      const replies = new Map<string, ReplyTo<null>>();
      const logic = provided(
        startsMachine,
        {
          actions: {
            keep: (_, { node, replyTo }) => void replies.set(node, replyTo),
            drop: (_, { node }) => void replies.delete(node),
            give: (_, { nodes: started }) => {
              for (const node of started) {
                replies.get(node)?.(null);
                replies.delete(node);
              }
            },
            say: () =>
              log.warn(
                { running: leases.count },
                'this machine, or the API server, is too busy for more nodes: they wait until leases are in time',
              ),
          },
        },
        (): StartsFacts => ({
          get monoMs() {
            return clock.monoMs();
          },
          get late() {
            return leases.late;
          },
        }),
      );
      return { logic };
    },
  };
}
