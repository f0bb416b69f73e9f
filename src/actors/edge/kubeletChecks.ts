/** The kubelet's checks of itself, and the service level indicators that their results are. */

import { devicesAddr, SOCKET_FAILED } from '../../machines/allocation/devices/messages.ts';
import { podManagerAddr } from '../../machines/pods/manager/messages.ts';
import type { Metrics } from '../../ports/ports.ts';
import type { Checks } from './healthChecks.ts';
import type { Inspect } from './server.ts';

/** Shortest age at which work that waits for the pod manager fails the `syncloop` check. */
const SYNCLOOP_MIN_MS = 300_000;

/**
 * The kubelet's four checks. There is no shared sync loop here; `syncloop` fails when the pod manager is given up, or
 * when work has waited in front of it for longer than max(2 x syncFrequency, 5 min): what the reference's check means.
 * Before the pod manager exists, and while the runtime is absent, it passes.
 */
export function kubeletChecks(o: Pick<Inspect, 'stateAt'> & { syncFrequencyMs: number }): Checks {
  return {
    ping: () => undefined,
    // The logger writes synchronously or through its own worker; there is no flush loop that could hang.
    log: () => undefined,
    syncloop: () => {
      const actor = o.stateAt(podManagerAddr.path);
      if (actor === undefined) return undefined;
      if (actor.lifecycle === 'failed' || actor.lifecycle === 'parked' || actor.lifecycle === 'quarantined') {
        return `the pod manager is ${actor.lifecycle}: ${actor.lastError ?? actor.reason}`;
      }
      const limitMs = Math.max(2 * o.syncFrequencyMs, SYNCLOOP_MIN_MS);
      const waitedMs = actor.mailbox?.oldestAgeMs ?? 0;
      return waitedMs > limitMs ? `work has waited ${Math.round(waitedMs / 1000)} s for the pod manager` : undefined;
    },
    'device-plugin': () => {
      const devices = o.stateAt(devicesAddr.path);
      return devices?.reason === SOCKET_FAILED ? devices.message : undefined;
    },
  };
}

/** Families of /metrics/slis. */
export const SLI_FAMILY = /^kubernetes_healthchecks?(_total)?$/;

/**
 * The same checks, with their results counted whenever one is made: service level indicators of the node. Nobody may ever
 * ask for its health here, so a reader of the indicators makes the checks too (`lookAll`).
 */
export function countedChecks(checks: Checks, metrics: Metrics): { checks: Checks; lookAll(): void } {
  const labels = ['name', 'type'] as const;
  const now = metrics.gauge('kubernetes_healthcheck', 'This metric records the result of a single healthcheck.', labels);
  const total = metrics.counter('kubernetes_healthchecks_total', 'This metric records the results of all healthcheck.', [
    ...labels,
    'status',
  ]);
  const counted = Object.entries(checks).map(([name, check]): readonly [string, () => string | undefined] => [
    name,
    () => {
      const reason = check();
      now.set(reason === undefined ? 1 : 0, { name, type: 'healthz' });
      total.inc({ name, type: 'healthz', status: reason === undefined ? 'success' : 'error' });
      return reason;
    },
  ]);
  return {
    checks: Object.fromEntries(counted),
    lookAll: () => {
      for (const [, check] of counted) check();
    },
  };
}
