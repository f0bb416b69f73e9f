/**
 * What each pod of the API was granted, and whose change of it waits (pod lifecycle 6.6). Only pods that ask for cpu or
 * memory are in the ledgers; what was granted survives a restart of the daemon (checkpoint `allocations`).
 */

import type { Pod, PodStatus, ResizePending } from '../../../machines/k8s.ts';
import type { RequestOf } from '../../../machines/pods/admission/resources.ts';
import { podRef } from '../../../machines/pods/manager/records.ts';
import {
  ALLOCATIONS_CHECKPOINT,
  type Allocation,
  allocatedPod,
  allocationOf,
  fromDocument,
  isGranted,
  isInForce,
  isWorthKeeping,
  judgeResize,
  largerOf,
  resizeOrder,
  toDocument,
} from '../../../machines/pods/resize/allocation.ts';
import { ANNOTATION_SOURCE } from '../../../machines/pods/sources/decode.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { type AdmissionEvent, addr, type CheckpointFound, view } from '../../../machines/protocol.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

const LOAD_TIMEOUT_MS = 10_000;

interface Waiting {
  /** What is asked for. */
  pod: Pod;
  pending: ResizePending;
  sinceMonoMs: number;
}
export interface ResizeRoom {
  /** Pods that hold room, without this one. */
  others(pod: Pod): readonly Pod[];
  allocatable: Readonly<Record<string, string>>;
  requests: RequestOf;
}

export class Resizes {
  private readonly ctx: ActorCtx<AdmissionEvent>;
  private allocations = new Map<string, Allocation>();
  private readonly waiting = new Map<string, Waiting>();
  /** What a pod holds until what it was granted is in force: the larger of both. */
  private readonly held = new Map<string, Pod>();
  private readonly fixedCpus: boolean;
  private changed = false;

  constructor(ctx: ActorCtx<AdmissionEvent>, o: { fixedCpus: boolean }) {
    this.ctx = ctx;
    this.fixedCpus = o.fixedCpus;
  }

  async load(signal: AbortSignal): Promise<void> {
    const answer = await this.ctx.registry.ask(
      addr.checkpoint,
      (replyTo: ReplyTo<CheckpointFound>) => ({ type: 'checkpoint.get' as const, name: ALLOCATIONS_CHECKPOINT, replyTo }),
      { timeoutMs: LOAD_TIMEOUT_MS, signal },
    );
    if (answer.kind === 'reply') this.allocations = answer.value.found ? fromDocument(answer.value.value) : new Map();
    else this.ctx.log.warn({ why: answer.reason }, 'what pods were granted cannot be read; each is taken to have what it asks for');
  }

  get some(): boolean {
    return this.waiting.size > 0;
  }

  /** As it is to be counted. */
  counted(pod: Pod): Pod {
    return this.held.get(pod.metadata.uid) ?? pod;
  }

  /** What is known to be granted in place of what is asked for; decides nothing. */
  form(pod: Pod): Pod {
    const { uid } = pod.metadata;
    const allocation = isStatic(pod) ? undefined : this.allocations.get(uid);
    if (allocation === undefined || isGranted(pod, allocation)) return pod;
    const pending = this.waiting.get(uid)?.pending;
    return { ...allocatedPod(pod, allocation), ...(pending === undefined ? {} : { resize: pending }) };
  }

  /** A pod that is let in, or has changed: with what it is granted. */
  take(pod: Pod, room: ResizeRoom): Pod {
    if (isStatic(pod)) return pod;
    const { uid } = pod.metadata;
    if (isTerminal(pod.status.phase) || pod.metadata.deletionTimestamp) {
      this.giveUp(uid);
      return this.form(pod);
    }
    const before = this.allocations.get(uid) ?? this.shown(uid);
    if (before === undefined || isGranted(pod, before)) {
      this.grant(pod);
      return pod;
    }
    // After a restart of the daemon not everybody who holds room is known yet: what was said last is said until then.
    if (this.registryPods()?.sourcesReady !== true) {
      this.allocations.set(uid, before);
      this.wait(pod, this.waiting.get(uid)?.pending ?? saidBefore(pod.status));
      return this.form(pod);
    }
    return this.decide(pod, before, room);
  }

