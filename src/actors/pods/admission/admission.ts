/**
 * State held: pods admitted but not yet in the pod manager's view, and refusals for want of room that wait for the first listing.
 * Lost on restart: both; sources restart after it and say everything again.
 * Rebuilt from: the pod manager's view (what holds room), the runtime's listing (what already runs here).
 */
import { assign, setup } from 'xstate';
import { because } from '../../../machines/address.ts';
import type { Pod } from '../../../machines/k8s.ts';
import { admit, type Refusal } from '../../../machines/pods/admission.ts';
import { fullName, podRef } from '../../../machines/pods/manager/records.ts';
import { addr, type PodOpEvent, view } from '../../../machines/protocol.ts';
import type { ActorCtx, ActorSpec } from '../../kernel/types.ts';

export interface AdmissionOptions {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
}

/** How often a pod that found no room is looked at again while the runtime has not been listed yet. */
const LISTING_CHECK_MS = 500;

type Deferred = { pod: Pod; event: PodOpEvent };
interface Context {
  /** Admitted here, perhaps not in the view yet. */
  recent: ReadonlyMap<string, Pod>;
  deferred: readonly Deferred[];
}

const admissionMachine = setup({
  types: { context: {} as Context, events: {} as PodOpEvent },
  actions: {
    take: assign((_, _p: { event: PodOpEvent }): Partial<Context> => ({})),
    retry: assign((): Partial<Context> => ({})),
  },
  guards: { waiting: ({ context }) => context.deferred.length > 0 },
}).createMachine({
  id: 'admission',
  context: { recent: new Map(), deferred: [] },
  initial: 'ready',
  on: { 'pods.op': { actions: { type: 'take', params: ({ event }) => ({ event }) } } },
  states: {
    ready: {
      meta: { reason: 'Ready', message: 'every pod seen so far was judged' },
      always: { guard: 'waiting', target: 'waitingForListing' },
    },
    waitingForListing: {
      meta: {
        reason: 'WaitingForListing',
        message: 'a pod found no room, but it may be running here already; waiting for the first listing of the runtime',
      },
      after: { [LISTING_CHECK_MS]: { target: 'ready', actions: ['retry'] } },
    },
  },
});

export function admissionSpec(opts: AdmissionOptions): ActorSpec<PodOpEvent> {
  return {
    type: 'actor',
    id: 'admission',
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 },
    mailbox: { capacity: 4096 },
    start: (ctx) => {
      const judge = new Judge(ctx, opts);
      return {
        logic: admissionMachine.provide({
          actions: {
            take: assign(({ context }, { event }: { event: PodOpEvent }) => judge.take(context, event)),
            retry: assign(({ context }) => judge.retry(context)),
          },
        }),
      };
    },
  };
}

class Judge {
  readonly ctx: ActorCtx<PodOpEvent>;
  readonly opts: AdmissionOptions;
  constructor(ctx: ActorCtx<PodOpEvent>, opts: AdmissionOptions) {
    this.ctx = ctx;
    this.opts = opts;
  }

  take(context: Context, event: PodOpEvent): Partial<Context> {
    const recent = new Map(context.recent);
    if (event.op !== 'ADD') {
      if (event.op === 'REMOVE') for (const p of event.pods) recent.delete(p.metadata.uid);
      const named = new Map(event.pods.map((p) => [p.metadata.uid, p]));
      const deferred = context.deferred.filter((d) => event.op !== 'REMOVE' || !named.has(d.pod.metadata.uid));
      const passed: Pod[] = [];
      for (const pod of event.pods) {
        const at = deferred.findIndex((d) => d.pod.metadata.uid === pod.metadata.uid);
        const waiting = deferred[at];
        // Not judged yet: the newest definition will be.
        if (waiting !== undefined) deferred[at] = { ...waiting, pod };
        else if (event.op !== 'UPDATE') passed.push(pod);
        else {
          const verdict = this.judge(pod, recent);
          if (verdict === null) passed.push(pod);
          else if (verdict === 'later') deferred.push({ pod, event });
          else this.refuse(pod, verdict, event);
        }
      }
      this.ctx.registry.send(addr.podManager, { ...event, pods: passed });
      return { recent, deferred };
    }
    const admitted: Pod[] = [];
    // What this source names anew, or no longer at all, does not wait any more.
    const complete = event.complete === undefined ? null : new Set(event.complete);
    const named = new Set(event.pods.map((p) => p.metadata.uid));
    const deferred = context.deferred.filter(
      ({ pod: { metadata }, event: { source } }) =>
        !named.has(metadata.uid) && (source !== event.source || complete === null || complete.has(metadata.uid)),
    );
    // The oldest first, as the reference does; static pods have no creation time and keep their order.
    for (const pod of [...event.pods].sort(byCreation)) {
      const verdict = this.judge(pod, recent);
      if (verdict === null) {
        recent.set(pod.metadata.uid, pod);
        admitted.push(pod);
      } else if (verdict === 'later') deferred.push({ pod, event });
      else this.refuse(pod, verdict, event);
    }
    // Sent even when empty: it also says that this source has delivered.
    this.ctx.registry.send(addr.podManager, { ...event, pods: admitted });
    return { recent: this.prune(recent), deferred };
  }

