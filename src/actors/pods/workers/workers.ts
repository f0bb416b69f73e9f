/**
 * State held: one worker per pod UID: where its life stands, its containers' back-off, what was last seen of it.
 * Lost on restart: the act in flight (fenced), back-off entries, start failures.
 * Rebuilt from: the pod manager's view (pod, whether it is going), the runtime (everything else), the last status.
 * All of them at once are made again by the pod manager when podConfig has restarted and sent its first set.
 */

import type { ActorLogic, Snapshot } from 'xstate';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod, PodStatus } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { PODS_NAMED_MAX } from '../../../machines/pod/bounds.ts';
import { goesOn } from '../../../machines/pod/lives.ts';
import { podRef } from '../../../machines/pod/names.ts';
import { isTerminal } from '../../../machines/pod/phase.ts';
import type { RuntimePodsView } from '../../../machines/pod/runtime/seen.ts';
import { evictedStatus, evictionOf, isWanted, podManagerAddr, podsView, refusalOf } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import {
  childStates,
  type KeptWorker,
  type WokenWorker,
  type WorkerFacts,
  type WorkerInput,
  type WorkerTimes,
} from '../../../machines/pods/workers/context.ts';
import { joinDirty, type WorkerEvent } from '../../../machines/pods/workers/messages.ts';
import { workerMachineWith } from '../../../machines/pods/workers/provided.ts';
import { keptOf } from '../../../machines/pods/workers/regions/asleep.ts';
import { lookAsleep } from '../../../machines/pods/workers/regions/look.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { probesView } from '../../../machines/services/probes/messages.ts';
import { type Cause, joinCauses } from '../../../machines/supervision/address.ts';
import { LazyMoment, momentOf } from '../../../machines/xstate/facts.ts';
import type { Ports } from '../../../ports/ports.ts';
import { deviceHealth } from '../../allocation/client.ts';
import type { ActorCtx, ActorSpec, DynamicSpec, Passivation } from '../../supervision/types.ts';
import { MeasuredEffects } from './measured.ts';
import { type WorkerMetrics, workerMetrics } from './metrics.ts';
import type { OwnActs } from './ownActs.ts';

export interface WorkersOptions {
  facts(): NodeFacts;
  podsMax: number;
  /** Cadence of a settled pod's own look at the runtime, lengthened by up to half. */
  syncFrequencyMs: number;
  backoffBaseMs: number;
  backoffMaxMs: number;
}

/** Wait after a failed start (pod lifecycle 3.1). */
const START_RETRY_MS = 10_000;

/** A settled pod's worker sleeps after so long without a step. */
const SLEEP_AFTER_MS = 5_000;

/** Ends in its own start: one that ended any later would take with it what lies behind its first message. */
const NOBODY: ActorLogic<Snapshot<undefined>, { type: string }> = {
  getInitialSnapshot: () => ({ status: 'done', output: undefined, error: undefined }),
  transition: (snapshot) => snapshot,
  getPersistedSnapshot: (snapshot) => snapshot,
};

/** By all workers of a node. */
interface Shared {
  machine: ReturnType<typeof workerMachineWith>;
  metrics: WorkerMetrics;
}
type WorkerOptions = WorkersOptions & { shared(ports: Ports): Shared; times: WorkerTimes; passivate: Passivation };

