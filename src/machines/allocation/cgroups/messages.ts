/** What is said to the actor that keeps the cgroups of this node. */

import type { Pod } from '../../kube/types.ts';
import { type Address, address, type Message, type ReplyTo } from '../../supervision/address.ts';

/** `later`: the groups of the node are not made yet; who asked is woken when they are. `failing`: they could not be made so far. */
export type GroupAnswer = { ok: true } | { ok: false; message: string; later?: { failing: boolean } };
export type CgroupsEvent = Message &
  (
    | {
        type: 'cgroups.ensure';
        pod: Pod;
        replyTo: ReplyTo<GroupAnswer>;
      }
    /**
     * The pod's resources are being changed. `raise`: its group may have what it has and what it shall have, until `exact`.
     * A pod whose sandbox is older than its group has none: nothing is done.
     */
    | { type: 'cgroups.resize'; pod: Pod; how: 'raise' | 'exact'; replyTo: ReplyTo<GroupAnswer> }
    /** Pods came or went. */
    | { type: 'cgroups.look' }
  );

export type GroupRequest = Extract<CgroupsEvent, { type: 'cgroups.ensure' | 'cgroups.resize' }>;

/** Only where `cgroupsPerQOS` was asked for. */
export const cgroupsAddress: Address<CgroupsEvent> = address('node/allocation/cgroups');
