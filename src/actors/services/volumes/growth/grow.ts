/**
 * Volumes of claims that grow, while they are mounted and while they are being mounted. What the claim's status says comes
 * after what was done: a daemon that is killed in between finds the growth under way, and does it again, which changes nothing.
 */

import type { Pod } from '../../../../machines/kube/types.ts';
import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import type { PersistentSource } from '../../../../machines/pod/volumes/kinds.ts';
import { standOf, type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import {
  type ClaimSizes,
  claimSizes,
  failedPatch,
  finishedPatch,
  type GrowthFailureKind,
  type GrowthPlan,
  growthPlan,
  inProgressPatch,
  isGrowing,
  isMore,
} from '../../../../machines/services/volumes/growth.ts';
import type { GrowJob, GrowthOutcome } from '../../../../machines/services/volumes/volumeMachine.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import type { ClaimAnswer } from '../claims.ts';
import { unmark } from '../disk/directory.ts';
import type { GrowUntil, GrowVolumeJob, VolumeTools } from '../kind.ts';
import { GrowthFailure } from './failure.ts';
import { readSize, writeSize } from './size.ts';

/** A volume of a claim, and what the API says of both. */
interface Growing {
  volume: VolumeRef;
  pod: Pod;
  sizes: ClaimSizes;
  behind: PersistentSource;
}
type Plan = Extract<GrowthPlan, { kind: 'grow' }>;

const IDLE: GrowthOutcome = { kind: 'looked', fixed: false };
const FIXED: GrowthOutcome = { kind: 'looked', fixed: true };

/** One look at the claim of a volume that stands, and what follows. */
export async function growMounted(
  o: VolumeTools,
  { volume, pod, source }: GrowJob & { source: Claim },
  until: GrowUntil,
): Promise<GrowthOutcome> {
  const kinds = o.behindClaims.at(standOf(volume).plugin);
  if (kinds.every((kind) => kind.grow === undefined)) return FIXED;
  if (o.claims === null || o.growth === null) return FIXED;
  const { growth, claims } = o;
  const { claim, readOnly, block } = source;
  const { namespace } = pod.metadata;
  const name = claim ?? `${pod.metadata.name}-${volume.name}`;
  // Pods that share the claim take turns: one of them grows what all of them have.
  return o.csi.ledger.run(`claim ${namespace}/${name}`, until.asked, async () => {
    let found: Awaited<ReturnType<typeof claims>>;
    let size: string | null;
    try {
      size = await readSize(o, volume);
      // Most looks end here.
      const read = await growth.claim(namespace, name, until.asked);
      const now = claimSizes(read, null);
      const known = size !== null || kinds.every((kind) => kind.grow !== undefined);
      if (known && !isGrowing(now) && !isMore(now.current, size ?? now.current)) return IDLE;
      found = await claims({ pod, volume: volume.name, claim, readOnly, block, read }, until.asked);
    } catch (error) {
      o.log.debug({ uid: volume.uid, volume: volume.name, err: messageOf(error) }, 'the size of a claim could not be looked at');
      return IDLE;
    }
    if (!found.ok) return IDLE;
    const { sizes, ...behind } = found.value;
    if (o.behindClaims.of(behind.kind).grow === undefined) return FIXED;
    until.asked.throwIfAborted();
    return outcomeOf(o, { volume, pod, sizes, behind }, size, until.signal);
  });
}

/** At a refresh, which has read the claim. A failure is told, and the next refresh tries again. */
export async function growRefreshed(
  o: VolumeTools,
  { volume, pod, source, found }: { volume: VolumeRef; pod: Pod; source: Claim; found: ClaimAnswer },
  signal: AbortSignal,
): Promise<void> {
  const { sizes, ...behind } = found;
  if (source.readOnly || o.behindClaims.of(behind.kind).grow === undefined) return;
  const { namespace, name } = sizes.claim;
  const outcome = await o.csi.ledger.run(`claim ${namespace}/${name}`, signal, async () =>
    outcomeOf(o, { volume, pod, sizes, behind }, await readSize(o, volume), signal),
  );
  if (outcome.kind === 'failed') o.warn(pod, 'VolumeResizeFailed', outcome.message);
}

async function outcomeOf(o: VolumeTools, of: Growing, size: string | null, signal: AbortSignal): Promise<GrowthOutcome> {
  const { volume, sizes } = of;
  const plan = growthPlan(sizes, { size, refused: o.csi.ledger.refusedGrowth.has(volumeKey(volume)) });
  if (plan.kind === 'nothing') {
    if (size === null && sizes.current !== '') await writeSize(o, volume, sizes.current);
    return IDLE;
  }
  if (plan.kind === 'has') {
    if (isMore(plan.size, size ?? '')) await writeSize(o, volume, plan.size);
    return IDLE;
  }
  try {
    return (await carryOut(o, of, plan, signal)) ? IDLE : FIXED;
  } catch (error) {
    const message = `NodeExpandVolume.NodeExpandVolume failed for volume "${sizes.volume}" : ${messageOf(error)}`;
    return { kind: 'failed', message };
  }
}

/** While it is being mounted: a pod does not start on a volume that could not be grown. @throws why. */
export async function growWhileMounting(
  o: VolumeTools,
  { volume, pod, source, found }: { volume: VolumeRef; pod: Pod; source: Claim; found: ClaimAnswer },
  signal: AbortSignal,
): Promise<void> {
  const { sizes, ...behind } = found;
  const plan = growthPlan(sizes, { size: null, refused: o.csi.ledger.refusedGrowth.has(volumeKey(volume)) });
  if (o.behindClaims.of(behind.kind).grow === undefined) return;
  if (plan.kind === 'grow' && source.readOnly) {
    const message = `MountVolume.NodeExpandVolume failed for volume "${sizes.volume}" requested read-only file system`;
    const event = { type: 'Warning', reason: 'FileSystemResizeFailed', message } as const;
    o.say(pod, event);
    o.say(pod, event, aboutClaim(sizes));
  } else if (plan.kind === 'grow') {
    try {
      await carryOut(o, { volume, pod, sizes, behind }, plan, signal);
    } catch (error) {
      // What is mounted is not taken for ready, so the next attempt comes here again.
      await unmark(o, volume);
      throw new Error(`MountVolume.Setup failed while expanding volume "${sizes.volume}": ${messageOf(error)}`);
    }
    return;
  }
  if (sizes.current !== '') await writeSize(o, volume, sizes.current);
}

/** False: it does not grow while it is in use here. @throws why it failed. */
async function carryOut(o: VolumeTools, of: Growing, plan: Plan, signal: AbortSignal): Promise<boolean> {
  const { volume, behind } = of;
  const key = volumeKey(volume);
  const sizes = plan.recovers && plan.report ? await inProgress(o, of.sizes, signal) : of.sizes;
  const job: GrowVolumeJob<PersistentSource> = { volume, behind, size: plan.size };
  try {
    await o.measure('volume_fs_resize', volume, signal)(Promise.resolve(o.behindClaims.of(behind.kind).grow?.(o, job, signal)));
  } catch (error) {
    const kind = error instanceof GrowthFailure ? error.kind : 'final';
    signal.throwIfAborted();
    if (kind === 'unsupported' && !(plan.recovers && plan.report)) {
      await writeSize(o, volume, plan.size);
      return true;
    }
    if (plan.recovers && kind !== 'open') await noteFailure(o, { sizes, plan, kind, key, message: messageOf(error) }, signal);
    if (kind !== 'inUse') throw error;
    o.log.warn({ uid: volume.uid, volume: volume.name, err: messageOf(error) }, 'a volume does not grow while it is in use on this node');
    return false;
  }
  o.csi.ledger.refusedGrowth.delete(key);
  const { nodeName } = o.facts();
  const message = `MountVolume.NodeExpandVolume succeeded for volume "${sizes.volume}" ${nodeName}`;
  const event = { type: 'Normal', reason: 'FileSystemResizeSuccessful', message } as const;
  if (plan.report) {
    try {
      await o.growth?.patchStatus(sizes.claim, finishedPatch(sizes, plan.size), signal);
    } catch (error) {
      throw new Error(`mountVolume.NodeExpandVolume update pvc status failed: ${messageOf(error)}`);
    }
  }
  await writeSize(o, volume, plan.size);
  o.say(of.pod, event);
  o.say(of.pod, event, aboutClaim(sizes));
  return true;
}

/** The claim as it is when it says so. */
async function inProgress(o: VolumeTools, sizes: ClaimSizes, signal: AbortSignal): Promise<ClaimSizes> {
  const patch = inProgressPatch(sizes);
  if (patch === null || o.growth === null) return sizes;
  try {
    const { volume, capacity } = sizes;
    return { ...claimSizes(await o.growth.patchStatus(sizes.claim, patch, signal), null), volume, capacity };
  } catch (error) {
    throw new Error(`MountVolume.NodeExpandVolume failed to mark node expansion in progress: ${messageOf(error)}`);
  }
}

/** What the claim says of it is for people and for the controller: that it cannot be written is no other failure. */
async function noteFailure(
  o: VolumeTools,
  of: { sizes: ClaimSizes; plan: Plan; kind: GrowthFailureKind; key: string; message: string },
  signal: AbortSignal,
): Promise<void> {
  const { sizes, plan, kind, key, message } = of;
  o.csi.ledger.refusedGrowth.add(key);
  const now = `${new Date(o.ports.clock.wallMs()).toISOString().slice(0, 19)}Z`;
  const patch = failedPatch(sizes, { message, infeasible: kind === 'infeasible' || plan.infeasible, now });
  if (patch === null) return;
  try {
    await o.growth?.patchStatus(sizes.claim, patch, signal);
  } catch (error) {
    o.log.warn(
      { claim: `${sizes.claim.namespace}/${sizes.claim.name}`, err: messageOf(error) },
      'a claim could not be told why its volume did not grow',
    );
  }
}

function aboutClaim({ claim: { namespace, name, uid } }: ClaimSizes) {
  return { kind: 'PersistentVolumeClaim' as const, namespace, name, uid };
}