export function workersSpec(opts: WorkersOptions): DynamicSpec<WorkerEvent> {
  const nodes = new WeakMap<Ports, Shared>();
  const shared = (ports: Ports): Shared => {
    const made = nodes.get(ports) ?? { machine: workerMachineWith(momentOf(ports)), metrics: workerMetrics(ports.metrics) };
    nodes.set(ports, made);
    return made;
  };
  const ofWorkers: WorkerOptions = {
    ...{ ...opts, shared },
    times: {
      resyncMs: opts.syncFrequencyMs,
      backoffBaseMs: opts.backoffBaseMs,
      backoffMaxMs: opts.backoffMaxMs,
      retryMs: START_RETRY_MS,
    },
    passivate: {
      afterMs: SLEEP_AFTER_MS,
      look: (kept, ctx) => {
        const worker = kept as KeptWorker;
        const { uid, life = 0 } = worker.context;
        return lookAsleep(worker, new WorkerMoment({ ctx, uid, life, acts: null, node: opts.facts }));
      },
    },
  };
  return {
    type: 'dynamic',
    id: 'workers',
    shutdownMs: 5_000,
    backoff: { jitter: 0.1 },
    mailbox: {
      // After a restart of the daemon, pods that have ended come here too, and they take no place.
      capacity: 4 * opts.podsMax + PODS_NAMED_MAX,
      lane: (e) => (e.type === 'pod.kill' ? 'control' : 'data'),
      // Per UID the newest spec wins, hints collapse, a kill and a question are never merged into anything else.
      key: (e) => (e.type === 'pod.kill' || e.type === 'pod.restart' ? undefined : `${e.uid} ${e.type === 'pod.dirty' ? 'dirty' : e.life}`),
      coalesce: (prev, next) => (prev.type === 'pod.dirty' && next.type === 'pod.dirty' ? joinDirty(prev, next) : joinUpdate(prev, next)),
    },
    route: (e) => e.uid,
    starts: (e) => e.type === 'pod.update' && e.kind === 'create',
    // Late hints and kills for a worker that has ended are ordinary.
    unknown: (e) => {
      if (e.type === 'pod.restart') e.replyTo({ ok: false, later: false, why: 'nothing of it runs' });
    },
    child: (uid, first) => workerSpec(uid, first, ofWorkers),
    release: (e) => e.type === 'pod.update' && e.kind === 'create',
    onQuarantine: (uid, error, ctx) => {
      const ledger = ctx.registry.read(podsView)?.value;
      ctx.registry.send(podManagerAddr, { type: 'pods.quarantined', uid, error: error.message, epoch: ledger?.epoch ?? 1 });
      const pod = ledger?.records.get(uid)?.pod;
      if (pod === undefined) return;
      ctx.registry.send(eventsAddr, {
        type: 'event.record',
        event: {
          type: 'Warning',
          reason: 'WorkerQuarantined',
          message: `the worker of this pod kept failing and was set aside; its containers are left as they are: ${error.message}`,
          pod: podRef(pod),
        },
      });
    },
  };
}

/** The newest definition wins, but a worker that was to be created still is. */
function joinUpdate(prev: WorkerEvent, next: WorkerEvent): WorkerEvent {
  const causes = joinCauses(prev.causes, next.causes);
  if (prev.type !== 'pod.update' || next.type !== 'pod.update') return { ...next, causes };
  return { ...next, causes, kind: prev.kind === 'create' ? 'create' : next.kind };
}

const OF_WORKERS = {
  restart: 'transient',
  intensity: { max: 5, periodMs: 300_000 },
  backoff: { minMs: 1_000, maxMs: 60_000 },
} as const;

function workerSpec(uid: string, first: WorkerEvent, opts: WorkerOptions): ActorSpec<WorkerEvent> {
  if (first.type !== 'pod.update') throw new Error(`worker ${uid}: started by ${first.type}, expected pod.update`);
  const { life, causes = [], fromRuntime } = first;
  // The pod manager has the definition; one of the start would stay for as long as the pod.
  const begins: Begins = { uid, life, causes, own: fromRuntime === undefined ? null : first.pod };
  return {
    type: 'actor',
    id: uid,
    ...OF_WORKERS,
    passivate: opts.passivate,
    start: (ctx, woken) => {
      // A message left over from before the pod manager was restarted: it will say again what it wants.
      const rec = ctx.registry.read(podsView)?.value.records.get(uid);
      if (rec === undefined || (rec.life ?? life) !== life) return { logic: NOBODY };
      const { machine, metrics } = opts.shared(ctx.ports);
      const { input, io } = workerInput(ctx, begins, { ...opts, metrics });
      const { acts } = io.acts.inspector;
      const of = { ctx, uid, life, acts, node: opts.facts };
      const logic = machine(io, (_event, before) => new WorkerMoment(of, before));
      const keep = (snapshot: unknown) => keptOf(snapshot, acts.none, new WorkerMoment(of).lastStatus);
      if (woken === undefined) return { logic, input, keep };
      const { kept, dueAtMonoMs } = woken as WokenWorker;
      io.resume(kept.context);
      return { logic, input: { ...input, woken: { kept, dueAtMonoMs } }, keep };
    },
  };
}

/** What is left of the message that a worker was first started by. */
interface Begins {
  uid: string;
  life: number;
  causes: readonly Cause[];
  /** Of a pod that only the runtime knows; null: the pod manager has it. */
  own: Pod | null;
}

