/** Calls of the runtime for one pod, by way of the link's fence. What they touched is noted for the next inspection; events are told. */

import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Container } from '../../../machines/kube/podTable.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { podRef } from '../../../machines/pod/names.ts';
import { eventFieldPath } from '../../../machines/pod/runtime/killOrder.ts';
import type { StartJob } from '../../../machines/pods/workers/container/startJob.ts';
import type { WorkerEvent } from '../../../machines/pods/workers/messages.ts';
import type { CriResult } from '../../../machines/runtime/cri/messages.ts';
import { type CriCall, type CriClient, criClient } from '../../runtime/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { Inspector } from './inspect.ts';

export interface ActsOptions {
  ctx: ActorCtx<WorkerEvent>;
  facts(): NodeFacts;
  /** When the runtime was last listed and held nothing of this pod, and that will do; null: the runtime is asked. */
  nothingAtMonoMs?(): number | null;
  /** Of each event that is told, by its reason. */
  heard?(pod: Pod, reason: string, container: string | undefined): void;
}

export class Acts {
  readonly ctx: ActorCtx<WorkerEvent>;
  readonly cri: CriClient;
  readonly inspector: Inspector;
  readonly facts: () => NodeFacts;
  readonly #heard: ActsOptions['heard'];

  constructor(o: ActsOptions) {
    this.ctx = o.ctx;
    this.facts = o.facts;
    this.#heard = o.heard;
    this.cri = criClient(o.ctx.registry);
    this.inspector = new Inspector(this.cri, o.ctx.ports, { facts: o.facts, nothingAtMonoMs: o.nothingAtMonoMs });
  }

  async one(pod: Pod, call: CriCall, signal: AbortSignal): Promise<CriResult> {
    const [result] = await this.all(pod, [call], signal);
    if (result === undefined) throw new Error(`CRI link: no result for ${call.method} of pod ${pod.metadata.uid}`);
    return result;
  }

  async all(pod: Pod, calls: readonly CriCall[], signal: AbortSignal): Promise<readonly CriResult[]> {
    if (calls.length === 0) return [];
    this.inspector.acts.begin();
    const results = await this.cri.act(pod.metadata.uid, this.ctx.incarnation, calls, { signal });
    this.inspector.acts.ended(calls, results);
    return results;
  }

  /** What was given up, as its pod ends, failed at nothing: not told. */
  startFailed({ pod, container }: StartJob, error: string, signal: AbortSignal): void {
    if (!signal.aborted) this.event(pod, 'Warning', 'Failed', `Error: ${error}`, container);
  }

  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: Pick<Container, 'name'>): void {
    this.#heard?.(pod, reason, container?.name);
    const fieldPath = container === undefined ? undefined : eventFieldPath(pod, container.name);
    this.ctx.registry.send(eventsAddr, {
      type: 'event.record',
      event: { type, reason, message, pod: podRef(pod), ...(fieldPath === undefined ? {} : { fieldPath }) },
    });
  }
}
