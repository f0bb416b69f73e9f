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
import type { Placement, Refusal } from '../../../machines/pods/admission/admission.ts';
import {
  type AdmissionContext,
  admissionMachine,
  type Deferred,
  isWait,
  type Judged,
  keepsRoom,
  undecided,
} from '../../../machines/pods/admission/admissionMachine.ts';
import {
  type AdmissionFacts,
  byCreation,
  isLeaving,
  type Judgement,
  judge,
  makeRoom,
  roomHolders,
} from '../../../machines/pods/admission/judge.ts';
import { DEFAULT_GRACE_SECONDS, Leaving, PREEMPTING, PREEMPTING_MESSAGE } from '../../../machines/pods/admission/preemption.ts';
import { type RequestOf, type Room, rememberedRequests } from '../../../machines/pods/admission/resources.ts';
import { type SysctlPatterns, sysctlPatterns } from '../../../machines/pods/admission/sysctls.ts';
import { fullName, podRef, sameName } from '../../../machines/pods/manager/records.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { type AdmissionEvent, addr, type PodOpEvent, type PodsView, type RuntimePodsView, view } from '../../../machines/protocol.ts';
import { nodeShutdownView } from '../../../machines/reclaim/nodeShutdown/messages.ts';
import { because } from '../../../machines/supervision/address.ts';
import { handlingPod } from '../../../ports/handling.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type Allocator, Allocators } from './allocators.ts';
import { type ResizeRoom, Resizes } from './resizes.ts';

export interface AdmissionOptions {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  /** What the node registers with: its labels until the API server has shown others, or for good where there is none. */
  identity: Omit<NodeIdentity, 'os' | 'arch'>;
  allowedUnsafeSysctls: readonly string[];
  /** A cgroup of the node's own holds each pod as a whole. */
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
    const pods = this.ctx.registry.read(view.pods)?.value;
    const listing = this.ctx.registry.read(view.runtimePods)?.value;
    const { at } = this.gathered;
    if (at.pods !== pods || at.listing !== listing) this.gathered = { at: { pods, listing }, ...roomHolders(pods?.records, listing) };
    return this.gathered.holders;
  }

  private judge(pod: Pod, known: Known): Refusal | Deferred['verdict'] | null {
    return handlingPod(this.ctx.ports, pod.metadata.uid, () => {
      const judged = judge(pod, this.facts(pod, known));
      const verdict = this.verdict(pod, judged, known);
      if (verdict !== null && !isWait(verdict)) this.allocators.forget(pod.metadata.uid);
      return verdict;
    });
  }

  private verdict(pod: Pod, judged: Judgement, known: Known): Refusal | Deferred['verdict'] | null {
    const { recent, deferred } = known;
    switch (judged.is) {
      case 'refused':
        return judged.refusal;
      case 'fits': {
        const active = () => new Set([...recent.keys(), ...deferred.map((d) => d.pod.metadata.uid)]);
        return judged.allocates ? this.allocators.judge(pod, { form: this.resizes.form(pod), active }) : null;
      }
      case 'later':
        if (judged.first === 'node') {
          const why = `pod ${fullName(pod)} does not match the node as it was last read`;
          this.ctx.registry.send(apiAddr.nodeStatus, { type: 'node.report', why });
        }
        return 'later';
      case 'short': {
        const verdict = this.makeRoom(pod, known);
        // There is room once those that are late have ended.
        return verdict ?? this.verdict(pod, { is: 'fits', allocates: true }, known);
      }
    }
  }

  private facts(pod: Pod, known: Known): AdmissionFacts {
    const { registry, ports } = this.ctx;
    const { uid } = pod.metadata;
    const own = registry.read(view.pods)?.value.records.get(uid);
    const cri = registry.read(view.cri)?.value;
    const room = () => this.spaceFor(pod, known);
    const node = () => this.placement();
    return {
      own,
      isKnown: known.recent.has(uid) || (own !== undefined && !own.rejected && !own.removed),
      listing: registry.read(view.runtimePods)?.value,
      get room() {
        return room();
      },
      get node() {
        return node();
      },
      nodeMayBeOld: this.nodeMayBeOld(known.sinceMonoMs),
      ability: { sysctls: this.sysctls, podGroups: this.opts.podGroups, devices: ports.devicePlugins !== undefined },
      strictGroups: (cri?.lastGoodMonoMs ?? null) === null ? null : cri?.strictGroups === true,
      pressures: registry.read(view.pressure)?.value.pressures ?? [],
      shutsDown: registry.read(nodeShutdownView)?.value.active === true,
    };
  }

  private spaceFor(pod: Pod, known: Known): Room & { requests: RequestOf } {
    const { podsMax, allocatable } = this.opts;
    return { others: this.others(pod, known), podsMax, allocatable, requests: this.requests };
  }

  /** Null: there is room, once those that are late have ended. */
  private makeRoom(pod: Pod, known: Known): Refusal | 'room' | null {
    const nowMs = this.ctx.ports.clock.monoMs();
    const records = this.ctx.registry.read(view.pods)?.value.records;
    for (const [uid, atMs] of this.asked) if (isLeaving(records?.get(uid)) || nowMs - atMs >= ASK_AGAIN_MS) this.asked.delete(uid);
    const room = this.spaceFor(pod, known);
    const { leaving } = this.gathered;
    const made = makeRoom(pod, room, {
      leaves: (uid) => this.asked.has(uid) || leaving.has(uid),
      late: () =>
        this.leaving.late(
          room.others.filter(({ metadata: { uid } }) => leaving.has(uid)),
          nowMs,
        ),
    });
    if (made.is === 'refused') return made.refusal;
    if (made.is === 'overdue') {
      const message = 'letting a critical pod in: others that make room for it did not end in time';
      this.ctx.log.warn({ ...podRef(pod), late: made.late.map(fullName) }, message);
      return null;
    }
    // One without a worker was only just admitted: it is asked as soon as it has one.
    for (const victim of made.victims) if (records?.get(victim.metadata.uid)?.worker) this.preempt(victim, pod, made.resource);
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

  /** The node as the API server last showed it; before that, and without one, as it registers. */
  private placement(): Placement {
    const { registry, ports } = this.ctx;
    const seen = registry.read(apiView.placement)?.value;
    if (seen !== undefined) return { name: this.opts.identity.name, labels: seen.labels, taints: seen.taints };
    const machine = ports.host.identity?.();
    const { metadata, spec } = initialNode({ ...this.opts.identity, os: machine?.os ?? 'linux', arch: machine?.arch ?? 'amd64' }, {});
    return { name: metadata.name, labels: metadata.labels ?? {}, taints: spec.taints ?? [] };
  }

  /** A label that the scheduler went by may be younger than the last look at the node. */
  private nodeMayBeOld(sinceMonoMs: number): boolean {
    const { registry, ports } = this.ctx;
    if (!this.opts.cluster) return false;
    const readAtMs = registry.read(apiView.placement)?.value.readAtMonoMs ?? Number.NEGATIVE_INFINITY;
    return readAtMs < sinceMonoMs && ports.clock.monoMs() - sinceMonoMs < PLACEMENT_WAIT_MS;
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
