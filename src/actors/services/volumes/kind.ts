/**
 * What is done for a kind of volume: it is set up, taken down, and found after a restart. Setting up and taking down may be
 * repeated at any time, after any crash in between: both look at what there is first. Paths that belong to somebody else are
 * touched through the Mounter's killable helpers alone, each call with a deadline.
 */

import type { RecordedEvent } from '../../../machines/foundation/messages.ts';
import type { ObjectSource } from '../../../machines/kube/objects.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import type { Claim } from '../../../machines/pod/volumes/kinds/claim.ts';
import type { PersistentSource } from '../../../machines/pod/volumes/kinds.ts';
import { type VolumeRef, volumePath } from '../../../machines/pod/volumes/volumePaths.ts';
import type { ClaimedVolume } from '../../../machines/services/volumes/claims.ts';
import type { VolumeEventSaid } from '../../../machines/services/volumes/said.ts';
import type { GrowJob, GrowthOutcome, SetUpDone, SetUpJob } from '../../../machines/services/volumes/volumeMachine.ts';
import type { Mounter } from '../../../ports/machine/mounter.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';
import type { ClaimSource } from './claims.ts';
import type { CsiApi } from './csi/api.ts';
import type { CsiOptions } from './csi/place.ts';
import type { GrowthApi } from './growth/api.ts';
import type { StorageMetrics } from './measured.ts';

/** Acts on a volume that a pod names. */
export interface InlineActs<S> {
  /** Sets the volume up. Null: the volume stands where its kind says (`mounted` of its decisions). */
  setUp(o: VolumeTools, job: SetUpJob & { source: S }, signal: AbortSignal): Promise<SetUpDone | null>;
  /** Takes the volume down. Absent: only what was bound of it for containers was ours, and that is gone by now. */
  takeDown?(o: VolumeTools, ref: VolumeRef, signal: AbortSignal): Promise<void>;
  /** What a directory of this kind on the disk is. Absent: what its path says. */
  found?(o: VolumeTools, ref: VolumeRef): Promise<VolumeRef>;
  /** With what it is called on disk. Absent: as in the pod. */
  placed?(o: VolumeTools, ref: VolumeRef): Promise<VolumeRef>;
  /** Where it stands. Absent: in its directory. */
  root?(o: VolumeTools, ref: VolumeRef, source: S): Promise<string>;
  /** One look at whether it has grown, and what follows. Absent: it does not grow. */
  grow?(o: VolumeTools, job: GrowJob & { source: S }, until: GrowUntil): Promise<GrowthOutcome>;
}

/** Acts on a volume behind a claim. Each call has what it is called on disk (`stands`). */
export interface PersistentActs<P> {
  setUp(o: VolumeTools, job: ClaimedJob & { behind: P & Pick<ClaimedVolume, 'volume'> }, signal: AbortSignal): Promise<SetUpDone | null>;
  /** Finds a volume that stands in full already: the API is not asked. Absent: its marker and mount say so, or the link to its device. */
  standing?(o: VolumeTools, job: SetUpJob, signal: AbortSignal): Promise<SetUpDone | null>;
  /** An earlier daemon left it. */
  found?(o: VolumeTools, ref: VolumeRef): Promise<void>;
  /** What it left beside the mount on its directory and the link to its device. Nothing but the name is known. */
  takeDown?(o: VolumeTools, ref: VolumeRef, signal: AbortSignal): Promise<void>;
  /** Where it stands. Null or absent: in its directory. */
  root?(o: VolumeTools, ref: VolumeRef): Promise<string | null>;
  /** Makes what stands use the size that the cluster has given it. Absent: it cannot, and need not. @throws GrowthFailure */
  grow?(o: VolumeTools, job: GrowVolumeJob<P>, signal: AbortSignal): Promise<void>;
}
/** `asked`: ends the look. `signal`: the end of the volume manager ends a call of a driver, too. */
export interface GrowUntil {
  asked: AbortSignal;
  signal: AbortSignal;
}
export interface GrowVolumeJob<P> {
  volume: VolumeRef;
  behind: P;
  /** A quantity. */
  size: string;
}
interface ClaimedJob extends SetUpJob {
  source: Claim;
  /** Something is mounted on its directory. */
  mounted: boolean;
}

export interface VolumeTools {
  ports: Ports;
  log: Logger;
  facts(): NodeFacts;
  /** Null on a node without an API. */
  objects: ObjectSource | null;
  claims: ClaimSource | null;
  growth: GrowthApi | null;
  csi: Pick<CsiOptions, 'drivers' | 'unregistered' | 'calls' | 'ledger' | 'inUseChanged' | 'exhausted' | 'controllerAttaches'> & {
    api: CsiApi | null;
    reportedInUse(): readonly string[];
  };
  /** To the events of the pod. */
  warn(pod: Pod, reason: string, message: string): void;
  /** `about`: what the event is about, instead of its pod. */
  say(pod: Pod, said: VolumeEventSaid, about?: RecordedEvent['about']): void;
  /** Files of a volume in memory may come to lie on a swap device, where the machine has one. */
  swappable(): void;
  measure: StorageMetrics['operation'];
  serves: StorageMetrics['serves'];
  behindClaims: BehindClaims;
}
/** The kinds that can be behind a claim. */
export interface BehindClaims {
  of(kind: PersistentSource['kind']): PersistentActs<PersistentSource>;
  /** Those whose volumes stand in directories of that plugin. */
  at(plugin: string): readonly PersistentActs<PersistentSource>[];
}

export function mounterOf({ ports: { mounter } }: { ports: Pick<Ports, 'mounter'> }): Mounter {
  if (mounter === undefined) throw new Error('this node cannot mount anything');
  return mounter;
}
export function directoryOf({ facts }: Pick<VolumeTools, 'facts'>, ref: VolumeRef): string {
  return volumePath(facts().rootDir, ref);
}
