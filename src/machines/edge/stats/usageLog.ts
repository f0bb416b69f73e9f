/**
 * Memory and processor of containers in the last minutes, from what was measured for somebody else: whenever the figures of the
 * node were asked for. At rest nothing is measured, and nothing is kept of pods that nobody asks about.
 */
import type { Summary } from './stats.ts';

export interface UsageSample {
  atMs: number;
  /** '' = the pod as a whole. */
  container: string;
  memoryBytes: number | null;
  /** Cores in use; 0.5 is half of one. */
  cpuCores: number | null;
}
export interface UsageLog {
  see(summary: Summary, atMs: number): void;
  /** The oldest first. */
  of(uid: string, sinceMs: number): readonly UsageSample[];
}

const KEPT_MS = 150_000;
/** Two looks at the same moment say the same. */
const GAP_MS = 1_000;
const LOOKS_MAX = 40;
const PODS_MAX = 1_000;

export function createUsageLog(): UsageLog {
  let looks: { atMs: number; pods: ReadonlyMap<string, readonly UsageSample[]> }[] = [];
  return {
    see(summary, atMs) {
      const last = looks.at(-1);
      if (last !== undefined && Math.abs(atMs - last.atMs) < GAP_MS) return;
      const pods = new Map(summary.pods.slice(0, PODS_MAX).map((pod) => [pod.podRef.uid, samplesOf(pod, atMs)] as const));
      looks = [...looks, { atMs, pods }].filter((look) => atMs - look.atMs <= KEPT_MS).slice(-LOOKS_MAX);
    },
    of: (uid, sinceMs) => looks.filter(({ atMs }) => atMs >= sinceMs).flatMap(({ pods }) => pods.get(uid) ?? []),
  };
}

const NANO = 1e9;

function samplesOf(pod: Summary['pods'][number], atMs: number): UsageSample[] {
  const { containers } = pod;
  const sample = (container: string, of: Pick<Summary['pods'][number], 'memory' | 'cpu'>): UsageSample => ({
    ...{ atMs, container, memoryBytes: of.memory?.workingSetBytes ?? null },
    cpuCores: of.cpu?.usageNanoCores === undefined ? null : of.cpu.usageNanoCores / NANO,
  });
  return [...containers.map((c) => sample(c.name, c)), ...(containers.length > 1 ? [sample('', pod)] : [])];
}
