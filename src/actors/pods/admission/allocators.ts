/**
 * What a pod is handed out before it is let in, by those who hand things out (`node/allocation`), one after the other. An
 * answer takes a moment, since it is on disk by then: until it is there the pod waits, and keeps its room.
 */
import type { Address, ReplyTo } from '../../../machines/address.ts';
import type { AllocationAnswer, AllocationEvent } from '../../../machines/allocation/messages.ts';
import type { Pod } from '../../../machines/k8s.ts';
import type { Refusal } from '../../../machines/pods/admission.ts';
import { podRef } from '../../../machines/pods/manager/records.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { type AdmissionEvent, addr, view } from '../../../machines/protocol.ts';
import type { ActorCtx } from '../../kernel/types.ts';
import type { Deferred } from './chart.ts';

export interface Allocator {
  readonly address: Address<AllocationEvent>;
  /** Whether this pod needs anything of it; the others are not asked about. */
  concerns(pod: Pod): boolean;
}

/** It writes to a disk: far longer than that takes. Then it is asked again. */
const ANSWER_TIMEOUT_MS = 30_000;

/** After the answer that others have it. */
const ASK_AGAIN_MS = 400;

/** `pod`: the definition that was asked about. */
interface Asked {
  pod: Pod;
  answer: AllocationAnswer | null;
  /** Monotonic ms of the answer. */
  atMonoMs: number;
}

export class Allocators {
  private readonly ctx: ActorCtx<AdmissionEvent>;
  private readonly allocators: readonly Allocator[];
  private readonly asked = new Map<string, Asked>();
  /** Why a pod was last told to wait. */
  private readonly said = new Map<string, string>();

  constructor(ctx: ActorCtx<AdmissionEvent>, allocators: readonly Allocator[]) {
    this.ctx = ctx;
    this.allocators = allocators;
  }

  /**
   * Of a pod that fits. Null: it has all that it is to have alone, or is to have nothing, since it ends or has ended; or it
   * runs here already, which is not ended for it. `form`: with what it was granted of cpu and memory.
   */
  judge(pod: Pod, form: Pod): Refusal | Deferred['verdict'] | null {
    if (isTerminal(pod.status.phase) || pod.metadata.deletionTimestamp || !this.allocators.some((a) => a.concerns(form))) return null;
    const listing = this.ctx.registry.read(view.runtimePods)?.value;
    if (listing === undefined) return 'later';
    const runs = (listing.pods.get(pod.metadata.uid)?.sandboxes.length ?? 0) > 0;
    const answer = this.answer(pod, form);
    if (answer === null || !runs) return answer === 'short' ? 'allocating' : answer;
    if (answer === 'allocating') return 'readmitting';
    const why = answer === 'short' ? 'others have what it is to have alone' : answer.message;
    this.ctx.log.warn({ ...podRef(pod) }, `a pod that runs here already goes on as it is: ${why}`);
    return null;
  }

  /** `allocating`: not known yet. `short`: others have it, who are on their way out; asked again at the next look. */
  private answer(pod: Pod, form: Pod): Refusal | 'allocating' | 'short' | null {
    const concerned = this.allocators.filter((a) => a.concerns(form));
    const { uid } = pod.metadata;
    const known = this.asked.get(uid);
    if (known?.pod !== pod) {
      const asked: Asked = { pod, answer: null, atMonoMs: 0 };
      this.asked.set(uid, asked);
      void this.ask(concerned, form).then((answer) => {
        if (this.asked.get(uid) !== asked) return;
        asked.answer = answer;
        asked.atMonoMs = this.ctx.ports.clock.monoMs();
        this.ctx.registry.send(addr.admission, { type: 'admission.look' });
      });
      return 'allocating';
    }
    if (known.answer === null) return 'allocating';
    if (known.answer.kind === 'later') {
      this.say(pod, known.answer.why);
      if (this.ctx.ports.clock.monoMs() - known.atMonoMs >= ASK_AGAIN_MS) this.asked.delete(uid);
      return 'short';
    }
    this.asked.delete(uid);
    this.said.delete(uid);
    return known.answer.kind === 'granted' ? null : { ...refusalOf(known.answer), about: 'room' };
  }

  /** It is not let in, or not wanted any more. */
  forget(uid: string): void {
    this.said.delete(uid);
    if (!this.asked.delete(uid)) return;
    for (const { address } of this.allocators) this.ctx.registry.send(address, { type: 'allocation.forget', uid });
  }

  private async ask(concerned: readonly Allocator[], pod: Pod): Promise<AllocationAnswer> {
    const { registry, signal } = this.ctx;
    for (const [i, { address }] of concerned.entries()) {
      const answer = await registry.ask(
        address,
        (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit' as const, pod, replyTo }),
        { timeoutMs: ANSWER_TIMEOUT_MS, signal },
      );
      const said: AllocationAnswer = answer.kind === 'reply' ? answer.value : { kind: 'later', why: answer.reason };
      if (said.kind === 'granted') continue;
      for (const before of concerned.slice(0, i)) registry.send(before.address, { type: 'allocation.forget', uid: pod.metadata.uid });
      return said;
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

function refusalOf({ reason, message }: Extract<AllocationAnswer, { kind: 'refused' }>): Pick<Refusal, 'reason' | 'message'> {
  return { reason, message };
}
