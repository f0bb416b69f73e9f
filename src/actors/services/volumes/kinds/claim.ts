/**
 * Claims: the API says what a claim stands for, and the kind behind it sets that up (resources and volumes 8.18). Records go by
 * the name of the claim's volume in the pod, directories by its PersistentVolume, as those of the kubelet do: each can take over
 * what the other has left.
 */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import { mayHang } from '../../../../machines/host/unmounting.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { isSameStand, pluginName, type Stand, standOf, type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import { podVolumes } from '../../../../machines/pod/volumes/volumes.ts';
import type { Built } from '../../../../machines/result.ts';
import { type ClaimedVolume, volumeInPod } from '../../../../machines/services/volumes/claims.ts';
import type { SetUpDone, SetUpJob } from '../../../../machines/services/volumes/volumeMachine.ts';
import type { ClaimAnswer } from '../claims.ts';
import { FilesystemMismatch } from '../devices/format.ts';
import { stillAttached } from '../devices/shared.ts';
import { linkedDevice, servedAt, unlinkDevice } from '../disk/claimed.ts';
import { copyMarker, readyAt, takeDownMount, unmark } from '../disk/directory.ts';
import { lstatIfThere } from '../disk/files.ts';
import { alone, readStand, removeStand, standsOf, writeStand } from '../disk/stand.ts';
import { growMounted, growRefreshed, growWhileMounting } from '../growth/grow.ts';
import { directoryOf, type InlineActs, mounterOf, type VolumeTools } from '../kind.ts';

interface ClaimJob extends SetUpJob {
  source: Claim;
}

export const claim: { inline: InlineActs<Claim> } = {
  inline: {
    /** The API is asked only where the volume does not stand in full yet: a daemon that finds it needs nobody. */
    async setUp(o, asked, signal) {
      const job = asShared(asked);
      const known = await readStand(o, job.volume);
      if (known !== null) {
        const standing = await alone(o, job.volume, known, signal, () => standingAt(o, at(job, known), signal));
        if (standing !== null) return { ...standing, stands: known };
      }
      const behind = await whatIsBehind(o, job, signal);
      const group = 'sizes' in behind ? behind.group : undefined;
      const stands: Stand = { plugin: behind.plugin, name: behind.volume, ...(group === undefined ? {} : { group }) };
      // The claim was made anew, and nothing of the pod has run on what was behind the old one.
      if (known !== null && !isSameStand(known, stands)) await takeDown(o, { ...job.volume, stands: known }, signal);
      return alone(o, job.volume, stands, signal, async () => {
        const shared = await sharedBy(o, job, stands, signal);
        if (shared !== null) return { ...shared, stands };
        await writeStand(o, job.volume, stands);
        const { plugin, name } = stands;
        o.serves(job.volume, { plugin: pluginName(plugin), migrated: false, device: job.source.block, volume: name });
        o.csi.ledger.pass(volumeKey({ ...job.volume, ...stands }), volumeKey(job.volume));
        const placed = at(job, stands);
        const mounted = (await mountOf(o, placed.volume)) !== undefined;
        const done = await saidOfMismatch(
          o,
          { pod: job.pod, behind },
          o.behindClaims.of(behind.kind).setUp(o, { ...placed, mounted, behind }, signal),
        );
        if ('sizes' in behind) await (job.first ? growWhileMounting : growRefreshed)(o, { ...placed, found: behind }, signal);
        return { ...(done ?? standsAt(o, placed)), stands };
      });
    },
    async takeDown(o, ref, signal) {
      const { stands } = await placedRef(o, ref);
      // Else nothing was made of it.
      if (stands !== undefined) await alone(o, ref, stands, signal, () => takeDown(o, { ...ref, stands }, signal));
      await removeStand(o, ref);
    },
    /** What no record knows was left by another agent: it stands where it was found. */
    async found(o, { stands, ...ref }) {
      const placed = { ...ref, stands: stands ?? { plugin: ref.plugin, name: ref.name } };
      for (const kind of o.behindClaims.at(placed.stands.plugin)) await kind.found?.(o, placed);
      return stillAttached(o, placed);
    },
    placed: placedRef,
    async grow(o, job, until) {
      const { stands } = await placedRef(o, job.volume);
      if (stands === undefined) return growMounted(o, job, until);
      const others = await sharing(o, job.volume, stands);
      // The first of them grows what all of them have.
      if (others.some(({ name }) => name < job.volume.name)) return { kind: 'looked', fixed: true };
      return growMounted(o, { ...job, volume: { ...job.volume, stands } }, until);
    },
    async root(o, ref) {
      for (const kind of o.behindClaims.at(standOf(ref).plugin)) {
        const root = (await kind.root?.(o, ref)) ?? null;
        if (root !== null) return root;
      }
      return directoryOf(o, ref);
    },
  },
};

