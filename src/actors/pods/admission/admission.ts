/**
 * State held: pods admitted but not yet in the pod manager's view, refusals on account of the node that wait for a fresher
 * word about it, and critical pods that others make room for.
 * Lost on restart: all of it; sources restart after it and say everything again.
 * Rebuilt from: the pod manager's view (what holds room), the runtime's listing (what already runs here), the node as
 * the API server shows it.
 */
import { assign, setup } from 'xstate';
import { because } from '../../../machines/address.ts';
import { apiAddr, apiView } from '../../../machines/api/messages.ts';
import { initialNode, type NodeIdentity } from '../../../machines/api/nodeObject.ts';
import { pressureRefusal } from '../../../machines/eviction/admission.ts';
import { isCritical } from '../../../machines/eviction/rank.ts';
import type { Pod } from '../../../machines/k8s.ts';
import {
  admit,
  asksForStrictGroups,
  type NodeAbility,
  type Placement,
  type Refusal,
  refusedForItself,
} from '../../../machines/pods/admission.ts';
import { choosePreempted, PREEMPTING, PREEMPTING_MESSAGE } from '../../../machines/pods/fit/preemption.ts';
import { type Room, rememberedRequests, shortages } from '../../../machines/pods/fit/resources.ts';
import { type SysctlPatterns, sysctlPatterns } from '../../../machines/pods/fit/sysctls.ts';
import { fullName, podRef } from '../../../machines/pods/manager/records.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { addr, type PodOpEvent, type PodRecord, type PodsView, view } from '../../../machines/protocol.ts';
import type { Ports } from '../../kernel/ports.ts';
import type { ActorCtx, ActorSpec } from '../../kernel/types.ts';

export interface AdmissionOptions {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  /** What the node registers with: its labels until the API server has shown others, or for good where there is none. */
  identity: Omit<NodeIdentity, 'os' | 'arch'>;
  allowedUnsafeSysctls: readonly string[];
  /** There is an API server, where labels and taints may have changed. */
  cluster: boolean;
}

/** How often a pod that was not admitted at first sight is looked at again. */
const LOOK_AGAIN_MS = 500;
/** A pod that was asked to make room and does not is asked again: the pod manager may have begun anew over it. */
const ASK_AGAIN_MS = 10_000;
/** Of a pod that says nothing else. */
const DEFAULT_GRACE_SECONDS = 30;
/** A pod that the labels or taints of the node keep away waits no longer than this for a fresher word about them. */
const PLACEMENT_WAIT_MS = 30_000;

interface Deferred {
  pod: Pod;
  event: PodOpEvent;
  sinceMonoMs: number;
  /** `later`: something has to be looked at first. `room`: others make room for it, which nobody else gets. */
  verdict: 'later' | 'room';
}
interface Context {
  /** Admitted here, perhaps not in the view yet. */
  recent: ReadonlyMap<string, Pod>;
  deferred: readonly Deferred[];
}

