/**
 * State held: the pods every source wants and those still being wound down, and what their workers last said.
 * Lost on restart: all of it.
 * Rebuilt from: the sources (restarted after it, they post full SETs), the runtime (orphans found by housekeeping).
 */

import { momentOf, reading } from '../../../machines/facts.ts';
import { PODS_NAMED_MAX } from '../../../machines/pods/bounds.ts';
import { type PodManagerContext, podManagerMachine } from '../../../machines/pods/manager/podManagerMachine.ts';
import { joinDirty, podRef, sourcesReady } from '../../../machines/pods/manager/records.ts';
import type { SourceName } from '../../../machines/pods/types.ts';
import { addr, type PodManagerEvent, view } from '../../../machines/protocol.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

export interface PodManagerOptions {
  /** Configured sources; cleaning up waits for each of them. */
  sources: readonly SourceName[];
  podsMax: number;
}

export function podManagerSpec(opts: PodManagerOptions): ActorSpec<PodManagerEvent> {
  return {
    type: 'actor',
    id: 'podManager',
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 },
    mailbox: {
      // Dirty marks coalesce per pod; operations are few but must never be refused: each may carry every pod.
      // Nor must refusals: sources may name thousands of pods where there is place for few.
      capacity: 8 * opts.podsMax + PODS_NAMED_MAX,
      key: (e) => (e.type === 'pods.dirty' ? `dirty ${e.uid}` : e.type === 'worker.state' ? `state ${e.uid}` : undefined),
      coalesce: (prev, next) => (prev.type === 'pods.dirty' && next.type === 'pods.dirty' ? joinDirty(prev, next) : next),
    },
    start: (ctx) => ({
      logic: reading(
        podManagerMachine.provide({ actions: { deliver: ({ context }) => deliver(ctx, context, restartedPods(ctx.ports.metrics)) } }),
        momentOf(ctx.ports),
      ),
      input: { epoch: ctx.incarnation, sources: opts.sources, path: ctx.path },
    }),
  };
}

function restartedPods(metrics: Metrics) {
  return metrics.counter(
    'kubelet_restarted_pods_total',
    'Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them.',
    ['static'],
  );
}

function deliver(ctx: ActorCtx<PodManagerEvent>, context: PodManagerContext, restarted: ReturnType<typeof restartedPods>): void {
  const { ledger } = context;
  if (context.changed) ctx.publish(view.pods, { records: ledger.records, epoch: ledger.epoch, sourcesReady: sourcesReady(ledger) });
  for (const out of context.out) {
    switch (out.to) {
      case 'worker':
        ctx.registry.send(addr.workers, out.event);
        break;
      case 'forget':
        ctx.registry.send(addr.status, { type: 'status.forget', uid: out.uid, life: out.life });
        // Its UID begins another life.
        if (ledger.records.get(out.uid)?.renewed === true) {
          restarted.inc({ static: ledger.records.get(out.uid)?.source === 'api' ? '' : 'true' });
        }
        break;
      case 'rejected':
        ctx.registry.send(addr.status, {
          type: 'status.set',
          pod: podRef(out.pod),
          life: out.life,
          restartPolicy: out.pod.spec.restartPolicy ?? 'Always',
          deleting: false,
          finished: true,
          status: { phase: 'Failed', reason: out.reason, message: `Pod was rejected: ${out.message}` },
        });
        break;
      case 'gc':
        ctx.registry.send(addr.containerGc, { type: 'gc.run', why: out.why });
        break;
      case 'housekeep':
        ctx.registry.send(addr.housekeeping, { type: 'housekeeping.run', why: out.why });
        break;
    }
  }
}