  /** Those of the waiting that may have what they ask for now, or wait for another reason. */
  retry(room: ResizeRoom): Pod[] {
    if (this.registryPods()?.sourcesReady !== true) return [];
    const found: Pod[] = [];
    for (const { pod, pending } of [...this.waiting.values()].sort(resizeOrder)) {
      const before = this.allocations.get(pod.metadata.uid);
      const record = this.registryPods()?.records.get(pod.metadata.uid);
      // Its status was the newest when it was asked for, and is not any more: everything else of it is.
      const now = record === undefined ? pod : { ...pod, status: record.pod.status };
      if (before === undefined || record?.removed === true || record?.rejected === true || isTerminal(now.status.phase)) {
        this.giveUp(pod.metadata.uid);
        continue;
      }
      const decided = this.decide(now, before, room);
      if (decided.resize === undefined || decided.resize.message !== pending.message || decided.resize.reason !== pending.reason)
        found.push(decided);
    }
    return found;
  }

  /** A pod that ends gets nothing more. */
  giveUp(uid: string): void {
    this.waiting.delete(uid);
  }

  forget(uid: string): void {
    this.waiting.delete(uid);
    this.held.delete(uid);
    if (this.allocations.delete(uid)) this.changed = true;
  }

  /** What was held beyond what was granted, where that is in force by now. */
  letGo(): void {
    if (this.held.size === 0) return;
    const statuses = this.ctx.registry.read(view.statuses)?.value;
    for (const uid of [...this.held.keys()]) {
      const allocation = this.allocations.get(uid);
      const status = statuses?.get(uid)?.status;
      if (allocation === undefined || (status !== undefined && isInForce(status, allocation))) this.held.delete(uid);
    }
  }

  /** Writes what has changed; what no source names any more, and no pod manager knows, goes. */
  save(known: (uid: string) => boolean): void {
    const pods = this.registryPods();
    if (pods?.sourcesReady === true) {
      for (const uid of [...this.allocations.keys()]) if (!pods.records.has(uid) && !known(uid)) this.forget(uid);
    }
    if (!this.changed) return;
    this.changed = false;
    this.ctx.registry.send(addr.checkpoint, { type: 'checkpoint.put', name: ALLOCATIONS_CHECKPOINT, value: toDocument(this.allocations) });
  }

  private decide(pod: Pod, before: Allocation, room: ResizeRoom): Pod {
    const { uid } = pod.metadata;
    const verdict = judgeResize({
      pod,
      allocation: before,
      others: room.others(pod),
      allocatable: room.allocatable,
      requests: room.requests,
      fixedCpus: this.fixedCpus,
    });
    if (verdict.kind === 'granted') {
      this.held.set(uid, largerOf(pod, before));
      this.grant(pod);
      return pod;
    }
    this.allocations.set(uid, before);
    const { pending } = verdict;
    const said = this.waiting.get(uid)?.pending;
    this.wait(pod, pending);
    if (said?.reason !== pending.reason || said.message !== pending.message) this.say(pod, pending);
    return this.form(pod);
  }

  private grant(pod: Pod): void {
    const { uid } = pod.metadata;
    this.waiting.delete(uid);
    const allocation = allocationOf(pod);
    const before = this.allocations.get(uid);
    if (before === undefined && !isWorthKeeping(allocation)) return;
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(allocation)) return;
    this.allocations.set(uid, allocation);
    this.changed = true;
  }

  private wait(pod: Pod, pending: ResizePending): void {
    const { uid } = pod.metadata;
    const sinceMonoMs = this.waiting.get(uid)?.sinceMonoMs ?? this.ctx.ports.clock.monoMs();
    this.waiting.set(uid, { pod, pending, sinceMonoMs });
  }

  private say(pod: Pod, { reason, message }: ResizePending): void {
    this.ctx.log.info({ ...podRef(pod), reason }, `a change of resources is not granted: ${message}`);
    this.ctx.registry.send(addr.events, {
      type: 'event.record',
      event: { type: 'Warning', reason: `Resize${reason}`, message: `Pod resize ${reason}: ${message}`, pod: podRef(pod) },
    });
  }

  /** Of a pod that is in no ledger although it is known: it asked for nothing, or what was granted could not be read. */
  private shown(uid: string): Allocation | undefined {
    const record = this.registryPods()?.records.get(uid);
    return record === undefined || record.removed || record.rejected ? undefined : allocationOf(record.pod);
  }

  private registryPods() {
    return this.ctx.registry.read(view.pods)?.value;
  }
}

function saidBefore({ conditions = [] }: PodStatus): ResizePending {
  const said = conditions.find((c) => c.type === 'PodResizePending');
  const reason = said?.reason === 'Infeasible' ? 'Infeasible' : 'Deferred';
  return { reason, message: said?.message ?? 'every source of pods is heard before room is given away' };
}

function isStatic(pod: Pod): boolean {
  return pod.metadata.annotations?.[ANNOTATION_SOURCE] !== 'api';
}
