/**
 * State held: what the last sweep saw of the views.
 * Lost on restart: that; one sweep too many follows.
 * Rebuilt from: the pod manager's view, the runtime's listing, the pods directory.
 */

import { type MountEntry, mountsBelow } from '../../machines/host/mountinfo.ts';
import { groupByPod } from '../../machines/pod/runtime/listed.ts';
import type { ListedPod, SourceName } from '../../machines/pod/runtime/seen.ts';
import { waitingPodsView } from '../../machines/pods/admission/messages.ts';
import { isRefused, type PodsView, podManagerAddr, podsView } from '../../machines/pods/manager/messages.ts';
import { keepsRefused, keptPods } from '../../machines/pods/podConfig/kept.ts';
import { type SourceError, sourceErrorsView } from '../../machines/pods/podConfig/messages.ts';
import { statusAddr, statusesView } from '../../machines/pods/status/messages.ts';
import { containerGcAddr, type HousekeepingEvent, removingDirs } from '../../machines/reclaim/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { volumesView } from '../../machines/services/volumes/messages.ts';
import type { ViewKey } from '../../machines/supervision/address.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { ifThere, listIfThere, removeTree, rmdirIfFree } from '../../ports/ifThere.ts';
import type { HostFs, Metrics } from '../../ports/ports.ts';
import { criClient } from '../runtime/client.ts';
import { specOfSweeper } from '../supervision/looks/sweeper.ts';
import type { ActorCtx, ActorSpec, Registry } from '../supervision/types.ts';
import { giveBackUserNamespaces } from './userNamespaces.ts';

export interface HousekeepingOptions {
  rootDir: string;
}
/** Pod lifecycle 2.1. Where all views are unchanged nothing is swept. */
const PERIOD_MS = 2_000;
/** Even with unchanged views the directories are looked at this often. */
const FULL_PERIOD_MS = 60_000;
/** The same while something of a pod that is gone is left. */
const LEFT_PERIOD_MS = 10_000;

export function housekeepingSpec(opts: HousekeepingOptions): ActorSpec<HousekeepingEvent> {
  const mailbox = { capacity: 64, key: () => 'run' };
  return specOfSweeper({ id: 'housekeeping', mailbox, everyMs: PERIOD_MS, quietMs: 100 }, (ctx) => {
    ctx.publish(removingDirs, new Set());
    const seen: Seen = {
      stuck: new Map(),
      views: null,
      fullAtMonoMs: Number.NEGATIVE_INFINITY,
      left: false,
      ended: new Set(),
      metrics: orphanMetrics(ctx.ports.metrics),
    };
    return { sweep: (signal) => sweep(ctx, { opts, seen, signal }), due: () => isDue(ctx, seen) };
  });
}

const podsDir = (o: HousekeepingOptions) => `${o.rootDir}/pods`;

interface Seen {
  /** What was said of directories that cannot be removed: said again only when it is something else. */
  stuck: Map<string, string>;
  /** Null before the first sweep. */
  views: readonly unknown[] | null;
  fullAtMonoMs: number;
  /** Something of a pod that is gone was left by the last sweep. */
  left: boolean;
  /** Pods that had ended at the last sweep. */
  ended: ReadonlySet<string>;
  metrics: ReturnType<typeof orphanMetrics>;
}

function orphanMetrics(metrics: Metrics) {
  return {
    found: metrics.counter(
      'kubelet_orphaned_runtime_pods_total',
      'Number of pods that have been detected in the container runtime without being already known to the pod worker.',
    ),
    cleaned: metrics.gauge(
      'kubelet_orphan_pod_cleaned_volumes',
      'The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.',
    ),
    errors: metrics.gauge(
      'kubelet_orphan_pod_cleaned_volumes_errors',
      'The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.',
    ),
  };
}

