/**
 * Cgroups of pods that have ended: removed, or while their volumes remain, given hardly any weight (resources 1.8).
 *
 * State held: what the last sweep saw of the views, what was last said of a group that cannot go.
 * Lost on restart: that; one sweep too many follows.
 * Rebuilt from: the pod manager's view, the runtime's listing, the volume manager's view, the kernel.
 */

import { groupWrites } from '../../../machines/allocation/cgroups/files.ts';
import { cgroupsAddress } from '../../../machines/allocation/cgroups/messages.ts';
import { componentOf, groupPath, kubepodsName, TIERS, tierName, uidOf } from '../../../machines/allocation/cgroups/names.ts';
import { LEAST_SHARES } from '../../../machines/allocation/cgroups/values.ts';
import type { GroupDriver } from '../../../machines/nodeFacts.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import type { HousekeepingEvent } from '../../../machines/reclaim/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { volumesView } from '../../../machines/services/volumes/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { CRI_LABELS } from '../../../machines/wire/cri.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import { criClient } from '../../runtime/client.ts';
import { type Sweeping, specOfSweeper } from '../../supervision/looks/sweeper.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { atWork, cgroupsOf } from './cgroups.ts';

/** The sweep's period, as housekeeping's. A sweep that finds the views unchanged costs nothing. */
const PERIOD_MS = 2_000;
const FULL_PERIOD_MS = 60_000;
const QUIET_MS = 100;

export interface ReaperOptions {
  root: string;
  /** Undefined until the runtime was asked: nothing is swept. */
  driver(): GroupDriver | undefined;
}

export function cgroupReaperSpec(o: ReaperOptions): ActorSpec<HousekeepingEvent> {
  const mailbox = { capacity: 64, key: () => 'run' };
  return specOfSweeper({ id: 'cgroupReaper', mailbox, everyMs: PERIOD_MS, quietMs: QUIET_MS }, (ctx) => new Reaper(ctx, o));
}

interface Found {
  uid: string;
  path: string;
}

class Reaper implements Sweeping {
  readonly #ctx: ActorCtx<HousekeepingEvent>;
  readonly #port: Cgroups;
  readonly #o: ReaperOptions;
  readonly #stuck = new Map<string, string>();
  /** Paths that have hardly any weight. */
  #light = new Set<string>();
  #seen: readonly unknown[] = [];
  #fullAtMonoMs = Number.NEGATIVE_INFINITY;

  constructor(ctx: ActorCtx<HousekeepingEvent>, o: ReaperOptions) {
    this.#ctx = ctx;
    this.#port = cgroupsOf(ctx.ports);
    this.#o = o;
  }

