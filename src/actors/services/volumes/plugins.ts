/** Sets volumes up, takes them down and finds them after a restart: what is the same for each kind. The rest is in `kinds`. */

import { pathName } from '../../../machines/pod/pathName.ts';
import { kindOf, kindOfPlugin } from '../../../machines/pod/volumes/kinds.ts';
import { isSameStand, subPathsDir, type VolumeRef } from '../../../machines/pod/volumes/volumePaths.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import type { BoundPart } from '../../../machines/services/volumes/subPaths.ts';
import type { GrowJob, GrowthOutcome, SetUpDone, SetUpJob } from '../../../machines/services/volumes/volumeMachine.ts';
import { cleanSubPaths } from './disk/directory.ts';
import { DIR_MODE, mountCall, serverCall } from './disk/limits.ts';
import { alone, standsOf } from './disk/stand.ts';
import { type FoundVolumes, foundVolumes } from './found.ts';
import { directoryOf, type GrowUntil, mounterOf, type VolumeTools } from './kind.ts';
import { behindClaims, inlineActs } from './kinds.ts';

export class Plugins {
  readonly #o: VolumeTools;

  constructor(o: Omit<VolumeTools, 'behindClaims'>) {
    this.#o = { ...o, behindClaims };
  }

  setUp(job: SetUpJob, signal: AbortSignal): Promise<SetUpDone | null> {
    const { source } = job.volume;
    return inlineActs(source.kind).setUp(this.#o, { ...job, source }, signal);
  }

  async grow(job: GrowJob, until: GrowUntil): Promise<GrowthOutcome> {
    const { source } = job.volume;
    return (await inlineActs(source.kind).grow?.(this.#o, { ...job, source }, until)) ?? { kind: 'looked', fixed: true };
  }

  /** Directories of volumes of all pods; those of plugins we do not have are left alone, and said. */
  scan(): Promise<FoundVolumes> {
    return foundVolumes(this.#o);
  }

  async tearDown(ref: VolumeRef, signal: AbortSignal): Promise<void> {
    const kind = kindOfPlugin(ref.plugin);
    if (kind === undefined || kind.stands === 'nowhere') return;
    const acts = inlineActs(kind.kind);
    await cleanSubPaths(this.#o, (await acts.placed?.(this.#o, ref)) ?? ref, signal);
    const takeDown = async () => acts.takeDown?.(this.#o, ref, signal);
    if (kind.kind === 'claim' || this.#o.behindClaims.at(ref.plugin).length === 0) return void (await takeDown());
    // A volume of no record lies where a claim of its pod may be set up at this moment: then it is that one's.
    await alone(this.#o, ref, ref, signal, async () => {
      const claimed = (await standsOf(this.#o, ref.uid)).some(({ stands }) => isSameStand(stands, ref));
      if (!claimed) await takeDown();
    });
  }

  /** Where one part of a volume that is set up is to be mounted from, for one container. */
  async bindSubPath(part: BoundPart, signal: AbortSignal): Promise<Built<string>> {
    const { container, index, subPath } = part;
    const { source } = part.volume;
    const acts = inlineActs(source.kind);
    const volume = (await acts.placed?.(this.#o, part.volume)) ?? part.volume;
    const dir = `${subPathsDir(this.#o.facts().rootDir, volume)}/${pathName(container)}`;
    await this.#o.ports.fs.mkdirp(dir, DIR_MODE);
    const root = (await acts.root?.(this.#o, volume, source)) ?? directoryOf(this.#o, volume);
    const { foreign } = kindOf(source);
    const request = { volume: root, subPath, target: `${dir}/${index}`, foreign };
    const result = await mounterOf(this.#o).bindSubPath(request, (foreign ? serverCall : mountCall)(signal));
    if (result.kind === 'bound') return built(request.target);
    const { uid, name } = volume;
    this.#o.log.warn({ uid, volume: name, container, subPath, err: result.why }, 'a part of a volume is not mounted');
    // What is on the host is not for the user of the pod to know (trap 60).
    const what = result.step === 'create' ? 'create subPath directory' : 'prepare subPath';
    return refused(`failed to ${what} for volumeMount "${name}" of container "${container}"`);
  }
}