function isDue({ registry, ports }: ActorCtx<HousekeepingEvent>, seen: Seen): boolean {
  const pods = registry.read(podsView);
  // Before every source has delivered, an unknown pod may only be one we have not been told of yet (trap 6).
  if (pods?.value.sourcesReady !== true || registry.read(runtimePodsView) === undefined) return false;
  const sinceMs = ports.clock.monoMs() - seen.fullAtMonoMs;
  const isNew = seen.views === null || viewsOf(registry).some((view, i) => view !== seen.views?.[i]);
  return isNew || sinceMs >= (seen.left ? LEFT_PERIOD_MS : FULL_PERIOD_MS);
}
/** What a sweep looks at. A listing that shows nothing new has the same pods. */
function viewsOf(registry: Registry): readonly unknown[] {
  const views: readonly ViewKey<unknown>[] = [podsView, sourceErrorsView, waitingPodsView, volumesView];
  return [registry.read(runtimePodsView)?.value.pods, ...views.map((view) => registry.read(view)?.value)];
}

async function sweep(
  ctx: ActorCtx<HousekeepingEvent>,
  { opts, seen, signal }: { opts: HousekeepingOptions; seen: Seen; signal: AbortSignal },
): Promise<string> {
  const pods = ctx.registry.read(podsView);
  const listed = ctx.registry.read(runtimePodsView);
  if (pods === undefined || listed === undefined || !isDue(ctx, seen)) return '';
  const [views, nowMonoMs] = [viewsOf(ctx.registry), ctx.ports.clock.monoMs()];
  const records = () => ctx.registry.read(podsView)?.value.records ?? pods.value.records;
  forgetStatuses(ctx, records());
  const dirs = await listIfThere(ctx.ports.fs, podsDir(opts));
  const known = (uid: string) => records().has(uid) || listed.value.pods.has(uid);
  const unknown = () => dirs.filter((uid) => !records().has(uid));
  let orphans = 0;
  let removed = 0;
  const orphaned = (of: PodsView['records'], listed: ReadonlyMap<string, ListedPod>) =>
    orphanedPods(of, listed, ctx.registry.read(sourceErrorsView)?.value ?? new Map()).filter(
      // A source names it, and the pod manager has still to let it in or to refuse it.
      ({ uid }) => ctx.registry.read(waitingPodsView)?.value.has(uid) !== true,
    );
  if (orphaned(records(), listed.value.pods).length > 0 || unknown().length > 0) {
    // The view may be older than the end of a pod that has just been let go, or than the start of one whose worker died
    // since and took what it knew with it: decided on what the runtime holds now.
    const cri = criClient(ctx.registry);
    const [{ items }, { containers }] = await Promise.all([
      cri.read('ListPodSandbox', {}, { signal }),
      cri.read('ListContainers', {}, { signal }),
    ]);
    // The pod manager may have begun anew over this: what it does not know yet is no orphan.
    const ledger = ctx.registry.read(podsView)?.value;
    if (ledger?.sourcesReady !== true) return '';
    const now = groupByPod(items, containers);
    for (const pod of orphaned(records(), now)) {
      ctx.registry.send(podManagerAddr, { type: 'pods.orphan', listed: pod, epoch: ledger.epoch ?? 1 });
      seen.metrics.found.inc();
      orphans += 1;
    }
    const held = (uid: string) => known(uid) || now.has(uid);
    // An earlier daemon may have died before its containers were collected.
    if (unknown().some((uid) => now.has(uid) && !isUp(now.get(uid))))
      ctx.registry.send(containerGcAddr, { type: 'gc.run', why: 'the runtime still has containers of a pod that is gone' });
    removed = await removeOrphanDirs(ctx, { root: podsDir(opts), dirs, known: held, stuck: seen.stuck, signal });
  }
  // An earlier sweep may have got no further than a directory.
  const over = (uid: string) => records().get(uid)?.worker?.phase === 'finished' && !isUp(listed.value.pods.get(uid));
  const ended = new Set([...records().keys()].filter(over));
  if (removed > 0 || seen.views === null || [...ended].some((uid) => !seen.ended.has(uid)))
    await giveBackUserNamespaces(ctx, { rootDir: opts.rootDir, known, over });
  seen.ended = ended;
  seen.metrics.cleaned.set(removed);
  for (const uid of seen.stuck.keys()) if (!dirs.includes(uid)) seen.stuck.delete(uid);
  seen.metrics.errors.set(seen.stuck.size);
  seen.left = unknown().length > removed || orphans > 0;
  seen.views = views;
  seen.fullAtMonoMs = nowMonoMs;
  return orphans + removed === 0 ? '' : `${orphans} orphaned pods stopped, ${removed} orphaned pod directories removed`;
}

