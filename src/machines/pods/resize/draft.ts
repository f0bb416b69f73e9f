/** Which resources pods of the API are granted, and whose change of them waits, while the pod manager handles one event. Pure. */

import { type Draft, SharedMap } from '../../data/sharedMap.ts';
import type { Pod, PodStatus, ResizePending } from '../../kube/types.ts';
import { isOfApi, isTerminal } from '../../pod/phase.ts';
import { rememberedRequest } from '../../pod/resources/requests.ts';
import { missingForUpdate } from '../admission/ability/declaredFeatures.ts';
import { isRefused, isWanted } from '../manager/messages.ts';
import type { Facts, Out, Rec } from '../manager/records.ts';
import {
  type Allocation,
  allocatedPod,
  allocationOf,
  type Held,
  isGranted,
  isInForce,
  isWorthKeeping,
  judgeResize,
  largerOf,
  type Resizes,
  resizeOrder,
  shownAllocation,
  type WaitingResize,
} from './allocation.ts';
import { askedChanges } from './counted.ts';

/** What is asked of the pod manager's draft. */
export interface ResizeHost {
  readonly facts: Facts;
  readonly out: Out[];
  record(uid: string): Rec | undefined;
  /** Every source has delivered, and what it named was judged. */
  heard(): boolean;
  /** Pods that hold room, without this one. */
  others(pod: Pod): readonly Pod[];
}

export class ResizeDraft {
  private readonly host: ResizeHost;
  private readonly allocations: Draft<string, Allocation>;
  private readonly waiting: Map<string, WaitingResize>;
  private readonly held: Map<string, Held>;
  private changed: boolean;

  constructor({ allocations, unsaved, waiting, held }: Resizes, host: ResizeHost) {
    this.changed = unsaved;
    this.host = host;
    this.allocations = SharedMap.draft(allocations);
    this.waiting = new Map(waiting);
    this.held = new Map(held);
    const statuses = this.held.size === 0 ? undefined : host.facts.statuses;
    for (const uid of held.keys()) {
      const allocation = allocations.get(uid);
      const status = statuses?.get(uid)?.status;
      if (allocation !== undefined && (status === undefined || !isInForce(status, allocation))) continue;
      this.held.delete(uid);
      this.changed = true;
    }
  }

  /** `isKnown`: a source names it. What no source names any more goes. */
  finish(isKnown: (uid: string) => boolean): Resizes {
    const heard = this.host.heard();
    if (heard) for (const uid of [...this.allocations.keys()]) if (!isKnown(uid)) this.forget(uid);
    const allocations = this.allocations.finish();
    const { waiting, held } = this;
    // Before that, what was written is not known of in full: only the pod itself says what else it has.
    if (this.changed && heard) this.host.out.push({ to: 'allocations', allocations, held });
    return { allocations, unsaved: this.changed && !heard, waiting, held };
  }

  counted(pod: Pod): Pod {
    return this.held.get(pod.metadata.uid)?.pod ?? pod;
  }

  /** What is known to be granted in place of what is asked for; decides nothing. */
  form(pod: Pod): Pod {
    const { uid } = pod.metadata;
    const allocation = isOfApi(pod) ? this.allocations.get(uid) : undefined;
    if (allocation === undefined || isGranted(pod, allocation)) return pod;
    const pending = this.waiting.get(uid)?.pending;
    return { ...allocatedPod(pod, allocation), ...(pending === undefined ? {} : { resize: pending }) };
  }

  /** A pod that is admitted, or has changed: with what it is granted. */
  take(pod: Pod): Pod {
    // Of others what they ask for: a kubelet that gets the node back changes those of which it finds nothing.
    if (!isOfApi(pod)) {
      this.grant(pod);
      return pod;
    }
    const { uid } = pod.metadata;
    if (isTerminal(pod.status.phase) || pod.metadata.deletionTimestamp) {
      this.giveUp(uid);
      return this.form(pod);
    }
    this.count(pod);
    const before = this.allocations.get(uid) ?? this.shown(uid) ?? shownAllocation(pod);
    if (before === undefined || isGranted(pod, before)) {
      this.grant(pod);
      return pod;
    }
    // After a restart of the daemon not every pod that holds room is known yet. The last verdict stands until then.
    if (!this.host.heard()) {
      this.keep(uid, before);
      this.wait(pod, this.waiting.get(uid) ?? shownBefore(pod.status));
      return this.form(pod);
    }
    return this.decide(pod, before, 'pod_updated');
  }

