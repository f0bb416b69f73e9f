/**
 * The groups of this agent and of the system's other programs (resources 1.9): made, and processes moved there.
 *
 * State held: none.
 * Lost on restart: nothing.
 * Rebuilt from: the configuration, the kernel.
 */

import { groupPath, rootName } from '../../../machines/allocation/cgroups/names.ts';
import type { HousekeepingEvent } from '../../../machines/reclaim/messages.ts';
import { type Address, address } from '../../../machines/supervision/address.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import { specOfSweeper } from '../../supervision/looks/sweeper.ts';
import type { ActorSpec } from '../../supervision/types.ts';
import { cgroupsOf } from './cgroups.ts';

export interface AgentGroupsOptions {
  /** Paths; '' leaves the processes where they are. They are plain groups whatever driver pods have, as in the kubelet. */
  kubeletCgroups: string;
  systemCgroups: string;
}

const agentGroupsAddress: Address<HousekeepingEvent> = address('node/allocation/agentGroups');

const PERIOD_MS = 60_000;
/** Programs that start while others are moved are found in the next round; the reference stops after as many. */
const ROUNDS_MAX = 11;

export function agentGroupsSpec(o: AgentGroupsOptions): ActorSpec<HousekeepingEvent> {
  const mailbox = { capacity: 16, key: () => 'run' };
  return specOfSweeper({ id: 'agentGroups', mailbox, everyMs: PERIOD_MS, quietMs: 0 }, (ctx) => {
    const cgroups = cgroupsOf(ctx.ports);
    ctx.registry.send(agentGroupsAddress, { type: 'housekeeping.run', why: 'start' });
    return { sweep: () => sweep(cgroups, o) };
  });
}

async function sweep(cgroups: Cgroups, o: AgentGroupsOptions): Promise<string> {
  if (o.systemCgroups !== '') {
    const at = groupPath(rootName(o.systemCgroups), 'cgroupfs');
    await cgroups.create(at);
    for (let round = 0; round < ROUNDS_MAX && (await cgroups.moveFromRoot(at)) > 0; round++);
  }
  if (o.kubeletCgroups !== '') {
    const at = groupPath(rootName(o.kubeletCgroups), 'cgroupfs');
    await cgroups.create(at);
    await cgroups.enter(at);
  }
  return '';
}