/**
 * Pods that run and have nobody who minds them. A refused pod has no worker: what runs of it ran before it was refused. One
 * that has ended has none any more: what runs of it was asked for before, and came late.
 */
function orphanedPods(
  records: PodsView['records'],
  listed: ReadonlyMap<string, ListedPod>,
  errors: ReadonlyMap<SourceName, readonly SourceError[]>,
): ListedPod[] {
  const orphans = [...listed.values()].filter((pod) => {
    const record = records.get(pod.uid);
    const over = record?.worker?.phase === 'finished' || (record?.worker === null && isRefused(record));
    return isUp(pod) && (record === undefined || (over && !keepsRefused(record)));
  });
  const unknown = orphans.filter((pod) => !records.has(pod.uid));
  const kept = new Set([...errors].flatMap(([source, of]) => keptPods(unknown, source, of)));
  return orphans.filter((pod) => !kept.has(pod));
}
function isUp(pod: ListedPod | undefined): boolean {
  return pod !== undefined && (pod.containers.some((c) => c.state === 'running') || pod.sandboxes.some((s) => s.ready));
}

/** Statuses of pods that went while the pod manager was away. */
function forgetStatuses(ctx: ActorCtx<HousekeepingEvent>, records: PodsView['records']): void {
  for (const [uid, { life }] of ctx.registry.read(statusesView)?.value ?? []) {
    if (!records.has(uid)) ctx.registry.send(statusAddr, { type: 'status.forget', uid, life });
  }
}

/**
 * Directories of pods that nobody knows and the runtime does not hold (pod lifecycle 9.5). Their volumes are the volume
 * manager's to take down first: nothing is removed where it still has one, or where the mount table shows a mount.
 */
async function removeOrphanDirs(
  ctx: ActorCtx<HousekeepingEvent>,
  o: { root: string; dirs: readonly string[]; known(uid: string): boolean; stuck: Map<string, string>; signal: AbortSignal },
): Promise<number> {
  const { fs } = ctx.ports;
  const orphaned = (uid: string) => !o.known(uid) && ctx.registry.read(volumesView)?.value.has(uid) === false;
  const orphans = o.dirs.filter(orphaned);
  if (orphans.length === 0) return 0;
  // Once for all, since it is long: for a pod that is unknown nothing is mounted meanwhile.
  const mounts = (await ctx.ports.mounter?.list(o.root)) ?? [];
  let removed = 0;
  for (const uid of orphans) {
    const dir = `${o.root}/${uid}`;
    ctx.publish(removingDirs, new Set([uid]));
    try {
      const unwanted = () => orphaned(uid);
      if (unwanted() && (await removeOrphanDir(fs, { dir, mounts, signal: o.signal, unwanted }))) removed += 1;
    } catch (error) {
      if (o.signal.aborted) throw error;
      // A directory that cannot go keeps no other from going.
      const err = messageOf(error);
      if (o.stuck.get(uid) !== err) ctx.log.warn({ uid, dir, err }, 'directory of an unknown pod is left alone; tried again later');
      o.stuck.set(uid, err);
    } finally {
      ctx.publish(removingDirs, new Set());
    }
  }
  return removed;
}

async function removeOrphanDir(
  fs: HostFs,
  { dir, mounts, signal, unwanted }: { dir: string; mounts: readonly MountEntry[]; signal: AbortSignal; unwanted(): boolean },
): Promise<boolean> {
  const top = await ifThere(fs.lstat(dir));
  if (top?.kind !== 'dir') return false;
  // A bind of the same file system looks like any other directory: only the table tells.
  const [mount] = mountsBelow(mounts, dir);
  if (mount !== undefined) throw new Error(`${mount.path} is mounted there`);
  if (!unwanted()) return false;
  if (!(await rmdirIfFree(fs, `${dir}/volumes`))) {
    for (const plugin of await listIfThere(fs, `${dir}/volumes`)) {
      const [left] = await listIfThere(fs, `${dir}/volumes/${plugin}`);
      if (left !== undefined) throw new Error(`it still has volumes: ${plugin}/${left}`);
    }
  }
  if (unwanted()) await rmdirIfFree(fs, `${dir}/plugins`);
  return removeTree(fs, { dir, dev: top.dev }, () => {
    signal.throwIfAborted();
    return unwanted();
  });
}
