/** Run-once (boot-and-node 10.6): the static pods are brought up once and the process ends; containers keep running. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from '../../actors/supervision/types.ts';
import { isRefused, isWanted, podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';

import { EXIT } from '../errors.ts';
import { need, type Step } from './context.ts';
import { ended, stopTheNode } from './run.ts';

/** The first pods must be known by then. */
const FIRST_PODS_MS = 1_000;
/** Ten retries, one second doubling: how long a pod may take. */
const PODS_MS = 1_023_000;
const POLL_MS = 50;

export const runOnce: Step = {
  name: 'run once',
  async run(ctx) {
    if (!need(ctx, 'loaded').config.runOnce) return undefined;
    const log = need(ctx, 'log');
    const { registry } = need(ctx, 'node').tree;
    const clock = need(ctx, 'ports').clock;
    const began = clock.monoMs();
    const stop = ended(ctx).then(() => 'ended' as const);
    for (;;) {
      const elapsedMs = clock.monoMs() - began;
      const pods = podsOf(registry);
      const failed = pods.filter((p) => p.state === 'failed');
      const pending = pods.filter((p) => p.state === 'pending');
      const over = pods.length === 0 ? elapsedMs > FIRST_PODS_MS : pending.length === 0 || elapsedMs > PODS_MS;
      if (over) {
        const bad = [...failed, ...pending].map((p) => p.name);
        const ok = pods.length > 0 && bad.length === 0;
        if (ok) log.info({ pods: pods.map((p) => p.name) }, 'run-once: every pod runs');
        else if (pods.length === 0)
          log.error({}, `run-once: no pod was found within ${FIRST_PODS_MS} ms; see staticPodPath (--pod-manifest-path)`);
        else log.error({ pods: bad }, 'run-once: pods did not come up');
        await stopTheNode(ctx);
        return { exit: ok ? EXIT.ok : EXIT.fatal };
      }
      if ((await Promise.race([sleep(POLL_MS), stop])) === 'ended') return stopTheNode(ctx);
    }
  },
};

interface OncePod {
  name: string;
  state: 'running' | 'failed' | 'pending';
}

/** Rejected pods count as done: their status says why. */
function podsOf(registry: Registry): OncePod[] {
  const pods = registry.read(podsView)?.value;
  const statuses = registry.read(statusesView)?.value;
  if (pods === undefined || !pods.sourcesReady) return [];
  const out: OncePod[] = [];
  for (const [uid, record] of pods.records) {
    if (!isWanted(record) || record.source === 'runtime') continue;
    const name = `${record.pod.metadata.namespace ?? 'default'}/${record.pod.metadata.name}`;
    const status = statuses?.get(uid)?.status;
    const running = (status?.containerStatuses ?? []).filter((c) => c.state?.running !== undefined || c.state?.terminated?.exitCode === 0);
    const all = running.length === record.pod.spec.containers.length;
    const failed = status?.phase === 'Failed' && !isRefused(record);
    out.push({ name, state: failed ? 'failed' : all || isRefused(record) ? 'running' : 'pending' });
  }
  return out;
}
