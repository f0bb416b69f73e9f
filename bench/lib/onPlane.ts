/** What benchmarks of many nodes on one control plane share: who takes how much of the processor, and what a person is answered. */
import type { Component, ControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';
import { usageOf } from './procs.ts';

const COMPONENTS: readonly Component[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const LIMITS = ['--kube-api-qps=1000', '--kube-api-burst=2000'];
/** The controller manager and the scheduler with their own limits of requests lifted. */
export const UNLIMITED = {
  'kube-controller-manager': [...LIMITS, '--concurrent-deployment-syncs=20', '--concurrent-replicaset-syncs=20'],
  'kube-scheduler': LIMITS,
};
const [PRINTED_CHARS_MAX, FAILED_CHARS_MAX] = [60, 120];

export interface PhaseUsage {
  seconds: number;
  /** By the names of programs. */
  percentOfOneCore: Record<string, number>;
  cpuSeconds: Record<string, number>;
}

/** What the programs of the control plane and `own` took of the processor while `act` went on. `own`: ids of processes by name. */
export async function usageIn(
  plane: ControlPlane,
  own: Readonly<Record<string, readonly (number | undefined)[]>>,
  act: () => Promise<unknown>,
): Promise<PhaseUsage> {
  const all: typeof own = { ...own, ...Object.fromEntries(COMPONENTS.map((c) => [c, [plane.pid(c)]])) };
  const cpuMs = () =>
    Object.values(all).map((pids) => pids.reduce((sum: number, pid) => sum + (pid === undefined ? 0 : usageOf(pid).cpuMs), 0));
  const [before, fromMs] = [cpuMs(), performance.now()];
  await act();
  const ms = performance.now() - fromMs;
  const after = cpuMs();
  const used = Object.keys(all).map((who, i) => [who, (after[i] ?? 0) - (before[i] ?? 0)] as const);
  return {
    seconds: tenths(ms / 1000),
    percentOfOneCore: Object.fromEntries(used.map(([who, cpu]) => [who, tenths((100 * cpu) / ms)])),
    cpuSeconds: Object.fromEntries(used.map(([who, cpu]) => [who, tenths(cpu / 1000)])),
  };
}

/** What a command of a person printed or why it failed, in short. */
export async function tried(printed: Promise<string>): Promise<string> {
  const line = (text: string, at: number, charsMax: number): string => text.trim().split('\n').at(at)?.slice(0, charsMax) ?? '';
  return printed.then(
    (text) => `yes: ${line(text, 0, PRINTED_CHARS_MAX)}`,
    (error: Error & { stderr?: string }) => `no: ${line(error.stderr ?? error.message, -1, FAILED_CHARS_MAX)}`,
  );
}

export function tenths(n: number): number {
  return Math.round(n * 10) / 10;
}
