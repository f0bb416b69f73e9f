/** Sends what a step of the pod manager asks for. */

import { TOPOLOGY_REQUESTS } from '../../../machines/allocation/coordinator/messages.ts';
import { apiAddr } from '../../../machines/api/messages.ts';
import { ACTUATED, ALLOCATED, checkpointAddr, eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { fullName, podRef } from '../../../machines/pod/names.ts';
import { RESIZABLE } from '../../../machines/pod/resources/amounts.ts';
import { resizeMessage } from '../../../machines/pod/resources/resizeEvents.ts';
import { missingFeaturesText } from '../../../machines/pods/admission/ability/declaredFeatures.ts';
import { PREEMPTING, PREEMPTING_MESSAGE } from '../../../machines/pods/admission/preemption.ts';
import type { PodManagerEvent } from '../../../machines/pods/manager/messages.ts';
import type { Out, PodLedger } from '../../../machines/pods/manager/records.ts';
import { MANAGERS, type WrittenPod, writtenPod } from '../../../machines/pods/resize/allocation.ts';
import { statusAddr } from '../../../machines/pods/status/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { containerGcAddr, housekeepingAddr } from '../../../machines/reclaim/messages.ts';
import { plegAddr } from '../../../machines/runtime/pleg/messages.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { Allocators } from './allocators.ts';

export class Delivery {
  private readonly ctx: ActorCtx<PodManagerEvent>;
  private readonly allocators: Allocators;
  private readonly counts: ReturnType<typeof countsOf>;
  private active: { of: PodLedger['candidates']; uids: ReadonlySet<string> } | null = null;

  constructor(ctx: ActorCtx<PodManagerEvent>) {
    this.ctx = ctx;
    this.allocators = new Allocators(ctx);
    this.counts = countsOf(ctx.ports.metrics);
  }

  send(out: Out, ledger: PodLedger): void {
    const { registry, log } = this.ctx;
    switch (out.to) {
      case 'worker':
        registry.send(workersAddr, out.event);
        break;
      case 'forget':
        registry.send(statusAddr, { type: 'status.forget', uid: out.uid, life: out.life });
        // Its UID begins another life.
        if (ledger.records.get(out.uid)?.renewed === true) {
          this.counts.restarted.inc({ static: ledger.records.get(out.uid)?.source === 'api' ? '' : 'true' });
        }
        break;
      case 'rejected':
        this.reject(out);
        break;
      case 'unallocated':
        this.counts.unallocated.inc();
        break;
      case 'refused':
        this.counts.refused.inc({ reason: countedReason(out.reason) });
        this.warn(out.pod, out.reason, out.message);
        break;
      case 'held':
        this.warn(out.pod, out.reason, out.message);
        break;
      case 'fieldsLeft':
        registry.send(eventsAddr, {
          type: 'event.record',
          event: { type: 'Normal', reason: 'FieldsLeftAlone', message: fieldsLeft(out.fields), pod: podRef(out.pod) },
        });
        break;
      case 'leftAlone':
        log.error({ ...podRef(out.pod), err: out.error }, 'this node failed over a pod: it is left as it is, until its definition changes');
        this.warn(out.pod, 'SetAside', `this node failed over it, and leaves it as it is until its definition changes: ${out.error}`);
        break;
      case 'preempted':
        this.counts.preempted.inc({ preemption_signal: out.resource });
        log.warn({ ...podRef(out.pod), for: fullName(out.for), resource: out.resource }, 'ending a pod to make room for a critical one');
        this.warn(out.pod, PREEMPTING, PREEMPTING_MESSAGE);
        break;
      case 'resizePending':
        this.refuseResize(out);
        break;
      case 'resizeAsked':
        for (const change of out.changes) this.counts.resizes.inc({ ...change });
        break;
      case 'featuresMissing':
        this.warn(out.pod, 'FailedNodeDeclaredFeaturesCheck', missingFeaturesText(out.features));
        break;
      case 'resizeAccepted':
        this.counts.accepted.inc({ retry_trigger: out.trigger });
        break;
      case 'allocations':
        this.writeDown(out, ledger);
        break;
      case 'allocate':
        this.allocators.allocate(out, this.activeOf(ledger));
        break;
      case 'release':
        this.allocators.release(out.uid);
        break;
      case 'log':
        log[out.level]({ ...podRef(out.pod), ...out.more }, out.message);
        break;
      default:
        this.wake(out);
    }
  }

  private writeDown({ allocations, held }: Extract<Out, { to: 'allocations' }>, { records, candidates }: PodLedger): void {
    const allocated: [string, WrittenPod][] = [];
    const actuated: [string, WrittenPod][] = [];
    for (const [uid, allocation] of [...allocations].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const pod = records.get(uid)?.pod ?? candidates.get(uid)?.pod;
      if (pod === undefined) continue;
      const before = held.get(uid)?.before;
      const written = writtenPod(pod, allocation);
      allocated.push([uid, written]);
      actuated.push([uid, before === undefined ? written : writtenPod(pod, before)]);
    }
    for (const [name, entries] of [[ALLOCATED, allocated] as const, [ACTUATED, actuated] as const])
      this.ctx.registry.send(checkpointAddr, { type: 'checkpoint.put', name, value: { entries: Object.fromEntries(entries) } });
  }

  private reject({ pod, life, reason, message }: Extract<Out, { to: 'rejected' }>): void {
    const { generation } = pod.metadata;
    this.ctx.registry.send(statusAddr, {
      ...{ type: 'status.set', pod: podRef(pod), life, restartPolicy: pod.spec.restartPolicy ?? 'Always' },
      deleting: false,
      finished: true,
      status: {
        ...(generation === undefined ? {} : { observedGeneration: generation }),
        ...{ phase: 'Failed', reason, message: `Pod was rejected: ${message}` },
      },
    });
  }

  private refuseResize({ pod, pending: { reason, message } }: Extract<Out, { to: 'resizePending' }>): void {
    this.ctx.log.info({ ...podRef(pod), reason }, `a change of resources is not granted: ${message}`);
    this.warn(pod, `Resize${reason}`, resizeMessage(reason, pod, { error: message }));
    const manager = RESIZABLE.find((r) => reason === 'Infeasible' && message.endsWith(MANAGERS[r]));
    if (manager !== undefined) this.counts.infeasible.inc({ reason_detail: `guaranteed_pod_${manager}_manager_static_policy` });
  }

  private wake({ to, why }: Extract<Out, { why: string }>): void {
    const { registry } = this.ctx;
    if (to === 'gc') registry.send(containerGcAddr, { type: 'gc.run', why });
    else if (to === 'housekeep') registry.send(housekeepingAddr, { type: 'housekeeping.run', why });
    else if (to === 'relist') registry.send(plegAddr, { type: 'pleg.relist', why });
    else registry.send(apiAddr.nodeStatus, { type: 'node.report', why });
  }

  private warn(pod: Pod, reason: string, message: string): void {
    this.ctx.registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason, message, pod: podRef(pod) } });
  }

  /** Pods that wait to be admitted: what is allocated to one of them is given to no other. */
  private activeOf({ candidates }: PodLedger): ReadonlySet<string> {
    if (this.active?.of !== candidates) this.active = { of: candidates, uids: new Set(candidates.keys()) };
    return this.active.uids;
  }
}