  due(): boolean {
    const views = this.#views();
    const isNew = views?.some((view, i) => view !== this.#seen[i]);
    return views !== null && (isNew === true || this.#ctx.ports.clock.monoMs() - this.#fullAtMonoMs >= FULL_PERIOD_MS);
  }
  /** What a sweep looks at; null: it is too early for one. A listing that shows nothing new has the same pods. */
  #views(): readonly unknown[] | null {
    const { registry } = this.#ctx;
    const [pods, listed, volumes] = [registry.read(podsView), registry.read(runtimePodsView), registry.read(volumesView)];
    // Before every source has delivered, an unknown pod may only be one we have not been told of yet.
    if (pods?.value.sourcesReady !== true || listed === undefined || volumes === undefined) return null;
    return [pods.value, listed.value.pods, volumes.value];
  }

  async sweep(signal: AbortSignal): Promise<string> {
    if (!this.due()) return '';
    const { registry, ports } = this.#ctx;
    const [views, now] = [this.#views() ?? [], ports.clock.monoMs()];
    const driver = this.#o.driver();
    if (driver === undefined) return '';
    const found = await this.#podGroups(driver);
    const here = new Set(found.map((f) => f.path));
    this.#light = new Set([...this.#light].filter((p) => here.has(p)));
    for (const p of this.#stuck.keys()) if (!here.has(p)) this.#stuck.delete(p);
    let removed = 0;
    let left = 0;
    for (const group of found) {
      signal.throwIfAborted();
      const done = await this.#look(group, signal);
      if (done === 'removed') removed += 1;
      if (done === 'stuck') left += 1;
    }
    if (removed > 0) registry.send(cgroupsAddress, { type: 'cgroups.look' });
    if (left > 0)
      throw new Error(`${left} cgroups of ended pods cannot be removed yet: ${[...this.#stuck.values()].slice(0, 3).join('; ')}`);
    this.#seen = views;
    this.#fullAtMonoMs = now;
    return removed === 0 ? '' : `${removed} cgroups of ended pods removed`;
  }

  async #podGroups(driver: GroupDriver): Promise<Found[]> {
    const found: Found[] = [];
    const kubepods = kubepodsName(this.#o.root);
    const own = this.#ownSpellings(driver);
    for (const name of [kubepods, ...TIERS.map((tier) => tierName(kubepods, tier))]) {
      const parent = groupPath(name, driver);
      for (const directory of await this.#port.list(parent)) {
        const uid = uidOf(componentOf(directory, driver));
        if (uid !== null) found.push({ uid: own.get(uid) ?? uid, path: `${parent}/${directory}` });
      }
    }
    return found;
  }

  /** A slice does not tell a dash from an underscore. UIDs of pods that are known and have one, by what their slice says. */
  #ownSpellings(driver: GroupDriver): ReadonlyMap<string, string> {
    if (driver === 'cgroupfs') return new Map();
    const { registry } = this.#ctx;
    const known = [registry.read(podsView)?.value.records, registry.read(runtimePodsView)?.value.pods].flatMap((m) => [
      ...(m?.keys() ?? []),
    ]);
    return new Map(known.filter((uid) => uid.includes('_')).map((uid) => [uid.replaceAll('_', '-'), uid]));
  }

  async #look({ uid, path }: Found, signal: AbortSignal): Promise<'kept' | 'removed' | 'stuck'> {
    if (this.#isWanted(uid)) {
      this.#light.delete(path);
      return 'kept';
    }
    try {
      if (this.#ctx.registry.read(volumesView)?.value.has(uid) !== false) {
        await this.#weighLess(path);
        return 'kept';
      }
      if ((await this.#port.pids(path)).length > 0) {
        // What is listed may be older than a sandbox that an earlier act has just made; its owner is to end it.
        if (await this.#runs(uid, signal)) return 'kept';
        if (this.#isWanted(uid)) return 'kept';
        await this.#port.kill(path);
      }
      // A life that has just begun asks for its group: after this call it finds it gone, or makes it anew.
      if (this.#isWanted(uid)) return 'kept';
      await this.#port.remove(path);
      this.#stuck.delete(path);
      return 'removed';
    } catch (error) {
      if (signal.aborted) throw error;
      const err = `${path}: ${messageOf(error)}`;
      if (this.#stuck.get(path) !== err)
        this.#ctx.log.warn({ uid, cgroup: path, err }, 'the cgroup of an ended pod is left; tried again soon');
      this.#stuck.set(path, err);
      return 'stuck';
    }
  }

  /** By a pod that is at work, or by what the runtime was seen to run of it. */
  #isWanted(uid: string): boolean {
    const { registry } = this.#ctx;
    const record = registry.read(podsView)?.value.records.get(uid);
    if (record !== undefined && atWork(record)) return true;
    const listed = registry.read(runtimePodsView)?.value.pods.get(uid);
    return listed !== undefined && (listed.sandboxes.some((s) => s.ready) || listed.containers.some((c) => c.state === 'running'));
  }

  /** @throws CriError */
  async #runs(uid: string, signal: AbortSignal): Promise<boolean> {
    const filter = { labelSelector: { [CRI_LABELS.podUid]: uid } };
    const cri = criClient(this.#ctx.registry);
    const [{ items }, { containers }] = await Promise.all([
      cri.read('ListPodSandbox', { filter }, { signal }),
      cri.read('ListContainers', { filter }, { signal }),
    ]);
    return items.some((s) => s.state === 'SANDBOX_READY') || containers.some((c) => c.state === 'CONTAINER_RUNNING');
  }

  async #weighLess(path: string): Promise<void> {
    if (this.#light.has(path)) return;
    const layout = await this.#port.detect(this.#o.driver() ?? 'cgroupfs');
    await this.#port.apply(path, groupWrites({ cpuShares: LEAST_SHARES }, layout));
    this.#light.add(path);
  }
}
