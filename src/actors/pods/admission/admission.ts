/**
 * State held: pods admitted but not yet in the pod manager's view, refusals on account of the node that wait for a fresher
 * word about it, critical pods that others make room for, pods that are being handed out something; what each pod was granted, and whose change of it waits.
 * Lost on restart: all of it but what was granted; sources restart after it and say everything again.
 * Rebuilt from: the checkpoint `allocations` (what was granted), the pod manager's view (what holds room), the runtime's listing (what already runs here), the node as
 * the API server shows it.
 */
import { fromPromise } from 'xstate';
import { apiAddr, apiView } from '../../../machines/api/messages.ts';
import { initialNode, type NodeIdentity } from '../../../machines/api/nodeObject.ts';
import type { Pod } from '../../../machines/k8s.ts';
import {
  admit,
  asksForStrictGroups,
  type NodeAbility,
  type Placement,
  type Refusal,
  refusedForItself,
} from '../../../machines/pods/admission/admission.ts';
import {
  type AdmissionContext,
  admissionMachine,
  type Deferred,
  type Judged,
  undecided,
} from '../../../machines/pods/admission/admissionMachine.ts';
import {
  choosePreempted,
  DEFAULT_GRACE_SECONDS,
  Leaving,
  PREEMPTING,
  PREEMPTING_MESSAGE,
} from '../../../machines/pods/admission/preemption.ts';
import { type Room, rememberedRequests, shortages } from '../../../machines/pods/admission/resources.ts';
import { type SysctlPatterns, sysctlPatterns } from '../../../machines/pods/admission/sysctls.ts';
import { hasRun } from '../../../machines/pods/listed.ts';
import { fullName, podRef, sameName, stands } from '../../../machines/pods/manager/records.ts';
import { SET_ASIDE_ANNOTATION } from '../../../machines/pods/setAside.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { type AdmissionEvent, addr, type PodOpEvent, type PodsView, type RuntimePodsView, view } from '../../../machines/protocol.ts';
import { pressureRefusal } from '../../../machines/reclaim/eviction/admission.ts';
import { isCritical } from '../../../machines/reclaim/eviction/rank.ts';
import { NOT_ADMITTED, NOT_ADMITTED_MESSAGE, nodeShutdownView } from '../../../machines/reclaim/nodeShutdown/messages.ts';
import { because } from '../../../machines/supervision/address.ts';
import { handlingPod } from '../../../ports/handling.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type Allocator, Allocators } from './allocators.ts';
import { byCreation, isLeaving, isWait, keepsRoom } from './order.ts';
import { type ResizeRoom, Resizes } from './resizes.ts';

export interface AdmissionOptions {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  /** What the node registers with: its labels until the API server has shown others, or for good where there is none. */
  identity: Omit<NodeIdentity, 'os' | 'arch'>;
  allowedUnsafeSysctls: readonly string[];
  /** A control group of the node's own holds each pod as a whole. */
  podGroups: boolean;
  /** There is an API server, where labels and taints may have changed. */
  cluster: boolean;
  /** Who hands something out to a pod before it is let in, in this order. */
  allocators: readonly Allocator[];
  /** The CPU manager hands out whole CPUs: what Guaranteed pods have of them does not change. */
  fixedCpus: boolean;
}

/** The checkpoint is read before the first pod is judged; its own limit is shorter. */
const READY_TIMEOUT_MS = 15_000;
/** A pod that was asked to make room and does not is asked again: the pod manager may have begun anew over it. */
const ASK_AGAIN_MS = 10_000;
/** A pod that the labels or taints of the node keep away waits no longer than this for a fresher word about them. */
const PLACEMENT_WAIT_MS = 30_000;

/** What a pod is judged by, beside the views. */
interface Known {
  recent: ReadonlyMap<string, Pod>;
  deferred: readonly Deferred[];
  sinceMonoMs: number;
}

