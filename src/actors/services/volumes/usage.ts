/**
 * What volumes use, measured when somebody asks and not more often than once in a period: nobody looks at a node that
 * nobody asks. A volume that does not answer holds up neither the others nor the answer.
 */

import { DEFAULT_SECONDS } from '../../../machines/edge/https/buckets.ts';
import { isoOfNanos } from '../../../machines/edge/https/stats.ts';
import {
  type MeasuredVolume,
  measuredVolume,
  type PodVolumes,
  usageOfDriver,
  type VolumeStats,
  type VolumeUsage,
  volumeStats,
} from '../../../machines/edge/https/volumeStats.ts';
import { view } from '../../../machines/protocol.ts';
import { driversView } from '../../../machines/services/plugins/messages.ts';
import type { VolumeData } from '../../../machines/services/volumes/csi/data.ts';
import { csiPath } from '../../../machines/services/volumes/csi/volume.ts';
import { volumeKey, volumePath } from '../../../machines/services/volumes/paths.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { driverNamed } from './csi/calls.ts';
import { readData } from './csi/place.ts';

export interface VolumeUsageOptions {
  rootDir: string;
  /** Config field volumeStatsAggPeriod, default a minute; 0 or less = nothing is measured. */
  periodMs: number;
  /** Gate CSIVolumeHealth: what drivers think of their volumes is told, too. */
  health: boolean;
}
/** Never rejects; by pod UID. Empty where nothing is to be measured, or can be. */
export type VolumeUsageSource = () => Promise<ReadonlyMap<string, PodVolumes>>;

type Ctx = Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal'>;

/** Whoever asks is answered with what is known by then. */
const ANSWER_MS = 2_000;
const MEASURE_TIMEOUT_MS = 30_000;
/** Helpers at once on disks of this node, and calls at once of one driver. */
const AT_ONCE_MAX = 4;
const DISK = 'disk of the node';

interface Entry {
  volume: MeasuredVolume;
  /** Null: not measured yet, or it could not be. */
  stats: VolumeStats | null;
  beganMonoMs: number;
  running: boolean;
  error: string;
}

