/**
 * What volumes use, measured when somebody asks and not more often than once in a period: nobody looks at a node that
 * nobody asks. A volume that does not answer holds up neither the others nor the answer.
 */

import { isoOfNanos } from '../../../machines/figures/figure.ts';
import {
  type MeasuredVolume,
  measuredVolume,
  type PodVolumes,
  usageOfDriver,
  type VolumeStats,
  type VolumeUsage,
  volumeStats,
} from '../../../machines/figures/volumeStats.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import { serverOf } from '../../../machines/host/unmounting.ts';
import { peerViews } from '../../../machines/pod/peers/peers.ts';
import { CSI } from '../../../machines/pod/volumes/kinds/csi.ts';
import { standOf, volumeKey, volumePath, volumeRef } from '../../../machines/pod/volumes/volumePaths.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { driversView } from '../../../machines/services/plugins/messages.ts';
import type { VolumeData } from '../../../machines/services/volumes/csi/data.ts';
import { volumesView } from '../../../machines/services/volumes/messages.ts';
import { DEFAULT_SECONDS } from '../../../machines/text/buckets.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { DiskFigures, DiskUsage } from '../../../ports/machine/diskUsage.ts';
import type { Metrics } from '../../../ports/ports.ts';
import { AtOnce } from '../../../ports/turns.ts';
import { type PeerCalls, peerCalls } from '../../foundation/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { driverNamed } from './csi/calls.ts';
import { placeOf, readData } from './csi/place.ts';
import { readyAt } from './disk/directory.ts';
import { quotaUse } from './disk/quota.ts';

export interface VolumeUsageOptions {
  rootDir: string;
  /** Config field volumeStatsAggPeriod, default a minute; 0 or less = nothing is measured. */
  periodMs: number;
  /** Gate CSIVolumeHealth: what drivers think of their volumes is told, too. */
  health: boolean;
  /** Its events are another server's to tell. Default false. */
  silent?: boolean;
  /** Gate LocalStorageCapacityIsolationFSQuotaMonitoring. Default false. */
  quotas?: boolean;
}
/** Never rejects; by pod UID. Empty where nothing is to be measured, or can be. */
export type VolumeUsageSource = () => Promise<ReadonlyMap<string, PodVolumes>>;

type Ctx = Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal' | 'publish'>;

/** A caller is answered after this with what is known by then. */
const ANSWER_MS = 2_000;
const MEASURE_TIMEOUT_MS = 30_000;
/** Helpers at once on disks of this node, and of one server; calls at once of one driver. */
const AT_ONCE_MAX = 4;

interface Entry {
  volume: MeasuredVolume;
  /** Null: not measured yet, or it could not be. */
  stats: VolumeStats | null;
  beganMonoMs: number;
  running: boolean;
  error: string;
}

export function createVolumeUsage(ctx: Ctx, o: VolumeUsageOptions): VolumeUsageSource {
  const volumes = new KnownVolumes(ctx);
  const meter = new UsageMeter(ctx, o);
  const tells = o.health && o.silent !== true;
  const look = async () => {
    if (o.periodMs <= 0) return new Map();
    volumes.look();
    const now = ctx.ports.clock.monoMs();
    const round = volumes.due(now, o.periodMs).map((entry) => {
      entry.beganMonoMs = now;
      return measure(ctx, { meter, tells }, entry);
    });
    if (round.length > 0) await within(ctx.ports.clock, Promise.all(round));
    return volumes.measured();
  };
  if (tells && o.periodMs > 0) lookAgainAndAgain(ctx, o.periodMs, look);
  return look;
}

/** Events about the health of volumes come also on a node whose figures nobody reads. */
function lookAgainAndAgain({ ports: { clock, rng }, signal }: Ctx, periodMs: number, look: VolumeUsageSource): void {
  let timer: ReturnType<typeof clock.setTimeout>;
  const arm = (): void => {
    timer = clock.setTimeout(() => void look().finally(() => signal.aborted || arm()), periodMs * (1 + rng.next()));
  };
  arm();
  signal.addEventListener('abort', () => clock.clearTimeout(timer), { once: true });
}

