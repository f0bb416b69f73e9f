/** Messages to the machine of a node that others made. */
import { type Address, address } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { GroupSpec } from '../spec/groups.ts';

export interface Fate {
  /** `comes`: its kubelet, after so long. */
  what: 'comes' | 'dead' | 'noCapacity';
  afterMs: number;
}
/** A node that is adopted. */
export interface Adopted {
  name: string;
  uid: string;
  /** Of the rule. */
  rule: string;
  providerID: string;
  group: GroupSpec;
  /** Group whose sizes it has; '': none. */
  shape: string;
  fate: Fate;
}

export type MachineEvent =
  /** The node was created. */
  | { type: 'machine.seen'; node: string; adopted: Adopted }
  /** The node was deleted. */
  | { type: 'machine.gone'; node: string };

export const machinesAddr: Address<MachineEvent> = address('fleet/adoption/machines');