export function admissionSpec(opts: AdmissionOptions): ActorSpec<AdmissionEvent> {
  return {
    type: 'actor',
    id: 'admission',
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 },
    mailbox: { capacity: 4096 },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => {
      const judge = new Judge(ctx, opts);
      return {
        logic: admissionMachine.provide({
          actors: { load: fromPromise(({ signal }) => judge.resizes.load(signal)) },
          actions: {
            take: ({ context, self }, { event }) => self.send(judged(judge.take(context, event))),
            takeEarly: ({ context, self }) => self.send(judged(judge.takeEarly(context))),
            retry: ({ context, self }) => self.send(judged(judge.retry(context))),
          },
        }),
      };
    },
  };
}

const judged = (known: Partial<AdmissionContext>): Judged => ({ type: 'admission.judged', known });

class Judge {
  readonly ctx: ActorCtx<AdmissionEvent>;
  readonly opts: AdmissionOptions;
  readonly resizes: Resizes;
  readonly allocators: Allocators;
  /** Versions of the views, together, when the waiting changes of resources were last looked at. */
  private retriedAt = -1;
  private readonly requests = rememberedRequests();
  private readonly sysctls: SysctlPatterns;
  readonly refusals: ReturnType<Ports['metrics']['counter']>;
  private readonly preemptions: ReturnType<Ports['metrics']['counter']>;
  /** Pods that were asked to make room, when, and have not been seen to be on their way yet. */
  private readonly asked = new Map<string, number>();
  /** What {@link holders} found, and of which views. */
  private gathered: {
    at: { pods?: PodsView | undefined; listing?: RuntimePodsView | undefined };
    holders: ReadonlyMap<string, Pod>;
    leaving: ReadonlySet<string>;
  } = { at: {}, holders: new Map(), leaving: new Set() };
  /** Since when pods that a critical one waits for are on their way. */
  private readonly leaving = new Leaving();
  constructor(ctx: ActorCtx<AdmissionEvent>, opts: AdmissionOptions) {
    this.ctx = ctx;
    this.opts = opts;
    this.resizes = new Resizes(ctx, { fixedCpus: opts.fixedCpus });
    this.allocators = new Allocators(ctx, opts.allocators);
    this.sysctls = sysctlPatterns(ctx.ports.host.identity?.().kernelVersion ?? '', opts.allowedUnsafeSysctls);
    this.refusals = ctx.ports.metrics.counter('kubelet_admission_rejections_total', 'Pods that admission refused, by reason.', ['reason']);
    this.preemptions = ctx.ports.metrics.counter(
      'kubelet_preemptions',
      'Pods that made room for critical ones, by what there was too little of',
      ['preemption_signal'],
    );
  }

