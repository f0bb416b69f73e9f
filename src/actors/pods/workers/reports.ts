/** What a worker tells of its pod: the status to the status manager, a summary of itself to the pod manager. */

import { sameData } from '../../../machines/data/sameData.ts';
import { podRef } from '../../../machines/pod/names.ts';
import { podManagerAddr, podsView } from '../../../machines/pods/manager/messages.ts';
import { restartableNames } from '../../../machines/pods/status/manager.ts';
import { statusAddr, statusesView } from '../../../machines/pods/status/messages.ts';
import type { WorkerContext, WorkerReport } from '../../../machines/pods/workers/context.ts';
import type { WorkerEvent } from '../../../machines/pods/workers/messages.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** The same is not sent twice, unless the view of its receiver shows nothing of the pod. */
class Sent {
  #last: unknown;

  /** Sent by the worker before. */
  was(last: object): void {
    this.#last = last;
  }

  isNew(now: object, shown: unknown): boolean {
    if (shown !== null && shown !== undefined && sameData(this.#last, now)) return false;
    this.#last = now;
    return true;
  }
}

export class Reports {
  readonly #ctx: ActorCtx<WorkerEvent>;
  /** The pod manager's count of this UID's lives. */
  readonly #life: number;
  readonly #status = new Sent();
  readonly #report = new Sent();

  constructor(ctx: ActorCtx<WorkerEvent>, life: number) {
    this.#ctx = ctx;
    this.#life = life;
  }

  /** Of a worker that slept: it had told all of this. */
  resume({ pod, apiStatus: status }: WorkerContext): void {
    this.#status.was({ pod, status, deleting: false, stopped: false, finished: false });
    const worker = this.#ctx.registry.read(podsView)?.value.records.get(this.#ctx.id)?.worker;
    if (worker == null) return;
    const { sinceMs: _, ...told } = worker;
    this.#report.was(told);
  }

  publish(context: WorkerContext, finished: boolean): void {
    const { pod, apiStatus: status, end } = context;
    const { stopped } = end;
    const deleting = end.kill !== null;
    if (context.runtimeOnly || status === undefined) return;
    const { registry, id } = this.#ctx;
    if (!this.#status.isNew({ pod, status, deleting, stopped, finished }, registry.read(statusesView)?.value.get(id))) return;
    registry.send(statusAddr, {
      type: 'status.set',
      pod: podRef(pod),
      life: this.#life,
      status,
      restartPolicy: pod.spec.restartPolicy ?? 'Always',
      deleting,
      restartable: [...restartableNames(pod)],
      stopped,
      finished,
    });
  }

  report(report: WorkerReport): void {
    const { registry, id, ports } = this.#ctx;
    if (!this.#report.isNew(report, registry.read(podsView)?.value.records.get(id)?.worker)) return;
    const state = { ...report, sinceMs: ports.clock.wallMs() };
    registry.send(podManagerAddr, { type: 'worker.state', uid: id, life: this.#life, state });
  }
}
