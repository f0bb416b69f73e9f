/** Health endpoints: named checks, the root answer, one check's answer (spec: boot and node 8.3). */
import type { HttpReply, HttpRequest } from '../../ports/sockets/net.ts';
import { text } from './answers/answers.ts';

/** A check gives the reason of its failure, or nothing when it passes. */
export type Checks = Readonly<Record<string, () => string | undefined>>;

/** `/healthz`: `ok`, or 500 with the failed names (reasons withheld, as in the kubelet). Knows `?verbose` and `?exclude=`. */
function rootHealth(checks: Checks, req: HttpRequest): HttpReply {
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
function oneHealth(check: () => string | undefined): HttpReply {
  const reason = check();
  return reason === undefined ? text('ok') : text(`internal server error: ${reason}\n`, 500);
}

/** Routes for every check; all take any method. */
export function healthRoutes(checks: Checks): Record<string, (req: HttpRequest) => HttpReply> {
  const routes: Record<string, (req: HttpRequest) => HttpReply> = { '/healthz': (req) => rootHealth(checks, req) };
  for (const [name, check] of Object.entries(checks)) routes[`/healthz/${name}`] = () => oneHealth(check);
  return routes;
}
