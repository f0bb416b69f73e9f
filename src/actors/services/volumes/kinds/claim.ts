/**
 * Claims: the API says what a claim stands for, and the kind behind it sets that up (resources and volumes 8.18). All of it
 * goes by the name of the claim's volume in the pod.
 */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import { mayHang } from '../../../../machines/host/unmounting.ts';
import type { Claim } from '../../../../machines/pod/volumes/kinds/claim.ts';
import { volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import { volumeInPod } from '../../../../machines/services/volumes/claims.ts';
import { stillAttached } from '../devices/shared.ts';
import { linkedDevice, servedAt, unlinkDevice } from '../disk/claimed.ts';
import { isReady, takeDownMount, unmark } from '../disk/directory.ts';
import { lstatIfThere } from '../disk/files.ts';
import { growMounted, growWhileMounting } from '../growth/grow.ts';
import { directoryOf, type InlineActs, mounterOf } from '../kind.ts';

export const claim: { inline: InlineActs<Claim> } = {
  inline: {
    /** The API is asked only where the volume does not stand in full yet: a daemon that finds it needs nobody. */
    async setUp(o, job, signal) {
      const { volume, pod, source } = job;
      const dir = directoryOf(o, volume);
      const mount = mountsAt(await mounterOf(o).list(`${o.facts().rootDir}/pods`, dir), dir).at(-1);
      const ready = await isReady(o, volume);
      if (mount !== undefined && ready) return mayHang(mount.type) ? servedAt(dir, source) : null;
      const linked = linkedDevice(o, job);
      if (source.block && ready && (await lstatIfThere(o.ports.fs, linked.at)) !== null) return linked;
      for (const kind of o.behindClaims.all) {
        const standing = (await kind.standing?.(o, job, signal)) ?? null;
        if (standing !== null) return standing;
      }
      const { claim, readOnly, block, inTree } = source;
      const mounted = mount !== undefined;
      if (inTree !== undefined) {
        const { namespace } = pod.metadata;
        const named = volumeInPod(inTree, { name: volume.name, namespace, readOnly, block });
        if (!named.ok) throw new Error(named.message);
        return o.behindClaims.of(named.value.kind).setUp(o, { ...job, mounted, behind: named.value }, signal);
      }
      if (o.claims === null) throw new Error('this node has no API to ask for a claim');
      const found = await o.claims({ pod, volume: volume.name, claim, readOnly, block }, signal);
      if (!found.ok) throw new Error(found.message);
      const behind = found.value;
      const done = await o.behindClaims.of(behind.kind).setUp(o, { ...job, mounted, behind }, signal);
      if (job.first) await growWhileMounting(o, { ...job, found: behind }, signal);
      return done;
    },
    /** What is behind a claim is seen by what it left. */
    async takeDown(o, ref, signal) {
      o.csi.ledger.refusedGrowth.delete(volumeKey(ref));
      o.csi.ledger.labels.delete(volumeKey(ref));
      for (const kind of o.behindClaims.all) await kind.takeDown?.(o, ref, signal);
      await unmark(o, ref);
      await unlinkDevice(o, ref);
      await takeDownMount(o, ref, signal);
    },
    found: stillAttached,
    grow: growMounted,
    async root(o, ref) {
      for (const kind of o.behindClaims.all) {
        const root = (await kind.root?.(o, ref)) ?? null;
        if (root !== null) return root;
      }
      return directoryOf(o, ref);
    },
  },
};
