/** Messages to the faults in front of an API server. */
import { type Address, address, type ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { ApiFault } from '../spec/apiFaults.ts';

/** What a fault is made of. */
export interface FaultInput {
  name: string;
  fault: ApiFault;
}

/** Null: done. Else why not. */
export type FaultAnswer = string | null;

export type FaultEvent =
  /** It begins, and is answered when it has taken effect. */
  | ({ type: 'fault.begin'; replyTo?: ReplyTo<FaultAnswer> } & FaultInput)
  /** It ends before its time. */
  | { type: 'fault.heal'; name: string };

export const faultsAddr: Address<FaultEvent> = address('proxy/faults');