/** In the words of the kubelet, after each measurement that shows it. */
function sayAbnormal({ registry }: Ctx, { ref, pod }: MeasuredVolume, usage: VolumeUsage | null): void {
  if (usage?.abnormal !== true) return;
  const message = `Volume ${ref.name}: ${usage.condition ?? ''}`;
  registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason: 'VolumeConditionAbnormal', message, pod } });
}

async function measure(ctx: Ctx, { meter, tells }: { meter: UsageMeter; tells: boolean }, entry: Entry): Promise<void> {
  const { ports, log, signal } = ctx;
  const { ref } = entry.volume;
  entry.running = true;
  try {
    const usage = await meter.usageOf(entry.volume);
    const time = isoOfNanos(BigInt(Math.round(ports.clock.wallMs())) * 1_000_000n);
    if (tells) sayAbnormal(ctx, entry.volume, usage);
    entry.stats = usage === null ? null : volumeStats(entry.volume, usage, time);
    entry.error = '';
  } catch (error) {
    const err = messageOf(error);
    if (!signal.aborted && err !== entry.error) log.warn({ uid: ref.uid, volume: ref.name, err }, 'what a volume uses could not be had');
    entry.error = err;
  } finally {
    entry.running = false;
  }
}

/** Volumes that stand, of pods that are known, and what was measured of them last. */
class KnownVolumes {
  readonly #registry: Ctx['registry'];
  /** By volume key. */
  readonly #entries = new Map<string, Entry>();

  constructor({ registry }: Ctx) {
    this.#registry = registry;
  }

