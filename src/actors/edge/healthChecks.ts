/** The kubelet's health endpoints: named checks, the root answer, one check's answer (spec: boot and node 8.3). */

import { addr } from '../../machines/protocol.ts';
import type { HttpReply, HttpRequest, Metrics } from '../../ports/ports.ts';
import { type Inspect, text } from './server.ts';

/** A check gives the reason of its failure, or nothing when it passes. */
export type Checks = Readonly<Record<string, () => string | undefined>>;

/** Shortest age at which work that waits for the pod manager fails the `syncloop` check. */
const SYNCLOOP_MIN_MS = 300_000;

/**
 * The kubelet's three checks. There is no shared sync loop here; `syncloop` fails when the pod manager is given up, or
 * when work has waited in front of it for longer than max(2 x syncFrequency, 5 min): what the reference's check means.
 * Before the pod manager exists, and while the runtime is absent, it passes.
 */
export function kubeletChecks(o: Pick<Inspect, 'stateAt'> & { syncFrequencyMs: number }): Checks {
  return {
    ping: () => undefined,
    // The logger writes synchronously or through its own worker; there is no flush loop that could hang.
    log: () => undefined,
    syncloop: () => {
      const actor = o.stateAt(addr.podManager.path);
      if (actor === undefined) return undefined;
      if (actor.lifecycle === 'failed' || actor.lifecycle === 'parked' || actor.lifecycle === 'quarantined') {
        return `the pod manager is ${actor.lifecycle}: ${actor.lastError ?? actor.reason}`;
      }
      const limitMs = Math.max(2 * o.syncFrequencyMs, SYNCLOOP_MIN_MS);
      const waitedMs = actor.mailbox?.oldestAgeMs ?? 0;
      return waitedMs > limitMs ? `work has waited ${Math.round(waitedMs / 1000)} s for the pod manager` : undefined;
    },
  };
}

/** `/healthz`: `ok`, or 500 with the failed names (reasons withheld, as in the kubelet). Knows `?verbose` and `?exclude=`. */
export function rootHealth(checks: Checks, req: HttpRequest): HttpReply {
  const excluded = new Set(req.query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const [name, check] of Object.entries(checks)) {
    if (excluded.delete(name)) {
      lines.push(`[+]${name} excluded: ok`);
    } else if (check() === undefined) {
      lines.push(`[+]${name} ok`);
    } else {
      failed = true;
      lines.push(`[-]${name} failed: reason withheld`);
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((n) => JSON.stringify(n)).join(', ');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) return text(`${lines.join('\n')}\nhealthz check failed\n`, 500);
  return req.query.has('verbose') ? text(`${lines.join('\n')}\nhealthz check passed\n`) : text('ok');
}

/** `/healthz/<name>`. */
export function oneHealth(check: () => string | undefined): HttpReply {
  const reason = check();
  return reason === undefined ? text('ok') : text(`internal server error: ${reason}\n`, 500);
}

/** Routes for every check; all take any method. */
export function healthRoutes(checks: Checks): Record<string, (req: HttpRequest) => HttpReply> {
  const routes: Record<string, (req: HttpRequest) => HttpReply> = { '/healthz': (req) => rootHealth(checks, req) };
  for (const [name, check] of Object.entries(checks)) routes[`/healthz/${name}`] = () => oneHealth(check);
  return routes;
}

/** Families of /metrics/slis. */
export const SLI_FAMILY = /^kubernetes_healthchecks?(_total)?$/;

/**
 * The same checks, with their results counted whenever one is made: service level indicators of the node. Nobody may ever
 * ask for its health here, so whoever reads the indicators makes the checks too (`lookAll`).
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
