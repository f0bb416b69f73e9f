/** Asks the coordinator to allocate what a pod has alone before it is admitted. An answer takes a moment, since it is on disk by then. */

import { ALLOCATION_TIMEOUT_MS, type AllocationAnswer, allocationAddr } from '../../../machines/allocation/messages.ts';
import { type PodManagerEvent, podManagerAddr } from '../../../machines/pods/manager/messages.ts';
import type { Out } from '../../../machines/pods/manager/records.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

type Allocate = Extract<Out, { to: 'allocate' }>;

export class Allocators {
  private readonly ctx: ActorCtx<PodManagerEvent>;
  /** The question about each pod, by UID: aborting gives the question up. */
  private readonly open = new Map<string, AbortController>();

  constructor(ctx: ActorCtx<PodManagerEvent>) {
    this.ctx = ctx;
  }

  /** `active`: pods that wait to be admitted. */
  allocate({ pod, id }: Pick<Allocate, 'pod' | 'id'>, active: ReadonlySet<string>): void {
    const { uid } = pod.metadata;
    this.open.get(uid)?.abort(new Error('it is asked about anew'));
    const stop = new AbortController();
    this.open.set(uid, stop);
    const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', pod, active, replyTo }) as const;
    const signal = AbortSignal.any([stop.signal, this.ctx.signal]);
    void this.ctx.registry.ask(allocationAddr, question, { timeoutMs: ALLOCATION_TIMEOUT_MS, signal }).then((asked) => {
      if (this.open.get(uid) !== stop) return;
      this.open.delete(uid);
      const answer: AllocationAnswer = asked.kind === 'reply' ? asked.value : { kind: 'later', why: asked.reason };
      this.ctx.registry.send(podManagerAddr, { type: 'pods.allocated', uid, id, answer });
    });
  }

  release(uid: string): void {
    this.open.get(uid)?.abort(new Error('the pod is not let in'));
    this.open.delete(uid);
    this.ctx.registry.send(allocationAddr, { type: 'allocation.forget', uid });
  }
}
