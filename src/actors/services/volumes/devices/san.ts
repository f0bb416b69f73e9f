/** What is the same for disks of a network of disks, in a pod and behind a claim. */

import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import { isOfApi } from '../../../../machines/pod/phase.ts';
import { type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { PodVolume } from '../../../../machines/pod/volumes/volumes.ts';
import { NOT_ATTACHED, NOT_REPORTED } from '../../../../machines/services/volumes/csi/volume.ts';
import { unlinkDevice } from '../disk/claimed.ts';
import { isReady, markReady, takeDownMount } from '../disk/directory.ts';
import { giveForeignTree } from '../disk/group.ts';
import { directoryOf, type InlineActs, mounterOf, type PersistentActs, type VolumeTools } from '../kind.ts';
import { linkShared, setUpShared, stillAttached, takeDownShared } from './shared.ts';

interface DiskSource {
  fsType: string;
  options: readonly string[];
}
interface Wanted<S> {
  source: S;
  /** Name of the volume: of the pod's, or of the PersistentVolume. */
  name: string;
  block: boolean;
}
export interface SanKind<S> {
  root(rootDir: string): string;
  /** As the cluster calls it. */
  uniqueName(source: S): string;
  /** Directory of the node that stands for the disk. */
  place(o: VolumeTools, of: Wanted<S>): string;
  attach(o: VolumeTools, of: Wanted<S> & { pod: Pod; global: string }, signal: AbortSignal): Promise<string>;
  detach(o: VolumeTools, global: string, signal: AbortSignal): Promise<void>;
}

export function sanActs<S extends DiskSource>(kind: SanKind<S>): { inline: InlineActs<S>; persistent: PersistentActs<S> } {
  const deviceOf = (o: VolumeTools, of: Wanted<S> & { pod: Pod; volume: PodVolume }, signal: AbortSignal) => {
    const global = kind.place(o, of);
    const { fsType, options } = of.source;
    return {
      global,
      fsType,
      options,
      attached: attachable(o, of.pod) ? kind.uniqueName(of.source) : '',
      attach: () => kind.attach(o, { ...of, global }, signal),
    };
  };
  const mount = async (o: VolumeTools, of: Wanted<S> & { pod: Pod; volume: PodVolume }, signal: AbortSignal): Promise<void> => {
    const { pod, volume, source } = of;
    const device = deviceOf(o, of, signal);
    await awaitAttached(o, { volume, name: device.attached }, signal);
    await setUpShared(o, { volume, device }, signal);
    if (!source.options.includes('ro')) await giveForeignTree(o, { pod, dir: directoryOf(o, volume) }, signal);
    await markReady(o, volume);
  };
  const takeDown = async (o: VolumeTools, ref: VolumeRef, signal: AbortSignal): Promise<void> => {
    const own = { root: kind.root(o.facts().rootDir), detach: (global: string) => kind.detach(o, global, signal) };
    if (await takeDownShared(o, { ref, kind: own }, signal)) release(o, ref);
  };
  return {
    inline: {
      async setUp(o, { volume, pod, source }, signal) {
        const dir = directoryOf(o, volume);
        const mounted = mountsAt(await mounterOf(o).list(`${o.facts().rootDir}/pods`, dir), dir).length > 0;
        if (!mounted || !(await isReady(o, volume))) await mount(o, { volume, pod, source, name: volume.name, block: false }, signal);
        return null;
      },
      async takeDown(o, ref, signal) {
        await takeDown(o, ref, signal);
        await unlinkDevice(o, ref);
        await takeDownMount(o, ref, signal);
        release(o, ref);
      },
      found: stillAttached,
    },
    persistent: {
      async setUp(o, { volume, pod, source, behind }, signal) {
        const of = { volume, pod, source: behind, name: behind.volume, block: source.block };
        if (!source.block) return mount(o, of, signal).then(() => null);
        const device = deviceOf(o, of, signal);
        await awaitAttached(o, { volume, name: device.attached }, signal);
        return linkShared(o, { volume, source, device }, signal);
      },
      takeDown: async (o, ref, signal) => void (await takeDown(o, ref, signal)),
    },
  };
}

/** A pod of the API: its cluster looks after such volumes. */
function attachable(o: VolumeTools, pod: Pod): boolean {
  return o.csi.api !== null && isOfApi(pod);
}

/**
 * Rejects until the node has said that it uses the disk and the cluster has attached it. Without enableControllerAttachDetach the
 * node attaches it itself, which is nothing but to log in, or to look for the device: as in the kubelet.
 */
async function awaitAttached(o: VolumeTools, { volume, name }: { volume: VolumeRef; name: string }, signal: AbortSignal): Promise<void> {
  const { api, ledger, controllerAttaches, inUseChanged, reportedInUse } = o.csi;
  if (name === '' || api === null) return;
  if (!controllerAttaches) {
    if (ledger.use(volumeKey(volume), name)) inUseChanged();
    return;
  }
  if (ledger.use(volumeKey(volume), name)) inUseChanged();
  if (!reportedInUse().includes(name)) throw new Error(NOT_REPORTED);
  if (!(await api.attachedToNode(signal)).includes(name)) throw new Error(NOT_ATTACHED);
}
function release(o: VolumeTools, ref: VolumeRef): void {
  if (o.csi.ledger.release(volumeKey(ref))) o.csi.inUseChanged();
}