  retry(context: Context): Partial<Context> {
    const recent = new Map(context.recent);
    const deferred: Deferred[] = [];
    for (const d of context.deferred) {
      const verdict = this.judge(d.pod, recent);
      if (verdict === 'later') deferred.push(d);
      else if (verdict === null) {
        recent.set(d.pod.metadata.uid, d.pod);
        const { complete: _, first: _f, ...event } = d.event;
        this.ctx.registry.send(addr.podManager, { ...event, pods: [d.pod] });
      } else this.refuse(d.pod, verdict, d.event);
    }
    return { recent: this.prune(recent), deferred };
  }

  private judge(pod: Pod, recent: ReadonlyMap<string, Pod>): Refusal | 'later' | null {
    const records = this.ctx.registry.read(view.pods)?.value.records;
    const own = records?.get(pod.metadata.uid);
    // Running here already (an update, or the mux was restarted): never refused for want of room, only for what it asks.
    if (recent.has(pod.metadata.uid) || (own !== undefined && !own.rejected && !own.removed)) return this.honours(pod);
    const others = new Map<string, Pod>();
    for (const [uid, rec] of records ?? []) {
      const phase = rec.worker?.phase;
      if (rec.rejected || phase === 'finished' || phase === 'terminated' || fullName(rec.pod) === fullName(pod)) continue;
      others.set(uid, rec.pod);
    }
    for (const [uid, p] of recent) if (!others.has(uid) && records?.has(uid) !== true) others.set(uid, p);
    others.delete(pod.metadata.uid);
    const refusal = admit({ pod, others: [...others.values()], ...this.opts });
    if (refusal === null || !refusal.capacity) return refusal;
    const listing = this.ctx.registry.read(view.runtimePods)?.value;
    if (listing === undefined) return 'later';
    return listing.pods.get(pod.metadata.uid)?.sandboxes.length ? null : refusal;
  }

  /** A new definition of a pod with a pinned UID may bring in a field that this node cannot honour. */
  private honours(pod: Pod): Refusal | null {
    const refusal = admit({ pod, others: [], podsMax: 1, allocatable: this.opts.allocatable });
    return refusal === null || refusal.capacity ? null : refusal;
  }

  private refuse(pod: Pod, refusal: Refusal, event: PodOpEvent): void {
    const { registry, path, ports } = this.ctx;
    registry.send(addr.podManager, {
      type: 'pods.rejected',
      pod,
      source: event.source,
      reason: refusal.reason,
      message: refusal.message,
      causes: because(event.causes, { atMs: ports.clock.wallMs(), by: path, what: `refused: ${refusal.message}` }),
    });
    registry.send(addr.events, {
      type: 'event.record',
      event: { type: 'Warning', reason: refusal.reason, message: refusal.message, pod: podRef(pod) },
    });
  }

  /** What the view shows by now need not be remembered here. */
  private prune(recent: Map<string, Pod>): Map<string, Pod> {
    const records = this.ctx.registry.read(view.pods)?.value.records;
    if (records !== undefined) for (const uid of [...recent.keys()]) if (records.has(uid)) recent.delete(uid);
    return recent;
  }
}

function byCreation(a: Pod, b: Pod): number {
  const at = a.metadata.creationTimestamp ?? '';
  const bt = b.metadata.creationTimestamp ?? '';
  return at < bt ? -1 : at > bt ? 1 : 0;
}