/** Message of the event `FieldsLeftAlone`. The list of fields is bounded already. */
function fieldsLeft(fields: readonly string[]): string {
  return `this node runs the pod without what has no effect here: ${fields.join(', ')}`;
}

/** Names of extended resources are many, so they count together, as in the reference. */
function countedReason(reason: string): string {
  return /^OutOf(?!(?:cpu|memory|ephemeral-storage|pods)$)/.test(reason) ? 'OutOfExtendedResources' : reason;
}

function countsOf(metrics: Metrics) {
  return {
    restarted: metrics.counter(
      'kubelet_restarted_pods_total',
      'Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them.',
      ['static'],
    ),
    refused: metrics.counter('kubelet_admission_rejections_total', 'Pods that admission refused, by reason.', ['reason']),
    preempted: metrics.counter('kubelet_preemptions', 'Pods that made room for critical ones, by what there was too little of', [
      'preemption_signal',
    ]),
    // The coordinator counts those that it is asked about.
    unallocated: metrics.counter(TOPOLOGY_REQUESTS.name, TOPOLOGY_REQUESTS.help),
    resizes: metrics.counter(
      'kubelet_container_requested_resizes_total',
      'Changes of resources of containers that were asked for: each resource, requests and limits for themselves',
      ['resource', 'requirement', 'operation'],
    ),
    accepted: metrics.counter(
      'kubelet_pod_deferred_accepted_resizes_total',
      'Changes of resources that were granted after they had to wait, by why they were looked at again',
      ['retry_trigger'],
    ),
    infeasible: metrics.counter(
      'kubelet_pod_infeasible_resizes_total',
      'Changes of resources that a manager of this node never grants, by manager',
      ['reason_detail'],
    ),
  };
}