/** The administrator of the volume is told, too: its PersistentVolume names another file system than there is on it. */
async function saidOfMismatch<T>(
  o: VolumeTools,
  { pod, behind }: { pod: Pod; behind: ClaimAnswer | ClaimedVolume },
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof FilesystemMismatch && 'uid' in behind) {
      const { volume: name, uid } = behind;
      const message = `MountVolume failed for volume "${name}" ${error.message}`;
      const said = { type: 'Warning', reason: 'FailedMountOnFilesystemMismatch', message } as const;
      o.say(pod, said, { kind: 'PersistentVolume', namespace: '', name, uid });
    }
    throw error;
  }
}

async function takeDown(o: VolumeTools, ref: VolumeRef & { stands: Stand }, signal: AbortSignal): Promise<void> {
  const { ledger, inUseChanged } = o.csi;
  ledger.refusedGrowth.delete(volumeKey(ref));
  for (const kind of o.behindClaims.at(ref.stands.plugin)) await kind.takeDown?.(o, ref, signal);
  await unmark(o, ref);
  await unlinkDevice(o, ref);
  await takeDownMount(o, ref, signal);
  if (ledger.release(volumeKey(ref))) inUseChanged();
}

/** As it is called on disk, where anything was made of it. */
async function placedRef(o: VolumeTools, ref: VolumeRef): Promise<VolumeRef> {
  const stands = await readStand(o, ref);
  return stands === null ? ref : { ...ref, stands };
}
const at = (job: ClaimJob, stands: Stand): ClaimJob => ({ ...job, volume: { ...job.volume, stands } });

/** Volumes of a pod may name the same claim. As in the kubelet the last of them says whether it may be written. */
function asShared(job: ClaimJob): ClaimJob {
  const { source, pod } = job;
  if (source.claim === null) return job;
  for (const { source: last } of podVolumes(pod).volumes.toReversed()) {
    if (last.kind === 'claim' && last.claim === source.claim) return { ...job, source: { ...source, readOnly: last.readOnly } };
  }
  return job;
}

/** Other volumes of the pod that were made of the same PersistentVolume. */
async function sharing(o: VolumeTools, { uid, name }: VolumeRef, stands: Stand): Promise<VolumeRef[]> {
  return (await standsOf(o, uid)).filter((other) => other.name !== name && isSameStand(other.stands, stands));
}

/** The kubelet mounts once what volumes of a pod share. Null: none of them stands, or the driver wants a refresh of this one. */
async function sharedBy(o: VolumeTools, job: ClaimJob, stands: Stand, signal: AbortSignal): Promise<SetUpDone | null> {
  for (const other of await sharing(o, job.volume, stands)) {
    // Of those that the driver wants refreshed, the first is.
    const first = job.first || other.name < job.volume.name;
    const done = await standingAt(o, at({ ...job, first, volume: { ...job.volume, name: other.name } }, stands), signal);
    if (done === null) continue;
    await writeStand(o, job.volume, stands);
    await copyMarker(o, { from: other, to: job.volume });
    return done;
  }
  return null;
}

async function mountOf(o: VolumeTools, volume: VolumeRef) {
  const dir = directoryOf(o, volume);
  return mountsAt(await mounterOf(o).list(`${o.facts().rootDir}/pods`, dir), dir).at(-1);
}

function standsAt(o: VolumeTools, { volume, source }: ClaimJob): SetUpDone {
  return { at: directoryOf(o, volume), readOnly: source.readOnly, device: false, republish: false };
}

/** What stands of the claim's volume already. Null: there is something to do, or to find out. */
async function standingAt(o: VolumeTools, job: ClaimJob, signal: AbortSignal): Promise<SetUpDone | null> {
  const { volume, source } = job;
  for (const { standing } of o.behindClaims.at(standOf(volume).plugin)) if (standing !== undefined) return standing(o, job, signal);
  const ready = await readyAt(o, volume);
  if (ready === null) return null;
  if (source.block) {
    const linked = linkedDevice(o, job);
    return (await lstatIfThere(o.ports.fs, linked.at)) === null ? null : linked;
  }
  if (ready !== '') return servedAt(ready, source);
  const mount = await mountOf(o, volume);
  if (mount === undefined) return null;
  return mayHang(mount.type) ? servedAt(directoryOf(o, volume), source) : standsAt(o, job);
}

/** Rejects with why the volume cannot be had. */
async function whatIsBehind(o: VolumeTools, { volume, pod, source }: ClaimJob, signal: AbortSignal): Promise<ClaimAnswer | ClaimedVolume> {
  const { claim, readOnly, block, inTree } = source;
  const { name } = volume;
  const { namespace } = pod.metadata;
  if (inTree !== undefined) return had(volumeInPod(inTree, { name, namespace, readOnly, block }));
  if (o.claims === null) throw new Error('this node has no API to ask for a claim');
  return had(await o.claims({ pod, volume: name, claim, readOnly, block }, signal));
}
function had<T>(found: Built<T>): T {
  if (!found.ok) throw new Error(found.message);
  return found.value;
}
