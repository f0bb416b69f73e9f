/** What is said to and published by the manager of ResourceClaims. */

import type { Pod } from '../../kube/types.ts';
import type { Built } from '../../result.ts';
import { type Address, address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { AllocationEvent } from '../messages.ts';
import type { ClaimRecord, DeviceHealth } from './types.ts';

export type ClaimsEvent =
  | AllocationEvent
  | (Message &
      (
        | {
            /** Prepare every claim of this pod. May be asked again at any time. Refused: with what is wrong with one of them. */
            type: 'claims.prepare';
            pod: Pod;
            replyTo: ReplyTo<Built<null>>;
          }
        /** Its containers have stopped: unprepare what no other pod uses. */
        | { type: 'claims.release'; uid: string; replyTo: ReplyTo<Built<null>> }
        /** The runtime could not find a device of this pod's claims: they are prepared again when somebody asks. */
        | { type: 'claims.doubt'; pod: Pod }
        /** The view of drivers has changed. */
        | { type: 'claims.drivers' }
      ));

export const claimsAddr: Address<ClaimsEvent> = address<ClaimsEvent>('node/allocation/claims');

/** By {@link claimKey}. Absent where there are no claims, and before the records were read. */
export const claimsView = viewKey<ReadonlyMap<string, ClaimRecord>>('claims');

/** What is under way about a claim: who is asked, and since when. */
export interface ClaimStep {
  what: string;
  sinceWallMs: number;
}
/** By {@link claimKey}; claims of which nothing is under way are not in it. */
export const claimStepsView = viewKey<ReadonlyMap<string, readonly ClaimStep[]>>('claimSteps');

/** The interface that a driver serves, as it registers it. */
export const DRA_SERVICES = ['v1.DRAPlugin', 'v1beta1.DRAPlugin'] as const;
export type DraService = (typeof DRA_SERVICES)[number];

/** A driver that registered through the folder of plugins. */
export interface DraDriver {
  driver: string;
  endpoint: string;
  service: DraService;
  /** Another one each time that it registered. */
  stamp: string;
}
/** Drivers that registered through the folder of plugins, by their socket there. */
export const draDriversView = viewKey<ReadonlyMap<string, DraDriver>>('draDrivers');

/** Drivers that are away, whose ResourceSlices are about to be deleted. */
export const draLeavingView = viewKey<ReadonlySet<string>>('draLeaving');

/** What drivers last said of each device, by driver, then by `POOL/DEVICE`. */
export type HealthView = ReadonlyMap<string, ReadonlyMap<string, DeviceHealth & { atWallMs: number }>>;
export const claimHealthView = viewKey<HealthView>('claimHealth');
