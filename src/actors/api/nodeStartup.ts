/** How long the start of a new node took, in parts, under the reference's names. Nothing of a node that the cluster knew before. */
import type { Metrics } from '../../ports/ports.ts';

export interface NodeStartup {
  /** The first of them counts, of each. */
  asking(): void;
  registeredNew(): void;
  ready(): void;
}

export interface StartupTimes {
  nowMs(): number;
  /** Wall ms; absent where nobody knows. */
  bootMs(): number | undefined;
  startedMs: number;
}

export function nodeStartup(metrics: Metrics, times: StartupTimes): NodeStartup {
  const part = (name: string, help: string) =>
    metrics.gauge(`kubelet_node_startup_${name}duration_seconds`, `Duration in seconds of ${help}.`);
  const preKubelet = part('pre_kubelet_', 'node startup before kubelet starts');
  const preRegistration = part('pre_registration_', 'node startup before registration');
  const registration = part('registration_', 'node startup during registration');
  const postRegistration = part('post_registration_', 'node startup after registration');
  const whole = part('', 'node startup in total');
  let [askedMs, madeMs, readyMs] = [Number.NaN, Number.NaN, Number.NaN];
  const seconds = (fromMs: number, toMs: number): number => Math.max(0, (toMs - fromMs) / 1000);
  return {
    asking() {
      if (Number.isNaN(askedMs)) askedMs = times.nowMs();
    },
    registeredNew() {
      if (!Number.isNaN(madeMs)) return;
      madeMs = times.nowMs();
      const bootMs = times.bootMs();
      if (bootMs !== undefined) preKubelet.set(seconds(bootMs, times.startedMs));
      preRegistration.set(seconds(times.startedMs, askedMs));
      registration.set(seconds(askedMs, madeMs));
    },
    ready() {
      if (Number.isNaN(madeMs) || !Number.isNaN(readyMs)) return;
      readyMs = times.nowMs();
      postRegistration.set(seconds(madeMs, readyMs));
      const bootMs = times.bootMs();
      if (bootMs !== undefined) whole.set(seconds(bootMs, readyMs));
    },
  };
}
