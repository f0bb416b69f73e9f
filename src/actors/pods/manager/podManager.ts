/**
 * State held: the pods every source wants and those still being wound down, and what their workers last said; pods that wait to be
 * admitted, and what was asked about them; what each pod was granted, and whose change of it waits.
 * Lost on restart: all of it but what was granted.
 * Rebuilt from: the sources (restarted after it, they post full SETs), the runtime (its listing, orphans found by housekeeping),
 * the checkpoint `allocated_pods_state`, the node as the API server shows it.
 */

import { fromPromise } from 'xstate';
import { ALLOCATED, type CheckpointFound, checkpointAddr } from '../../../machines/foundation/messages.ts';
import { PODS_NAMED_MAX } from '../../../machines/pod/bounds.ts';
import type { SourceName } from '../../../machines/pod/runtime/seen.ts';
import { waitingPodsView } from '../../../machines/pods/admission/messages.ts';
import { type PodManagerEvent, podsView } from '../../../machines/pods/manager/messages.ts';
import { podManagerMachine } from '../../../machines/pods/manager/podManagerMachine.ts';
import type { Step } from '../../../machines/pods/manager/records.ts';
import { type Allocation, OLDER_ALLOCATIONS, readOlderPods, readPods } from '../../../machines/pods/resize/allocation.ts';
import { joinDirty } from '../../../machines/pods/workers/messages.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { Delivery } from './delivery.ts';
import { type AdmissionOptions, factsFrom } from './facts.ts';

export interface PodManagerOptions extends AdmissionOptions {
  /** Configured sources; cleaning up waits for each of them. */
  sources: readonly SourceName[];
}

/** The checkpoint is read before the first pod is judged; the limit of that question is shorter. */
const READY_TIMEOUT_MS = 15_000;
const LOAD_TIMEOUT_MS = 10_000;

export function podManagerSpec(opts: PodManagerOptions): ActorSpec<PodManagerEvent> {
  return {
    type: 'actor',
    id: 'podManager',
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 },
    mailbox: {
      // Dirty marks and states coalesce per pod. Sources may name thousands of pods that are over. Operations are few, but must
      // never be refused: each may carry every pod.
      capacity: 8 * opts.podsMax + PODS_NAMED_MAX,
      key: (e) => (e.type === 'pods.dirty' ? `dirty ${e.uid}` : e.type === 'worker.state' ? `state ${e.uid}` : undefined),
      coalesce: (prev, next) => (prev.type === 'pods.dirty' && next.type === 'pods.dirty' ? joinDirty(prev, next) : next),
    },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => {
      const delivery = new Delivery(ctx);
      const actors = { load: fromPromise(({ signal }: { signal: AbortSignal }) => load(ctx, signal)) };
      const actions = { deliver: (_: unknown, step: Step) => deliver(ctx, delivery, step) };
      const logic = provided(podManagerMachine, { actors, actions }, factsFrom(ctx, opts));
      return { logic, input: { epoch: ctx.incarnation, sources: opts.sources } };
    },
  };
}

async function load(ctx: ActorCtx<PodManagerEvent>, signal: AbortSignal): Promise<ReadonlyMap<string, Allocation>> {
  const newest = await checkpointed(ctx, ALLOCATED, signal);
  if (newest?.found !== false) return newest === undefined ? new Map() : readPods(newest.value);
  const older = await checkpointed(ctx, OLDER_ALLOCATIONS, signal);
  return older?.found === true ? readOlderPods(older.value) : new Map();
}

async function checkpointed(ctx: ActorCtx<PodManagerEvent>, name: string, signal: AbortSignal): Promise<CheckpointFound | undefined> {
  const answer = await ctx.registry.ask(
    checkpointAddr,
    (replyTo: ReplyTo<CheckpointFound>) => ({ type: 'checkpoint.get' as const, name, replyTo }),
    { timeoutMs: LOAD_TIMEOUT_MS, signal },
  );
  if (answer.kind === 'reply') return answer.value;
  ctx.log.warn({ why: answer.reason }, 'what pods were granted cannot be read; each is taken to have what it asks for');
  return undefined;
}

function deliver(ctx: ActorCtx<PodManagerEvent>, delivery: Delivery, { ledger, changed, out }: Step): void {
  const { records, candidates, epoch, ready } = ledger;
  if (ctx.registry.read(waitingPodsView)?.value !== candidates) ctx.publish(waitingPodsView, candidates);
  if (changed) ctx.publish(podsView, { records, epoch, sourcesReady: ready });
  for (const o of out) {
    try {
      delivery.send(o, ledger);
    } catch (error) {
      ctx.log.error({ to: o.to, err: messageOf(error) }, 'what follows for a pod cannot be sent');
    }
  }
}