/** A restarted worker takes its pod and its fate from the pod manager's view; the first event is what a new one starts from. */
function workerInput(
  ctx: ActorCtx<WorkerEvent>,
  first: Begins,
  opts: WorkerOptions & { metrics: WorkerMetrics },
): { input: WorkerInput; io: MeasuredEffects } {
  const ledger = ctx.registry.read(podsView)?.value;
  const rec = ledger?.records.get(first.uid);
  const runtimeOnly = first.own !== null;
  const refusal = rec === undefined ? null : refusalOf(rec);
  const eviction = rec === undefined ? null : evictionOf(rec);
  const { ports, registry } = ctx;
  const { metrics } = opts;
  if (rec !== undefined && rec.worker === null && !runtimeOnly) {
    metrics.workerStarted(rec.pod, (ports.clock.wallMs() - rec.seenAtMs) / 1000);
  }
  const pod = first.own ?? rec?.pod;
  if (pod === undefined) throw new Error(`worker ${first.uid}: the pod manager does not know its pod`);
  const hadEnded = !runtimeOnly && isTerminal(pod.status.phase);
  const isNew = ctx.incarnation === 1 && ledger?.epoch === 1 && rec?.renewed === false && rec.worker === null && !runtimeOnly;
  // A new one is about to ask the runtime for something: one that is away is waited for first.
  const fromListing = (): boolean => hadEnded || (isNew && registry.read(criView)?.value.state === 'ready');
  const nothingAtMonoMs = (): number | null => (fromListing() ? nothingListed(registry.read(runtimePodsView)?.value, first.uid) : null);
  const io = new MeasuredEffects({ ctx, life: first.life, facts: opts.facts, nothingAtMonoMs }, metrics);
  const input: WorkerInput = {
    uid: first.uid,
    pod,
    runtimeOnly,
    newLife: rec?.renewed === true,
    life: first.life,
    // A removal is acted on when every source has delivered: the pod manager says so then.
    terminating: (rec !== undefined && !isWanted(rec) && ledger?.sourcesReady === true) || refusal !== null || eviction !== null,
    killStatus: refusal !== null ? { phase: 'Failed', ...refusal } : eviction === null ? null : evictedStatus(eviction),
    graceOverride: eviction?.graceSeconds ?? null,
    ...(rec?.worker?.asked === undefined ? {} : { asked: rec.worker.asked }),
    causes: first.causes,
    times: opts.times,
    nothing: isNew ? io.nothing(first.uid) : null,
  };
  return { input, io };
}

/**
 * A pod that ended before this worker began has nothing to start: what the runtime held when it was last listed is enough, and
 * after a restart thousands of such pods ask the runtime nothing while those that run wait for their turn. So it is for a pod of
 * which this daemon has never asked anything of the runtime. What comes up later of either, a later listing shows. Null: it was
 * never listed, or holds something.
 */
function nothingListed(listing: RuntimePodsView | undefined, uid: string): number | null {
  return listing === undefined || listing.pods.has(uid) ? null : listing.atMonoMs;
}

interface WorkedPod {
  ctx: Pick<ActorCtx, 'ports' | 'registry'>;
  uid: string;
  life: number;
  /** Null: it sleeps, and does nothing. */
  acts: OwnActs | null;
  node: () => NodeFacts;
}
class WorkerMoment extends LazyMoment implements WorkerFacts {
  readonly #of: WorkedPod;
  readonly #before: object | undefined;

  constructor(of: WorkedPod, before?: object) {
    super(of.ctx.ports);
    this.#of = of;
    this.#before = before;
  }
  get node(): NodeFacts {
    return this.#of.node();
  }
  get network(): WorkerFacts['network'] {
    const cri = this.#of.ctx.registry.read(criView)?.value;
    if (cri === undefined) return { ready: false, reason: 'the runtime has not been asked yet' };
    return { ready: cri.networkReady, reason: cri.networkReason };
  }
  get lastStatus(): PodStatus | undefined {
    const { ctx, uid, life } = this.#of;
    // What an earlier life of this UID came to may still stand there: it is forgotten through a mailbox.
    const entry = ctx.registry.read(statusesView)?.value.get(uid);
    return entry !== undefined && goesOn(entry.life, life) ? entry.status : undefined;
  }
  get listing(): WorkerFacts['listing'] {
    return this.#of.ctx.registry.read(runtimePodsView)?.value;
  }
  get ownIds(): ReadonlySet<string> {
    return this.#of.acts?.ids ?? new Set();
  }
  get quiet(): boolean {
    return this.#of.acts?.none ?? true;
  }
  get deviceHealth(): WorkerFacts['deviceHealth'] {
    const health = deviceHealth(this.#of.ctx);
    return (pod, container) => health({ pod, container });
  }
  get probes(): WorkerFacts['probes'] {
    return this.#of.ctx.registry.read(probesView)?.value ?? new Map();
  }
  get children(): WorkerFacts['children'] {
    return childStates(this.#before);
  }
}