  /** Waiting changes that may be granted now, or wait for another reason. */
  retry(): Pod[] {
    if (!this.host.heard()) return [];
    const found: Pod[] = [];
    for (const { pod, pending } of [...this.waiting.values()].sort(resizeOrder)) {
      const { uid } = pod.metadata;
      const before = this.allocations.get(uid);
      const record = this.host.record(uid);
      if (before === undefined || record === undefined || !isWanted(record) || isRefused(record) || isTerminal(record.pod.status.phase)) {
        this.giveUp(uid);
        continue;
      }
      // The status was the newest when it was asked for, and is not any more: everything else of the pod is.
      const decided = this.decide({ ...pod, status: record.pod.status }, before, 'periodic_retry');
      if (decided.resize?.message !== pending.message || decided.resize.reason !== pending.reason) found.push(decided);
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

  /** What is asked for now and was not before. */
  private count(pod: Pod): void {
    const { uid } = pod.metadata;
    const record = this.host.record(uid);
    const asked = this.waiting.get(uid)?.pod ?? (record === undefined || !isWanted(record) ? undefined : record.pod);
    if (asked === undefined) return;
    const changes = askedChanges(asked, pod);
    if (changes.length > 0) this.host.out.push({ to: 'resizeAsked', changes });
    const { declaredFeatures } = this.host.facts.offer.ability;
    const features = declaredFeatures === undefined ? [] : missingForUpdate(asked, pod, declaredFeatures);
    if (features.length > 0) this.host.out.push({ to: 'featuresMissing', pod, features });
  }

  private decide(pod: Pod, before: Allocation, trigger: 'periodic_retry' | 'pod_updated'): Pod {
    const { uid } = pod.metadata;
    const { allocatable, fixed } = this.host.facts.offer;
    const verdict = judgeResize({
      ...{ pod, allocation: before, others: this.host.others(pod) },
      ...{ allocatable, requests: rememberedRequest, fixed },
    });
    if (verdict.kind === 'granted') {
      if (this.waiting.get(uid)?.pending.reason === 'Deferred') this.host.out.push({ to: 'resizeAccepted', trigger });
      this.held.set(uid, { before, pod: largerOf(pod, before) });
      this.grant(pod);
      return pod;
    }
    this.keep(uid, before);
    const { pending } = verdict;
    const said = saying(pending.reason, pod.metadata.generation);
    const isNews = this.waiting.get(uid)?.said !== said;
    this.wait(pod, { pending, said });
    if (isNews) this.host.out.push({ to: 'resizePending', pod, pending });
    return this.form(pod);
  }

  private grant(pod: Pod): void {
    const { uid } = pod.metadata;
    this.waiting.delete(uid);
    const allocation = allocationOf(pod);
    const before = this.allocations.get(uid);
    if (before === undefined && !isWorthKeeping(allocation)) return;
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(allocation)) return;
    this.keep(uid, allocation);
  }

  private keep(uid: string, allocation: Allocation): void {
    if (this.allocations.get(uid) === allocation) return;
    this.allocations.set(uid, allocation);
    this.changed = true;
  }

  private wait(pod: Pod, { pending, said }: Pick<WaitingResize, 'pending' | 'said'>): void {
    const { uid } = pod.metadata;
    this.waiting.set(uid, { pod, pending, said, sinceMonoMs: this.waiting.get(uid)?.sinceMonoMs ?? this.host.facts.monoMs });
  }

  /** What the API shows for a known pod without an allocation: it asked for nothing, or what was granted could not be read. */
  private shown(uid: string): Allocation | undefined {
    const record = this.host.record(uid);
    return record === undefined || !isWanted(record) || isRefused(record) ? undefined : allocationOf(record.pod);
  }
}

/** An event says each reason once for each change: the numbers in its message change with every pod that comes or goes. */
function saying(reason: ResizePending['reason'], generation: number | undefined): string {
  return `${reason} ${generation ?? 0}`;
}

/** What the API shows was said by an earlier daemon. */
function shownBefore({ conditions = [] }: PodStatus): Pick<WaitingResize, 'pending' | 'said'> {
  const shown = conditions.find((c) => c.type === 'PodResizePending');
  const reason = shown?.reason === 'Infeasible' ? 'Infeasible' : 'Deferred';
  const message = shown?.message ?? 'every source of pods is heard before room is given away';
  return { pending: { reason, message }, said: shown === undefined ? '' : saying(reason, shown.observedGeneration) };
}