export function createVolumeUsage(ctx: Ctx, o: VolumeUsageOptions): VolumeUsageSource {
  const { ports, registry, log, signal } = ctx;
  const entries = new Map<string, Entry>();
  const turns = new Map<string, Turns>();
  const turnsOf = (who: string): Turns => {
    const found = turns.get(who) ?? new Turns();
    turns.set(who, found);
    return found;
  };
  const duration = ports.metrics.histogram(
    'kubelet_volume_metric_collection_duration_seconds',
    'Duration in seconds to calculate volume stats',
    DEFAULT_SECONDS,
    ['metric_source'],
  );
  /** `metric_source`: how it is measured, or the driver that tells. */
  const timed = async <T>(metric_source: string, work: () => Promise<T>): Promise<T> => {
    const beganMs = ports.clock.monoMs();
    try {
      return await work();
    } finally {
      duration.observe((ports.clock.monoMs() - beganMs) / 1000, { metric_source });
    }
  };
  const measure = async (entry: Entry): Promise<void> => {
    const { ref } = entry.volume;
    entry.running = true;
    try {
      const usage = await usageOf(entry.volume);
      const time = isoOfNanos(BigInt(Math.round(ports.clock.wallMs())) * 1_000_000n);
      entry.stats = usage === null ? null : volumeStats(entry.volume, usage, time);
      entry.error = '';
    } catch (error) {
      const err = messageOf(error);
      if (!signal.aborted && err !== entry.error) log.warn({ uid: ref.uid, volume: ref.name, err }, 'what a volume uses could not be had');
      entry.error = err;
    } finally {
      entry.running = false;
    }
  };
  /** Null: this volume tells nothing. */
  const usageOf = async (v: MeasuredVolume): Promise<VolumeUsage | null> => {
    const data = v.by === 'claim' ? await readData(ports.fs, csiPath.dir(o.rootDir, v.ref.uid, v.ref.name)) : null;
    if (data !== null) return turnsOf(`driver ${data.driver}`).run(() => ofDriver(v, data));
    const { diskUsage } = ports;
    if (diskUsage === undefined) return null;
    const how = { tree: v.by === 'tree', timeoutMs: MEASURE_TIMEOUT_MS, signal };
    const by = how.tree ? 'du' : 'statfs';
    const found = await turnsOf(DISK).run(() => timed(by, () => diskUsage.measure(volumePath(o.rootDir, v.ref), how)));
    return {
      availableBytes: found.bytesAvailable,
      capacityBytes: found.bytesTotal,
      usedBytes: found.bytesUsed,
      inodesFree: found.inodesFree,
      inodes: found.inodesTotal,
      inodesUsed: found.inodesUsed,
    };
  };
  const ofDriver = async (v: MeasuredVolume, data: VolumeData): Promise<VolumeUsage | null> => {
    const drivers = () => registry.read(driversView)?.value ?? new Map();
    const driver = driverNamed({ ports, drivers }, data.driver, 'NodeGetVolumeStats');
    const capabilities = await driver.capabilities(signal);
    if (!capabilities.has('GET_VOLUME_STATS')) return null;
    const hash = ports.entropy.sha256Hex(data.handle);
    const volumeTarget = data.block
      ? `${csiPath.blockDir(o.rootDir, hash)}/${v.ref.uid}`
      : `${csiPath.dir(o.rootDir, v.ref.uid, v.ref.name)}/mount`;
    const request = { volumeId: data.handle, volumePath: volumeTarget, stagingTargetPath: '' };
    const answer = await timed(data.driver, () => driver.call('NodeGetVolumeStats', request, signal));
    return usageOfDriver(answer, { health: o.health && capabilities.has('VOLUME_CONDITION') });
  };
  /** Volumes that stand, of pods that are known; what is gone is forgotten. */
  const look = (): void => {
    const pods = registry.read(view.pods)?.value.records;
    const known = new Set<string>();
    for (const [uid, volumes] of registry.read(view.volumes)?.value ?? []) {
      const pod = pods?.get(uid)?.pod;
      if (pod === undefined) continue;
      for (const { plugin, name, state } of volumes) {
        const volume = state === 'mounted' || state === 'stale' ? measuredVolume(pod, { uid, plugin, name }) : null;
        if (volume === null) continue;
        const key = volumeKey(volume.ref);
        known.add(key);
        const entry = entries.get(key);
        if (entry === undefined)
          entries.set(key, { volume, stats: null, beganMonoMs: Number.NEGATIVE_INFINITY, running: false, error: '' });
        else entry.volume = volume;
      }
    }
    for (const key of entries.keys()) if (!known.has(key)) entries.delete(key);
  };
  return async () => {
    if (o.periodMs <= 0) return new Map();
    look();
    const now = ports.clock.monoMs();
    const due = [...entries.values()].filter(
      (e) => !e.running && e.beganMonoMs + o.periodMs <= now && !(e.volume.once && e.stats !== null),
    );
    const round = due.map((entry) => {
      entry.beganMonoMs = now;
      return measure(entry);
    });
    if (round.length > 0) await within(ports.clock, Promise.all(round));
    const byPod = new Map<string, { all: VolumeStats[]; ephemeral: VolumeStats[] }>();
    for (const { volume, stats } of entries.values()) {
      if (stats === null) continue;
      const mine = byPod.get(volume.ref.uid) ?? { all: [], ephemeral: [] };
      mine.all.push(stats);
      if (volume.ephemeral) mine.ephemeral.push(stats);
      byPod.set(volume.ref.uid, mine);
    }
    return byPod;
  };
}

/** Only so many at once; the others wait for their turn. */
class Turns {
  #free = AT_ONCE_MAX;
  readonly #waiting: (() => void)[] = [];

  async run<T>(act: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await act();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
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
