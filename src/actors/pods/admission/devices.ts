/**
 * Pods that ask for devices of plugins, while the device manager gives them what they ask for: nothing else is decided
 * meanwhile. Holds no device itself; a question whose answer is lost is asked again, and comes to the same.
 */
import type { ReplyTo } from '../../../machines/address.ts';
import { asksForDevices } from '../../../machines/allocation/devices/allocate.ts';
import { type AdmitAnswer, devicesAddr } from '../../../machines/allocation/devices/messages.ts';
import type { Pod } from '../../../machines/k8s.ts';
import { type Refusal, unsupported } from '../../../machines/pods/admission.ts';
import { podRef } from '../../../machines/pods/manager/records.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { addr, view } from '../../../machines/protocol.ts';
import type { ActorCtx } from '../../kernel/types.ts';

/** A plugin may take its time to allocate, as in the reference; asked again after this, its answer is waited for. */
const ANSWER_MS = 600_000;

export class DeviceClaims {
  private readonly ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal'>;
  private readonly asked = new Set<string>();
  private readonly answers = new Map<string, AdmitAnswer>();
  /** Pods that have their devices and wait for something else: each answer makes admission look again, so they are not asked about anew. */
  private readonly given = new Set<string>();
  /** What waiting pods were said to wait for. */
  private readonly said = new Map<string, string>();

  constructor(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal'>) {
    this.ctx = ctx;
  }

  /** Of a pod that fits otherwise. Null: it has what it asks for. `active`: pods that were let in, or are about to be. */
  judge(pod: Pod, active: () => ReadonlySet<string>): Refusal | 'later' | 'allocating' | null {
    const { uid, deletionTimestamp } = pod.metadata;
    if (this.ctx.ports.devicePlugins === undefined || !asksForDevices(pod)) return null;
    // Neither starts another container.
    if (isTerminal(pod.status.phase) || deletionTimestamp) return null;
    const listing = this.ctx.registry.read(view.runtimePods)?.value;
    if (listing === undefined) return 'later';
    // What runs here already keeps its place, and what it holds is in the records (trap 30); a container that starts asks.
    if (listing.pods.get(uid)?.sandboxes.length || this.given.has(uid)) return null;
    const answer = this.answers.get(uid);
    this.answers.delete(uid);
    if (answer === undefined || answer.kind === 'wait') {
      if (answer !== undefined) this.say(pod, answer.message);
      if (!this.asked.has(uid)) this.ask(pod, active());
      return 'allocating';
    }
    this.said.delete(uid);
    if (answer.kind === 'given') {
      this.given.add(uid);
      return null;
    }
    if (answer.kind === 'none') return unsupported(pod, { podGroups: true, devices: false });
    return { reason: answer.reason, message: answer.message, about: 'room' };
  }

  /** It is let in, or will not be. */
  forget(uid: string): void {
    this.answers.delete(uid);
    this.given.delete(uid);
    this.said.delete(uid);
  }

  private ask(pod: Pod, active: ReadonlySet<string>): void {
    const { registry, signal } = this.ctx;
    const { uid } = pod.metadata;
    this.asked.add(uid);
    const question = (replyTo: ReplyTo<AdmitAnswer>) => ({ type: 'devices.admit' as const, pod, active, replyTo });
    void registry.ask(devicesAddr, question, { timeoutMs: ANSWER_MS, signal }).then((answer) => {
      this.asked.delete(uid);
      if (signal.aborted) return;
      if (answer.kind === 'reply') this.answers.set(uid, answer.value);
      else this.say(pod, answer.reason);
      // One that has to wait is asked about again in its time.
      if (answer.kind === 'reply' && answer.value.kind !== 'wait') registry.send(addr.admission, { type: 'admission.look' });
    });
  }

  private say(pod: Pod, message: string): void {
    const { uid } = pod.metadata;
    if (this.said.get(uid) === message) return;
    this.said.set(uid, message);
    this.ctx.log.info({ ...podRef(pod), why: message }, 'a pod waits for devices');
  }
}
