/** Wires the statecharts of volumes, and that of their manager. */

import { fromPromise } from 'xstate';
import type { Pod } from '../../../machines/kube/types.ts';
import type { VolumeRef } from '../../../machines/pod/volumes/volumePaths.ts';
import type { PodVolume } from '../../../machines/pod/volumes/volumes.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import type { SubPathsResult, VolumesResult } from '../../../machines/services/volumes/messages.ts';
import { type ActualState, isLookDue, type Looked } from '../../../machines/services/volumes/reconcile.ts';
import type { BindJob, BoundPart } from '../../../machines/services/volumes/subPaths.ts';
import {
  type GrowJob,
  type GrowthOutcome,
  type SetUpDone,
  type SetUpJob,
  volumeMachine,
} from '../../../machines/services/volumes/volumeMachine.ts';
import { type VolumesContext, type VolumesFacts, volumesMachine } from '../../../machines/services/volumes/volumesMachine.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Moment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Clock } from '../../../ports/ports.ts';
import { lookout } from '../../supervision/looks/lookout.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';

export interface VolumeIo {
  setUp(job: SetUpJob, signal: AbortSignal): Promise<SetUpDone | null>;
  tearDown(ref: VolumeRef, signal: AbortSignal): Promise<void>;
  /** One look at the claim of a volume that stands, and what follows. */
  grow(job: GrowJob, signal: AbortSignal): Promise<GrowthOutcome>;
  mountFailed(pod: Pod, volume: PodVolume, message: string): void;
  growthFailed(pod: Pod, message: string): void;
  tearDownFailed(ref: VolumeRef, message: string): void;
}
export interface VolumesIo extends VolumeIo {
  scan(signal: AbortSignal): Promise<readonly VolumeRef[]>;
  /** Gives up dead servers that these pods alone use. Never rejects. */
  sever(uids: readonly string[], signal: AbortSignal): Promise<void>;
  publish(actual: ActualState): void;
  forget(uid: string): void;
  /**
   * After what is under way on that volume, and before what comes later: nothing is bound of one that is being taken down.
   * Rejects when one of the signals comes first. Once it has begun, only the end of the manager cuts it short: a bind that
   * is given up while it is under way may come after the volume was taken down.
   */
  bindSubPath(part: BoundPart, until: { asked: AbortSignal; signal: AbortSignal }): Promise<Built<string>>;
}

export function volumeEffects(io: VolumeIo) {
  return {
    actors: {
      setUp: fromPromise<SetUpDone | null, { job: SetUpJob }>(({ input, signal }) => io.setUp(input.job, signal)),
      grow: fromPromise<GrowthOutcome, { job: GrowJob }>(({ input, signal }) => io.grow(input.job, signal)),
      tearDown: fromPromise<void, { ref: VolumeRef }>(({ input, signal }) => io.tearDown(input.ref, signal)),
    },
    actions: {
      sayMountFailed: (_: object, o: { pod: Pod; volume: PodVolume; message: string }) => io.mountFailed(o.pod, o.volume, o.message),
      sayGrowthFailed: (_: object, o: { pod: Pod; message: string }) => io.growthFailed(o.pod, o.message),
      sayTearDownFailed: (_: object, o: { ref: VolumeRef; message: string }) => io.tearDownFailed(o.ref, o.message),
    },
  };
}

/** `facts`: of the manager. `moment`: of each volume. */
export function volumesLogic(io: VolumesIo, o: { clock: Clock; moment(): Moment; facts(isOpen: VolumesFacts['isOpen']): VolumesFacts }) {
  const waiters = new Replies<VolumesResult>();
  const facts = (): VolumesFacts => o.facts((ask) => waiters.isOpen(ask));
  const binds = new Replies<SubPathsResult>();
  return provided(
    volumesMachine,
    {
      actors: {
        volume: provided(volumeMachine, volumeEffects(io), o.moment),
        lookout: lookout(o.clock, lookDue(facts)),
        bind: fromPromise<void, BindJob>(async ({ input: { ask, parts }, signal }) => {
          binds.reply(ask, await bound(io, parts, { asked: binds.signal(ask), signal }));
        }),
        sever: fromPromise<void, { uids: readonly string[] }>(({ input, signal }) => io.sever(input.uids, signal)),
        scan: fromPromise<readonly VolumeRef[]>(({ signal }) => io.scan(signal)),
      },
      actions: {
        hold: (_, { ask, replyTo }) => waiters.hold(ask, replyTo),
        reply: (_, { ask, result }) => waiters.reply(ask, result),
        holdParts: (_, { ask, replyTo }) => binds.hold(ask, replyTo),
        replyParts: (_, { ask, result }) => binds.reply(ask, result),
        publish: (_, { actual }) => io.publish(actual),
        forget: (_, { uid }) => io.forget(uid),
      },
    },
    facts,
  );
}

function lookDue(facts: () => VolumesFacts): (context: VolumesContext) => boolean {
  let last: Looked | null = null;
  return ({ desired, actual }) => {
    const { pods, listed, monoMs } = facts();
    const now = { desired, actual, pods, listed };
    const due = isLookDue(now, last, monoMs);
    last = now;
    return due;
  };
}

/**
 * One after the other, as the container names them, for as long as its worker waits: one that has gone on may have given
 * the volumes back, and whatever is bound after that stays.
 */
async function bound(
  io: VolumesIo,
  parts: readonly BoundPart[],
  until: { asked: AbortSignal; signal: AbortSignal },
): Promise<SubPathsResult> {
  const paths = new Map<number, string>();
  for (const part of parts) {
    try {
      const path = await io.bindSubPath(part, until);
      if (!path.ok) return path;
      paths.set(part.index, path.value);
    } catch (error) {
      const why = messageOf(error);
      return refused(`part of volume "${part.volume.name}" of container "${part.container}" cannot be mounted: ${why}`);
    }
  }
  return built(paths);
}