  /** What is gone is forgotten. */
  look(): void {
    const pods = this.#registry.read(podsView)?.value.records;
    const known = new Set<string>();
    for (const [uid, volumes] of this.#registry.read(volumesView)?.value ?? []) {
      const pod = pods?.get(uid)?.pod;
      if (pod === undefined) continue;
      for (const { plugin, name, state, stands } of volumes) {
        const ref = { ...volumeRef(uid, plugin, name), ...(stands && { stands }) };
        const volume = state === 'mounted' || state === 'stale' ? measuredVolume(pod, ref) : null;
        if (volume !== null) known.add(this.#keep(volume));
      }
    }
    for (const key of this.#entries.keys()) if (!known.has(key)) this.#entries.delete(key);
  }

  /** Last measured a period ago or earlier, and not being measured now. */
  due(nowMonoMs: number, periodMs: number): Entry[] {
    const entries = [...this.#entries.values()];
    return entries.filter((e) => !e.running && e.beganMonoMs + periodMs <= nowMonoMs && !(e.volume.once && e.stats !== null));
  }

  measured(): ReadonlyMap<string, PodVolumes> {
    const byPod = new Map<string, { all: VolumeStats[]; ephemeral: VolumeStats[] }>();
    for (const { volume, stats } of this.#entries.values()) {
      if (stats === null) continue;
      const mine = byPod.get(volume.ref.uid) ?? { all: [], ephemeral: [] };
      mine.all.push(stats);
      if (volume.ephemeral) mine.ephemeral.push(stats);
      byPod.set(volume.ref.uid, mine);
    }
    return byPod;
  }

  #keep(volume: MeasuredVolume): string {
    const key = volumeKey(volume.ref);
    const entry = this.#entries.get(key);
    if (entry === undefined)
      this.#entries.set(key, { volume, stats: null, beganMonoMs: Number.NEGATIVE_INFINITY, running: false, error: '' });
    else entry.volume = volume;
    return key;
  }
}

/** Measures one volume: on this node's disk, or by its driver. */
class UsageMeter {
  readonly #ctx: Ctx;
  readonly #o: VolumeUsageOptions;
  readonly #atOnce = new AtOnce(AT_ONCE_MAX);
  readonly #calls: PeerCalls;
  readonly #duration: ReturnType<Metrics['histogram']>;

  constructor(ctx: Ctx, o: VolumeUsageOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#calls = peerCalls(ctx, peerViews.volumeStats);
    this.#duration = ctx.ports.metrics.histogram(
      'kubelet_volume_metric_collection_duration_seconds',
      'Duration in seconds to calculate volume stats',
      DEFAULT_SECONDS,
      ['metric_source'],
    );
  }

  /** Measures what a volume holds. Null: this volume gives no figures. */
  async usageOf(v: MeasuredVolume): Promise<VolumeUsage | null> {
    const { ports } = this.#ctx;
    const data = v.by === 'claim' && standOf(v.ref).plugin === CSI ? await readData(ports.fs, this.#o.rootDir, v.ref) : null;
    if (data !== null) return this.#atOnce.run(`driver ${data.driver}`, () => this.#ofDriver(v, data));
    const { diskUsage, mounter } = ports;
    if (diskUsage === undefined) return null;
    // A path of the host is no file system of the volume's own.
    if (v.by === 'claim' && (await readyAt({ ports, facts: () => this.#o }, v.ref))) return null;
    const dir = volumePath(this.#o.rootDir, v.ref);
    const server = v.by === 'tree' ? '' : serverOf((await mounter?.list(`${this.#o.rootDir}/pods`, dir)) ?? [], dir);
    return this.#atOnce.run(`disk ${server}`, async () => (await this.#byProject(v, diskUsage)) ?? this.#onDisk(v, diskUsage));
  }

  /** Figures of the volume's project. Null: the file system does not count what the volume holds. */
  async #byProject({ by, ref }: MeasuredVolume, diskUsage: DiskUsage): Promise<VolumeUsage | null> {
    const { ports, signal } = this.#ctx;
    if (this.#o.quotas !== true || by !== 'tree') return null;
    const dir = volumePath(this.#o.rootDir, ref);
    const beganMs = ports.clock.monoMs();
    const used = await quotaUse({ ports, facts: () => this.#o }, dir, signal);
    if (used === null) return null;
    this.#duration.observe((ports.clock.monoMs() - beganMs) / 1000, { metric_source: 'fsquota' });
    const room = await diskUsage.measure(dir, { tree: false, timeoutMs: MEASURE_TIMEOUT_MS, signal });
    return { ...usageOf(room), usedBytes: used.bytes, inodesUsed: used.inodes };
  }

  async #onDisk(v: MeasuredVolume, diskUsage: DiskUsage): Promise<VolumeUsage> {
    const how = { tree: v.by === 'tree', timeoutMs: MEASURE_TIMEOUT_MS, signal: this.#ctx.signal };
    return usageOf(await this.#timed(how.tree ? 'du' : 'statfs', () => diskUsage.measure(volumePath(this.#o.rootDir, v.ref), how)));
  }

  async #ofDriver(v: MeasuredVolume, data: VolumeData): Promise<VolumeUsage | null> {
    const { ports, registry, signal } = this.#ctx;
    const { rootDir, health } = this.#o;
    const drivers = () => registry.read(driversView)?.value ?? new Map();
    const known = { ports, drivers, unregistered: () => '', calls: this.#calls };
    const driver = driverNamed(known, data.driver, { who: 'NodeGetVolumeStats', of: v.ref });
    const capabilities = await driver.capabilities(signal);
    if (!capabilities.has('GET_VOLUME_STATS')) return null;
    const { target } = placeOf({ ports, facts: () => ({ rootDir }) }, v.ref, data);
    const request = { volumeId: data.handle, volumePath: target, stagingTargetPath: '' };
    const answer = await this.#timed(data.driver, () => driver.call('NodeGetVolumeStats', request, signal));
    return usageOfDriver(answer, { health: health && capabilities.has('VOLUME_CONDITION') });
  }

  /** `metric_source`: how it is measured, or the driver that tells. */
  async #timed<T>(metric_source: string, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#ctx.ports;
    const beganMs = clock.monoMs();
    try {
      return await work();
    } finally {
      this.#duration.observe((clock.monoMs() - beganMs) / 1000, { metric_source });
    }
  }
}

function usageOf(found: DiskFigures): VolumeUsage {
  return {
    availableBytes: found.bytesAvailable,
    capacityBytes: found.bytesTotal,
    usedBytes: found.bytesUsed,
    inodesFree: found.inodesFree,
    inodes: found.inodesTotal,
    inodesUsed: found.inodesUsed,
  };
}

async function within(clock: Ctx['ports']['clock'], round: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = clock.setTimeout(late.resolve, ANSWER_MS);
  try {
    await Promise.race([round, late.promise]);
  } finally {
    clock.clearTimeout(timer);
  }
}