/** What a pod is judged by, beside the views. */
interface Known {
  recent: ReadonlyMap<string, Pod>;
  deferred: readonly Deferred[];
  sinceMonoMs: number;
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
      always: { guard: 'waiting', target: 'lookingAgain' },
    },
    lookingAgain: {
      meta: {
        reason: 'LookingAgain',
        message:
          'a pod does not fit, but it may run here already, the node may have changed, or others make room for it; waiting for the first listing of the runtime, the next look at the node, or the end of those others',
      },
      after: { [LOOK_AGAIN_MS]: { target: 'ready', actions: ['retry'] } },
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
  private readonly requests = rememberedRequests();
  private readonly sysctls: SysctlPatterns;
  readonly refusals: ReturnType<Ports['metrics']['counter']>;
  private readonly preemptions: ReturnType<Ports['metrics']['counter']>;
  /** Pods that were asked to make room, when, and have not been seen to be on their way yet. */
  private readonly asked = new Map<string, number>();
  constructor(ctx: ActorCtx<PodOpEvent>, opts: AdmissionOptions) {
    this.ctx = ctx;
    this.opts = opts;
    this.sysctls = sysctlPatterns(ctx.ports.host.identity?.().kernelVersion ?? '', opts.allowedUnsafeSysctls);
    this.refusals = ctx.ports.metrics.counter('kubelet_admission_rejections_total', 'Pods that admission refused, by reason.', ['reason']);
    this.preemptions = ctx.ports.metrics.counter(
      'kubelet_preemptions',
      'Pods that made room for critical ones, by what there was too little of',
      ['preemption_signal'],
    );
  }

  take(context: Context, event: PodOpEvent): Partial<Context> {
    const recent = new Map(context.recent);
    const sinceMonoMs = this.ctx.ports.clock.monoMs();
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
          const verdict = this.judge(pod, { recent, deferred, sinceMonoMs });
          if (verdict === null) passed.push(pod);
          else if (isWait(verdict)) deferred.push({ pod, event, sinceMonoMs, verdict });
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
      const verdict = this.judge(pod, { recent, deferred, sinceMonoMs });
      if (verdict === null) {
        recent.set(pod.metadata.uid, pod);
        admitted.push(pod);
      } else if (isWait(verdict)) deferred.push({ pod, event, sinceMonoMs, verdict });
      else this.refuse(pod, verdict, event);
    }
    // Sent even when empty: it also says that this source has delivered.
    this.ctx.registry.send(addr.podManager, { ...event, pods: admitted });
    return { recent: this.prune(recent), deferred };
  }

  retry(context: Context): Partial<Context> {
    const recent = new Map(context.recent);
    const deferred: Deferred[] = [];
    // Those that room is made for come first: the others get what they leave.
    for (const d of [...context.deferred].sort((a, b) => Number(b.verdict === 'room') - Number(a.verdict === 'room'))) {
      const verdict = this.judge(d.pod, { recent, deferred, sinceMonoMs: d.sinceMonoMs });
      if (verdict !== null && isWait(verdict)) deferred.push({ ...d, verdict });
      else if (verdict === null) {
        recent.set(d.pod.metadata.uid, d.pod);
        const { complete: _, first: _f, ...event } = d.event;
        this.ctx.registry.send(addr.podManager, { ...event, pods: [d.pod] });
      } else this.refuse(d.pod, verdict, d.event);
    }
    return { recent: this.prune(recent), deferred };
  }

  private judge(pod: Pod, known: Known): Refusal | Deferred['verdict'] | null {
    const { registry } = this.ctx;
    const { recent, deferred, sinceMonoMs } = known;
    const records = registry.read(view.pods)?.value.records;
    const own = records?.get(pod.metadata.uid);
    // Running here already (an update, or the mux was restarted): refused only for what it asks, as a new definition
    // of a pod with a pinned UID may bring in what this node cannot honour.
    if (recent.has(pod.metadata.uid) || (own !== undefined && !own.rejected && !own.removed))
      return refusedForItself(pod, this.ability(true));
    // What the runtime can do is not known before it was asked for the first time.
    if (asksForStrictGroups(pod) && (registry.read(view.cri)?.value.lastGoodMonoMs ?? null) === null) return 'later';
    const others = new Map<string, Pod>();
    for (const [uid, rec] of records ?? []) {
      const phase = rec.worker?.phase ?? (isTerminal(rec.pod.status.phase) ? 'finished' : 'waiting');
      if (rec.rejected || phase === 'finished' || phase === 'terminated' || fullName(rec.pod) === fullName(pod)) continue;
      others.set(uid, rec.pod);
    }
    for (const [uid, p] of recent) if (records?.has(uid) !== true && !isTerminal(p.status.phase)) others.set(uid, p);
    for (const d of deferred) if (d.verdict === 'room') others.set(d.pod.metadata.uid, d.pod);
    others.delete(pod.metadata.uid);
    const { podsMax, allocatable } = this.opts;
    const room: Room = { others: [...others.values()], podsMax, allocatable, requests: this.requests };
    const judged = admit({
      ...room,
      pod,
      node: this.placement(),
      ability: this.ability(false),
    });
    // A want of room, though not of this pod's own; the reference asks about it first.
    const refusal = judged?.about === 'pod' ? judged : (this.pressure(pod) ?? judged);
    if (refusal === null || refusal.about === 'pod') return refusal;
    // It has ended, and takes nothing.
    if (isTerminal(pod.status.phase)) return null;
    // What runs here already keeps its place, whatever became of the node.
    const listing = registry.read(view.runtimePods)?.value;
    if (listing === undefined) return 'later';
    if (listing.pods.get(pod.metadata.uid)?.sandboxes.length) return null;
    const going = Boolean(pod.metadata.deletionTimestamp);
    if (refusal.short !== undefined && isCritical(pod) && !going) return this.makeRoom(pod, room, records);
    return refusal.about === 'placement' && this.mayBeOld(pod, sinceMonoMs) ? 'later' : refusal;
  }

  /** Others give way to a critical pod: those that are on their way already are waited for, and as few as can be are asked to go. */
  private makeRoom(pod: Pod, room: Room, records: PodsView['records'] | undefined): Refusal | 'room' {
    const nowMs = this.ctx.ports.clock.monoMs();
    for (const [uid, atMs] of this.asked) if (isLeaving(records?.get(uid)) || nowMs - atMs >= ASK_AGAIN_MS) this.asked.delete(uid);
    const staying = room.others.filter(({ metadata: { uid } }) => !this.asked.has(uid) && !isLeaving(records?.get(uid)));
    const short = shortages(pod, { ...room, others: staying });
    const choice = choosePreempted(pod, { pods: staying, short, requests: this.requests });
    if (!choice.ok) {
      const error = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${choice.missing}`;
      return {
        reason: 'UnexpectedAdmissionError',
        message: `Unexpected error while attempting to recover from admission failure: ${error}`,
        about: 'room',
      };
    }
    // One without a worker has only just been let in: it is asked as soon as there is somebody to ask.
    for (const victim of choice.pods) if (records?.get(victim.metadata.uid)?.worker) this.preempt(victim, pod, short[0]?.resource ?? '');
    return 'room';
  }

  private preempt(victim: Pod, pod: Pod, resource: string): void {
    const { registry, path, ports, log } = this.ctx;
    const { uid } = victim.metadata;
    this.asked.set(uid, ports.clock.monoMs());
    this.preemptions.inc({ preemption_signal: resource });
    log.warn({ ...podRef(victim), for: fullName(pod), resource }, 'ending a pod to make room for a critical one');
    registry.send(addr.podManager, {
      type: 'pods.evict',
      uid,
      eviction: {
        reason: PREEMPTING,
        message: PREEMPTING_MESSAGE,
        graceSeconds: victim.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS,
      },
      causes: because(undefined, { atMs: ports.clock.wallMs(), by: path, what: `preempted for ${fullName(pod)}, which lacks ${resource}` }),
    });
    registry.send(addr.events, {
      type: 'event.record',
      event: { type: 'Warning', reason: PREEMPTING, message: PREEMPTING_MESSAGE, pod: podRef(victim) },
    });
  }

  /** `unasked`: what to take for what no runtime has said yet. */
  private ability(unasked: boolean): NodeAbility {
    const cri = this.ctx.registry.read(view.cri)?.value;
    const asked = (cri?.lastGoodMonoMs ?? null) !== null;
    return { sysctls: this.sysctls, strictGroups: asked ? cri?.strictGroups === true : unasked };
  }

  /** The node as the API server last showed it; before that, and without one, as it registers. */
  private placement(): Placement {
    const { registry, ports } = this.ctx;
    const seen = registry.read(apiView.placement)?.value;
    if (seen !== undefined) return { name: this.opts.identity.name, labels: seen.labels, taints: seen.taints };
    const machine = ports.host.identity?.();
    const { metadata, spec } = initialNode({ ...this.opts.identity, os: machine?.os ?? 'linux', arch: machine?.arch ?? 'amd64' }, {});
    return { name: metadata.name, labels: metadata.labels ?? {}, taints: spec.taints ?? [] };
  }

  /** A label that the scheduler went by may be younger than the last look at the node: it is asked for another. */
  private mayBeOld(pod: Pod, sinceMonoMs: number): boolean {
    const { registry, ports } = this.ctx;
    if (!this.opts.cluster) return false;
    const readAtMs = registry.read(apiView.placement)?.value.readAtMonoMs ?? Number.NEGATIVE_INFINITY;
    if (readAtMs >= sinceMonoMs || ports.clock.monoMs() - sinceMonoMs >= PLACEMENT_WAIT_MS) return false;
    registry.send(apiAddr.nodeStatus, { type: 'node.report', why: `pod ${fullName(pod)} does not match the node as it was last read` });
    return true;
  }

  private pressure(pod: Pod): Refusal | null {
    const refusal = pressureRefusal(pod, this.ctx.registry.read(view.pressure)?.value.pressures ?? []);
    return refusal === null ? null : { ...refusal, about: 'room' };
  }

  private refuse(pod: Pod, refusal: Refusal, event: PodOpEvent): void {
    const { registry, path, ports } = this.ctx;
    this.refusals.inc({ reason: refusal.reason });
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

function isWait(verdict: Refusal | Deferred['verdict']): verdict is Deferred['verdict'] {
  return verdict === 'later' || verdict === 'room';
}

/** What it holds is given back before long, whatever this actor does. Absent: it was only just let in. */
function isLeaving(record: PodRecord | undefined): boolean {
  if (record === undefined) return false;
  return record.removed || Boolean(record.refusal) || Boolean(record.eviction) || record.worker?.phase === 'terminating';
}

function byCreation(a: Pod, b: Pod): number {
  const at = a.metadata.creationTimestamp ?? '';
  const bt = b.metadata.creationTimestamp ?? '';
  return at < bt ? -1 : at > bt ? 1 : 0;
}