  take(context: AdmissionContext, event: PodOpEvent): Partial<AdmissionContext> {
    const recent = new Map(context.recent);
    const sinceMonoMs = this.ctx.ports.clock.monoMs();
    if (event.op !== 'ADD') {
      if (event.op === 'REMOVE')
        for (const p of event.pods) {
          recent.delete(p.metadata.uid);
          this.resizes.forget(p.metadata.uid);
          this.allocators.forget(p.metadata.uid);
        }
      const named = new Map(event.pods.map((p) => [p.metadata.uid, p]));
      const deferred = context.deferred.filter((d) => event.op !== 'REMOVE' || !named.has(d.pod.metadata.uid));
      const passed: Pod[] = [];
      for (const pod of event.pods) {
        if (event.op === 'DELETE') this.resizes.giveUp(pod.metadata.uid);
        const at = deferred.findIndex((d) => d.pod.metadata.uid === pod.metadata.uid);
        const waiting = deferred[at];
        // Not judged yet: the newest definition will be.
        if (waiting !== undefined) deferred[at] = { ...waiting, pod };
        else if (event.op !== 'UPDATE') passed.push(this.resizes.form(pod));
        else {
          const verdict = this.judge(pod, { recent, deferred, sinceMonoMs });
          if (verdict === null) passed.push(this.resizes.take(pod, this.room({ recent, deferred })));
          else if (isWait(verdict)) deferred.push({ pod, event, sinceMonoMs, verdict });
          else this.refuse(pod, verdict, event);
        }
      }
      this.ctx.registry.send(addr.podManager, { ...event, pods: passed, undecided: this.undecided(deferred) });
      return this.result(recent, deferred);
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
        const granted = this.resizes.take(pod, this.room({ recent, deferred }));
        recent.set(pod.metadata.uid, granted);
        admitted.push(granted);
      } else if (isWait(verdict)) deferred.push({ pod, event, sinceMonoMs, verdict });
      else this.refuse(pod, verdict, event);
    }
    // Sent even when empty: it also says that this source has delivered.
    this.ctx.registry.send(addr.podManager, { ...event, pods: admitted, undecided: this.undecided(deferred) });
    return this.result(this.prune(recent), deferred);
  }

  private undecided(deferred: readonly Deferred[]): NonNullable<PodOpEvent['undecided']> {
    return { by: this.ctx.incarnation, uids: undecided(deferred) };
  }

  takeEarly(context: AdmissionContext): Partial<AdmissionContext> {
    let now: AdmissionContext = { ...context, early: [] };
    for (const event of context.early) now = { ...now, ...this.take(now, event) };
    return now;
  }

  retry(context: AdmissionContext): Partial<AdmissionContext> {
    const recent = new Map(context.recent);
    const deferred: Deferred[] = [];
    // Those whose room is kept come first: the others get what they leave.
    for (const d of [...context.deferred].sort((a, b) => Number(keepsRoom(b)) - Number(keepsRoom(a)))) {
      const verdict = this.judge(d.pod, { recent, deferred, sinceMonoMs: d.sinceMonoMs });
      if (verdict !== null && isWait(verdict)) deferred.push({ ...d, verdict });
      else if (verdict === null) {
        const granted = this.resizes.take(d.pod, this.room({ recent, deferred }));
        recent.set(d.pod.metadata.uid, granted);
        const { complete: _, first: _f, predecessors: _p, ...event } = d.event;
        this.ctx.registry.send(addr.podManager, { ...event, pods: [granted] });
      } else this.refuse(d.pod, verdict, d.event);
    }
    const before = context.deferred[0]?.event;
    if (before !== undefined && undecided(deferred).length < undecided(context.deferred).length) {
      const { complete: _, first: _f, predecessors: _p, ...event } = before;
      this.ctx.registry.send(addr.podManager, { ...event, op: 'ADD', pods: [], undecided: this.undecided(deferred) });
    }
    this.retryResizes({ recent, deferred });
    return this.result(this.prune(recent), deferred);
  }

  /** Room that somebody gave back is first offered to whoever runs here and asked for more. */
  private retryResizes(known: Pick<Known, 'recent' | 'deferred'>): void {
    const { registry, path, ports } = this.ctx;
    // Somebody gave back, or what was granted is in force.
    const version = (registry.read(view.pods)?.version ?? 0) + (registry.read(view.statuses)?.version ?? 0);
    if (!this.resizes.some || version === this.retriedAt) return;
    this.retriedAt = version;
    const pods = this.resizes.retry(this.room(known));
    if (pods.length === 0) return;
    const causes = because(undefined, { atMs: ports.clock.wallMs(), by: path, what: 'a change of its resources was looked at again' });
    registry.send(addr.podManager, { type: 'pods.op', op: 'UPDATE', source: 'api', pods, causes });
  }

  private room(known: Pick<Known, 'recent' | 'deferred'>): ResizeRoom {
    const { allocatable } = this.opts;
    return { others: (pod) => this.others(pod, known), allocatable, requests: this.requests };
  }

  private result(recent: Map<string, Pod>, deferred: readonly Deferred[]): Partial<AdmissionContext> {
    this.resizes.save((uid) => recent.has(uid) || deferred.some((d) => d.pod.metadata.uid === uid));
    return { recent, deferred, resizes: this.resizes.some };
  }

  /** Who holds room beside this pod. */
  private others(pod: Pod, { recent, deferred }: Pick<Known, 'recent' | 'deferred'>): Pod[] {
    const records = this.ctx.registry.read(view.pods)?.value.records;
    const others = new Map<string, Pod>();
    this.resizes.letGo();
    for (const [uid, known] of this.holders()) if (!sameName(known, pod)) others.set(uid, this.resizes.counted(known));
    for (const [uid, p] of recent) if (records?.has(uid) !== true && !isTerminal(p.status.phase)) others.set(uid, p);
    for (const d of deferred) if (keepsRoom(d)) others.set(d.pod.metadata.uid, this.resizes.form(d.pod));
    others.delete(pod.metadata.uid);
    return [...others.values()];
  }

  /**
   * Pods that hold room as the views show them. Gathered once for each state of the views: thousands of refused pods stand there,
   * and each pod that waits is judged against what is left.
   */
  private holders(): ReadonlyMap<string, Pod> {
    const pods = this.ctx.registry.read(view.pods);
    const listed = this.ctx.registry.read(view.runtimePods);
    const { at } = this.gathered;
    if (at.pods === pods?.value && at.listing === listed?.value) return this.gathered.holders;
    const listing = listed?.value;
    const runs = (uid: string) => listing === undefined || (listing.pods.get(uid)?.sandboxes.length ?? 0) > 0;
    const holders = new Map<string, Pod>();
    const leaving = new Set<string>();
    for (const [uid, rec] of pods?.value.records ?? []) {
      if (isLeaving(rec)) leaving.add(uid);
      if (rec.rejected) continue;
      const phase = rec.worker?.phase ?? (isTerminal(rec.pod.status.phase) ? 'finished' : 'waiting');
      if (phase === 'finished' || phase === 'terminated') continue;
      // It had ended, or was refused, before it came to be wound down: only what is left of it holds room.
      const over = isTerminal(rec.pod.status.phase) || (rec.renewed === true && Boolean(rec.pod.metadata.deletionTimestamp));
      if (over && (phase !== 'terminating' || !runs(uid))) continue;
      holders.set(uid, rec.pod);
    }
    this.gathered = { at: { pods: pods?.value, listing }, holders, leaving };
    return holders;
  }

  private judge(pod: Pod, known: Known): Refusal | Deferred['verdict'] | null {
    const aside = pod.metadata.annotations?.[SET_ASIDE_ANNOTATION];
    if (aside !== undefined) return { about: 'pod', reason: 'SetAside', message: aside };
    return handlingPod(this.ctx.ports, pod.metadata.uid, () => this.judged(pod, known));
  }

  private judged(pod: Pod, known: Known): Refusal | Deferred['verdict'] | null {
    const records = this.ctx.registry.read(view.pods)?.value.records;
    const own = records?.get(pod.metadata.uid);
    // The mux was restarted and says everything again: who refused it once does not think better of it.
    if (own !== undefined && stands(own, pod)) return null;
    const isKnown = known.recent.has(pod.metadata.uid) || (own !== undefined && !own.rejected && !own.removed);
    const weighed = this.weigh(pod, { ...known, isKnown, records });
    const verdict = weighed === null && !isKnown ? this.handOut(pod, known) : weighed;
    if (verdict !== null && !isWait(verdict)) this.allocators.forget(pod.metadata.uid);
    return verdict;
  }

  /** Of a pod that fits. */
  private handOut(pod: Pod, { recent, deferred }: Known): Refusal | Deferred['verdict'] | null {
    const active = () => new Set([...recent.keys(), ...deferred.map((d) => d.pod.metadata.uid)]);
    return this.allocators.judge(pod, { form: this.resizes.form(pod), active });
  }

  private weigh(
    pod: Pod,
    known: Known & { isKnown: boolean; records: PodsView['records'] | undefined },
  ): Refusal | Deferred['verdict'] | null {
    const { registry } = this.ctx;
    const { isKnown, records, sinceMonoMs } = known;
    // Running here already (an update, or the mux was restarted): refused only for what it asks, as a new definition
    // of a pod with a pinned UID may bring in what this node cannot honour.
    if (isKnown) return refusedForItself(pod, this.ability(true));
    // What the runtime can do is not known before it was asked for the first time.
    if (asksForStrictGroups(pod) && (registry.read(view.cri)?.value.lastGoodMonoMs ?? null) === null) return 'later';
    const { podsMax, allocatable } = this.opts;
    const room: Room = { others: this.others(pod, known), podsMax, allocatable, requests: this.requests };
    const judged = admit({
      ...room,
      pod,
      node: this.placement(),
      ability: this.ability(false),
    });
    // A want of room, though not of this pod's own; the reference asks about it first.
    const shutdown = this.shutdown();
    const refusal = judged?.about === 'pod' ? judged : (this.pressure(pod) ?? judged ?? shutdown);
    if (refusal === null || refusal.about === 'pod') return refusal;
    // It has ended, and takes nothing.
    if (isTerminal(pod.status.phase)) return null;
    // What runs here already keeps its place, whatever became of the node.
    const listing = registry.read(view.runtimePods)?.value;
    if (listing === undefined) return 'later';
    if (hasRun(listing.pods.get(pod.metadata.uid))) return null;
    const going = Boolean(pod.metadata.deletionTimestamp);
    if (refusal.short !== undefined && isCritical(pod) && !going && shutdown === null) return this.makeRoom(pod, room, records);
    return refusal.about === 'placement' && this.mayBeOld(pod, sinceMonoMs) ? 'later' : refusal;
  }

  /** Others give way to a critical pod: those that are on their way already are waited for, and as few as can be are asked to go. */
  private makeRoom(pod: Pod, room: Room, records: PodsView['records'] | undefined): Refusal | 'room' | null {
    const nowMs = this.ctx.ports.clock.monoMs();
    for (const [uid, atMs] of this.asked) if (isLeaving(records?.get(uid)) || nowMs - atMs >= ASK_AGAIN_MS) this.asked.delete(uid);
    const { leaving } = this.gathered;
    const staying = room.others.filter(({ metadata: { uid } }) => !this.asked.has(uid) && !leaving.has(uid));
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
    return choice.pods.length === 0 && this.roomInTime(pod, room) ? null : 'room';
  }

  /**
   * One that does not end although its time is over keeps a critical pod out no longer: what the runtime cannot stop must
   * not stop the node. It is ended all the same, as soon as that can be.
   */
  private roomInTime(pod: Pod, room: Room): boolean {
    const going = room.others.filter(({ metadata: { uid } }) => this.gathered.leaving.has(uid));
    const late = this.leaving.late(going, this.ctx.ports.clock.monoMs());
    if (late.length === 0 || shortages(pod, { ...room, others: room.others.filter((p) => !late.includes(p)) }).length > 0) return false;
    this.ctx.log.warn(
      { ...podRef(pod), late: late.map(fullName) },
      'letting a critical pod in: others that make room for it did not end in time',
    );
    return true;
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
    const devices = this.ctx.ports.devicePlugins !== undefined;
    const { podGroups } = this.opts;
    return { sysctls: this.sysctls, podGroups, strictGroups: asked ? cri?.strictGroups === true : unasked, devices };
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

  /** Null while the machine is not going down. */
  private shutdown(): Refusal | null {
    const active = this.ctx.registry.read(nodeShutdownView)?.value.active === true;
    return active ? { reason: NOT_ADMITTED, message: NOT_ADMITTED_MESSAGE, about: 'room' } : null;
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
