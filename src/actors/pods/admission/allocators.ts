/**
 * What a pod is handed out before it is let in, by those who hand things out (`node/allocation`), one after the other. An
 * answer takes a moment, since it is on disk by then: until it is there the pod waits, and keeps its room.
 */

import { wantsExclusive } from '../../../machines/allocation/cpus/policy.ts';
import { asksForDevices } from '../../../machines/allocation/devices/allocate.ts';
import { devicesAddr } from '../../../machines/allocation/devices/messages.ts';
import { type AllocationAnswer, type AllocationEvent, allocationAddr } from '../../../machines/allocation/messages.ts';
import type { Pod } from '../../../machines/k8s.ts';
import type { Refusal } from '../../../machines/pods/admission/admission.ts';
import type { Deferred } from '../../../machines/pods/admission/admissionMachine.ts';
import { hasRun } from '../../../machines/pods/listed.ts';
import { podRef } from '../../../machines/pods/manager/records.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { type AdmissionEvent, addr, type RuntimePodsView, view } from '../../../machines/protocol.ts';
import type { Address, ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

export interface Allocator {
  readonly address: Address<AllocationEvent>;
  /** Whether this pod needs anything of it; the others are not asked about. */
  concerns(pod: Pod): boolean;
  /** For one answer. Then it is asked again. */
  timeoutMs: number;
}

/** Plugins may take their time to allocate, as in the reference; CPUs are written to a disk. */
const DEVICES_ANSWER_MS = 600_000;
const CPUS_ANSWER_MS = 30_000;
/** Who is there to hand something out: devices, then CPUs, as in the reference. */
export function allocatorsOf(there: { devices: boolean; cpus: boolean }): Allocator[] {
  const devices = { address: devicesAddr, concerns: asksForDevices, timeoutMs: DEVICES_ANSWER_MS };
  const cpus = { address: allocationAddr.cpus, concerns: wantsExclusive, timeoutMs: CPUS_ANSWER_MS };
  return [...(there.devices ? [devices] : []), ...(there.cpus ? [cpus] : [])];
}

/** After the answer that others have it. */
const ASK_AGAIN_MS = 400;
/** Before pods that run here are let in again nothing is cleaned up: a plugin that never answers must not stop that. */
const READMIT_MAX_MS = 30_000;

/** `pod`: the definition that was asked about. */
interface Asked {
  pod: Pod;
  answer: AllocationAnswer | null;
  /** Monotonic ms of the question, then of the answer. */
  atMonoMs: number;
  /** Gives the question up. */
  stop: AbortController;
}
/** `form`: with what it was granted of cpu and memory. `active`: pods that were let in, or are about to be. */
interface Question {
  form: Pod;
  active(): ReadonlySet<string>;
}

export class Allocators {
  private readonly ctx: ActorCtx<AdmissionEvent>;
  private readonly allocators: readonly Allocator[];
  private readonly beganMonoMs: number;
  private readonly asked = new Map<string, Asked>();
  /** Why a pod was last told to wait. */
  private readonly said = new Map<string, string>();

  constructor(ctx: ActorCtx<AdmissionEvent>, allocators: readonly Allocator[]) {
    this.ctx = ctx;
    this.allocators = allocators;
    this.beganMonoMs = ctx.ports.clock.monoMs();
  }

  /**
   * Of a pod that fits. Null: it has all that it is to have alone, or is to have nothing, since it ends or has ended; or it
   * runs here already, which is not ended for it.
   */
  judge(pod: Pod, question: Question): Refusal | Deferred['verdict'] | null {
    const { uid, deletionTimestamp } = pod.metadata;
    const concerned = this.allocators.filter((a) => a.concerns(question.form));
    if (isTerminal(pod.status.phase) || deletionTimestamp || concerned.length === 0) return null;
    const listing = this.listing();
    if (listing === undefined) return 'later';
    const runs = hasRun(listing.pods.get(uid));
    const answer = this.answer(pod, { ...question, concerned }) ?? (runs ? this.overdue(uid) : null);
    if (answer === null) return runs ? 'readmitting' : 'allocating';
    if (answer.kind !== 'granted' && !runs) return answer.kind === 'later' ? 'allocating' : refusalOf(answer);
    if (answer.kind !== 'granted') {
      const why = answer.kind === 'later' ? answer.why : answer.message;
      this.ctx.log.warn({ ...podRef(pod) }, `a pod that runs here already goes on as it is: ${why}`);
    }
    this.asked.delete(uid);
    this.said.delete(uid);
    return null;
  }

  /** It is not let in, or not wanted any more. */
  forget(uid: string): void {
    this.said.delete(uid);
    const asked = this.asked.get(uid);
    if (asked === undefined) return;
    this.asked.delete(uid);
    asked.stop.abort(new Error('the pod is not let in'));
    for (const { address } of this.allocators) this.ctx.registry.send(address, { type: 'allocation.forget', uid });
  }

  /** What the runtime was seen to hold since admission began: an earlier look may lack what the workers before it had just started. */
  private listing(): RuntimePodsView | undefined {
    const { registry } = this.ctx;
    const listing = registry.read(view.runtimePods)?.value;
    if (listing === undefined || listing.atMonoMs > this.beganMonoMs) return listing;
    registry.send(addr.pleg, { type: 'pleg.relist', why: 'admission has to know what runs here' });
    return undefined;
  }

  /** Null: not known yet. `later` is asked again at a look after some time. */
  private answer(pod: Pod, question: Question & { concerned: readonly Allocator[] }): AllocationAnswer | null {
    const { uid } = pod.metadata;
    const { clock } = this.ctx.ports;
    const known = this.asked.get(uid);
    const isOld = known?.answer?.kind === 'later' && clock.monoMs() - known.atMonoMs >= ASK_AGAIN_MS;
    if (known?.pod === pod && !isOld) return known.answer;
    known?.stop.abort(new Error('it is asked about anew'));
    const asked: Asked = { pod, answer: null, atMonoMs: clock.monoMs(), stop: new AbortController() };
    this.asked.set(uid, asked);
    void this.ask(question, asked.stop.signal).then((answer) => {
      if (this.asked.get(uid) !== asked) return;
      asked.answer = answer;
      asked.atMonoMs = clock.monoMs();
      if (answer.kind === 'later') this.say(pod, answer.why);
      this.ctx.registry.send(addr.admission, { type: 'admission.look' });
    });
    return null;
  }

  private overdue(uid: string): AllocationAnswer | null {
    const sinceMs = this.asked.get(uid)?.atMonoMs ?? Number.POSITIVE_INFINITY;
    return this.ctx.ports.clock.monoMs() - sinceMs < READMIT_MAX_MS ? null : { kind: 'later', why: 'there is no answer yet' };
  }

  /** Who has given keeps it for this pod while others are asked. */
  private async ask(
    { form, active: of, concerned }: Question & { concerned: readonly Allocator[] },
    stop: AbortSignal,
  ): Promise<AllocationAnswer> {
    const { registry } = this.ctx;
    const signal = AbortSignal.any([stop, this.ctx.signal]);
    const active = of();
    for (const { address, timeoutMs } of concerned) {
      const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', pod: form, active, replyTo }) as const;
      const answer = await registry.ask(address, question, { timeoutMs, signal });
      if (answer.kind !== 'reply') return { kind: 'later', why: answer.reason };
      if (answer.value.kind !== 'granted') return answer.value;
    }
    return { kind: 'granted' };
  }

  private say(pod: Pod, why: string): void {
    const { uid } = pod.metadata;
    if (this.said.get(uid) === why) return;
    this.said.set(uid, why);
    this.ctx.log.info({ ...podRef(pod), why }, 'a pod is not let in yet; it is looked at again');
  }
}

function refusalOf({ reason, message }: Extract<AllocationAnswer, { kind: 'refused' }>): Refusal {
  return { reason, message, about: 'room' };
}
