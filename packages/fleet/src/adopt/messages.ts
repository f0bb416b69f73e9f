/** Messages to the machine of a node that others made. */
import { type Address, address } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { Adopted } from './choice.ts';

export type MachineEvent =
  /** The node was created. */
  | { type: 'machine.seen'; node: string; adopted: Adopted }
  /** The node was deleted. */
  | { type: 'machine.gone'; node: string };

export const machinesAddr: Address<MachineEvent> = address('fleet/adoption/machines');
