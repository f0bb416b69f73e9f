/** What one burst of pods cost besides time: CPU seconds by group, calls of the runtime and of the API server by kind. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Daemon } from '../../test/e2e/daemon.ts';
import type { Audit } from './audit.ts';
import { burstCost, type CpuGroups } from './cpuGroups.ts';

/** The API server's audit log is written by the time that this is over. */
const AUDIT_MS = 300;
export const OWN_GROUP = 'our daemon';

type Counts = Record<string, number>;

/** From the daemon's own metrics: the operations that it asked of the runtime, and the messages that its actors took. */
async function ownCounts(daemon: Daemon): Promise<{ runtime: Counts; messages: number }> {
  const answer = await fetch(`${daemon.readOnlyUrl}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const text = await answer.text();
  const operations = text.matchAll(/^kubelet_runtime_operations_total\{operation_type="([^"]+)"\} (\d+)$/gm);
  const taken = text.matchAll(/^actorlet_mailbox_enqueued_total\{[^}]*\} (\d+)$/gm);
  return {
    runtime: Object.fromEntries([...operations].map(([, name = '', count]) => [name, Number(count)])),
    messages: [...taken].reduce((sum, [, count]) => sum + Number(count), 0),
  };
}

const more = (after: Counts, before: Counts): Counts =>
  Object.fromEntries(
    Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, count]) => count > 0)
      .sort(([, a], [, b]) => b - a),
  );

/** Begins to count; the returned function ends it. Without a daemon of ours (`daemon: null`) only CPU time is counted. */
export async function countBurst(o: { groups: CpuGroups; daemon: Daemon | null; audit: Audit | null }): Promise<() => Promise<object>> {
  const counts = o.daemon === null ? { runtime: {}, messages: 0 } : await ownCounts(o.daemon);
  const before = o.groups.read();
  const [from, fromWallMs] = [performance.now(), Date.now()];
  return async () => {
    const after = o.groups.read();
    const wallMs = performance.now() - from;
    const toWallMs = Date.now();
    const cost = burstCost({ before, after, wallMs, own: OWN_GROUP });
    if (o.daemon === null || o.audit === null) return cost;
    const { runtime, messages } = await ownCounts(o.daemon);
    await sleep(AUDIT_MS);
    const api: Counts = {};
    for (const c of o.audit.calls()) {
      // A watch is there before and after.
      if (c.verb === 'watch' || c.doneMs < fromWallMs || c.receivedMs > toWallMs) continue;
      const kind = `${c.verb} ${c.resource}`;
      api[kind] = (api[kind] ?? 0) + 1;
    }
    return { ...cost, messages: messages - counts.messages, runtimeCalls: more(runtime, counts.runtime), apiCalls: more(api, {}) };
  };
}
