/** A machine whose cgroups fail now and then while a world is young: writes, makings, removals. Of its own chance. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimRng } from '../rng.ts';
import { type CgroupOperation, SimCgroups } from './cgroups.ts';
import { processesIn } from './processes.ts';

export type { SimCgroups };

export interface CgroupTuning {
  /** Longest time that a change takes. */
  latencyMs: number;
  /** Chance that a change fails, until {@link CgroupTuning.healsAtMs}. */
  failing: number;
  /** Monotonic ms of the world from which on nothing fails. */
  healsAtMs: number;
  /** Once in that time somebody takes a class away with all that is in it, as far as nothing runs there. */
  takenAtMs: number | null;
  podPidsLimit: number;
  /** The runtime has the driver systemd, whose bus is away or slow now and then. */
  systemd: boolean;
}

const CHANGES: readonly CgroupOperation[] = ['create', 'apply', 'remove', 'list', 'pids'];
const CODES = ['EBUSY', 'EIO', 'EINVAL'] as const;
/** Errors of a bus that is away, one that says nothing in time, and a systemd that refuses. */
const BUS_CODES = ['ECONNREFUSED', 'ETIMEDOUT', 'org.freedesktop.DBus.Error.AccessDenied'] as const;
const OF_BUS: readonly CgroupOperation[] = ['detect', 'create', 'apply', 'remove'];

export function tunedCgroups(o: {
  tuning: CgroupTuning | null;
  runtime: Pick<HollowRuntime, 'dump'>;
  clock: Clock;
  rng: SimRng;
}): SimCgroups {
  const { tuning, runtime, clock, rng } = o;
  const cgroups = new SimCgroups();
  if (tuning === null) return cgroups;
  const latency = rng.fork('latency');
  const chance = rng.fork('trouble');
  const bus = rng.fork('bus');
  const taken = tuning.systemd ? '/kubepods.slice/kubepods-besteffort.slice' : '/kubepods/besteffort';
  cgroups.pidsIn = (path) => processesIn(runtime.dump(), path).map((p) => p.pid);
  cgroups.madeByRuntime = () => runtime.dump().sandboxes.flatMap((s) => (s.ready && s.cgroupParent !== undefined ? [s.cgroupParent] : []));
  cgroups.delayMs = () => latency.between(0, tuning.latencyMs);
  cgroups.failing = (operation) => {
    if (clock.monoMs() >= tuning.healsAtMs) return null;
    if (tuning.systemd && OF_BUS.includes(operation) && bus.chance(tuning.failing)) return bus.pick(BUS_CODES) ?? 'ETIMEDOUT';
    return CHANGES.includes(operation) && chance.chance(tuning.failing) ? (chance.pick(CODES) ?? 'EIO') : null;
  };
  if (tuning.takenAtMs !== null) {
    clock.setTimeout(() => {
      if (cgroups.groups.has(taken)) cgroups.take(taken);
      for (const path of cgroups.madeByRuntime()) cgroups.put(path);
    }, tuning.takenAtMs);
  }
  return cgroups;
}
