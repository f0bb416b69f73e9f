/**
 * Asks the device manager and the CPU manager to allocate, one after the other, what a pod has alone before it is admitted. An
 * answer takes a moment, since it is on disk by then.
 */

import { devicesAddr } from '../../../machines/allocation/devices/messages.ts';
import { type AllocationAnswer, type AllocationEvent, allocationAddr } from '../../../machines/allocation/messages.ts';
import { type PodManagerEvent, podManagerAddr } from '../../../machines/pods/manager/messages.ts';
import type { AllocatorName, Out } from '../../../machines/pods/manager/records.ts';
import type { Address, ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** `timeoutMs`: for one answer; then it is asked again. Plugins may take their time, as in the reference; CPUs are written to a disk. */
const ALLOCATORS: Readonly<Record<AllocatorName, { address: Address<AllocationEvent>; timeoutMs: number }>> = {
  devices: { address: devicesAddr, timeoutMs: 600_000 },
  cpus: { address: allocationAddr.cpus, timeoutMs: 30_000 },
};

type Allocate = Extract<Out, { to: 'allocate' }>;

export class Allocators {
  private readonly ctx: ActorCtx<PodManagerEvent>;
  private readonly there: readonly Address<AllocationEvent>[];
  /** Of the question about each pod: it gives the question up. */
  private readonly open = new Map<string, AbortController>();

  constructor(ctx: ActorCtx<PodManagerEvent>, there: Readonly<Record<AllocatorName, boolean>>) {
    this.ctx = ctx;
    this.there = Object.entries(ALLOCATORS).flatMap(([name, a]) => (there[name as AllocatorName] ? [a.address] : []));
  }

  /** `active`: pods that wait to be admitted. */
  allocate({ pod, id, by }: Allocate, active: ReadonlySet<string>): void {
    const { uid } = pod.metadata;
    this.open.get(uid)?.abort(new Error('it is asked about anew'));
    const stop = new AbortController();
    this.open.set(uid, stop);
    void this.ask({ pod, active, by }, AbortSignal.any([stop.signal, this.ctx.signal])).then((answer) => {
      if (this.open.get(uid) !== stop) return;
      this.open.delete(uid);
      this.ctx.registry.send(podManagerAddr, { type: 'pods.allocated', uid, id, answer });
    });
  }

  release(uid: string): void {
    this.open.get(uid)?.abort(new Error('the pod is not let in'));
    this.open.delete(uid);
    for (const address of this.there) this.ctx.registry.send(address, { type: 'allocation.forget', uid });
  }

  /** The one that has given keeps it for this pod while the next is asked. */
  private async ask(
    { pod, active, by }: Pick<Allocate, 'pod' | 'by'> & { active: ReadonlySet<string> },
    signal: AbortSignal,
  ): Promise<AllocationAnswer> {
    for (const name of by) {
      const { address, timeoutMs } = ALLOCATORS[name];
      const question = (replyTo: ReplyTo<AllocationAnswer>) => ({ type: 'allocation.admit', pod, active, replyTo }) as const;
      const answer = await this.ctx.registry.ask(address, question, { timeoutMs, signal });
      if (answer.kind !== 'reply') return { kind: 'later', why: answer.reason };
      if (answer.value.kind !== 'granted') return answer.value;
    }
    return { kind: 'granted' };
  }
}
