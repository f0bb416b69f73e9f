/**
 * State held: the accepted status of every pod, with a version that only grows; which pods have probes.
 * Lost on restart: all of it; everything after it in this layer restarts with it.
 * Rebuilt from: workers publish again after their first inspection; what the API server shows is the status before that.
 */

import { apiAddr, apiView } from '../../../machines/api/messages.ts';
import { POD_START_SECONDS } from '../../../machines/figures/podStarts.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import { PODS_NAMED_MAX } from '../../../machines/pod/bounds.ts';
import { hasProbes } from '../../../machines/pod/probes/probes.ts';
import { resizeEvents } from '../../../machines/pod/resources/resizeEvents.ts';
import { type PodRecord, podsView } from '../../../machines/pods/manager/messages.ts';
import { deathsBetween } from '../../../machines/pods/status/deaths.ts';
import { type StatusEvent, statusesView } from '../../../machines/pods/status/messages.ts';
import { type Delivery, type StatusFacts, statusMachine, type Taken } from '../../../machines/pods/status/statusMachine.ts';
import { newEnds, terminationOf } from '../../../machines/pods/status/terminations.ts';
import { deathsAddr } from '../../../machines/reclaim/deaths/messages.ts';
import { probesAddr } from '../../../machines/services/probes/messages.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';

/** More statuses than one incarnation of this actor will ever accept. */
const VERSIONS_PER_INCARNATION = 2 ** 32;

export interface StatusOptions {
  /** The node belongs to a cluster: accepted statuses go to the API. */
  cluster: boolean;
  /** Somebody keeps what is known of each death. Absent: nobody. */
  deaths?: boolean;
}

export function statusSpec(o: StatusOptions = { cluster: false }): ActorSpec<StatusEvent> {
  return {
    type: 'actor',
    id: 'status',
    backoff: { jitter: 0.1 },
    mailbox: { capacity: PODS_NAMED_MAX },
    start: (ctx) => {
      // An empty view is a statement too: readers must not keep what an earlier incarnation said.
      ctx.publish(statusesView, new Map());
      const counts = statusMetrics(ctx.ports.metrics);
      const probed = new Set<string>();
      return {
        logic: provided(
          statusMachine,
          { actions: { deliver: (_, params) => deliver(ctx, params, { counts, probed, deaths: o.deaths === true }) } },
          () => new StatusMoment(ctx),
        ),
        // No version is given twice: a writer that sent one to the API must not mistake another for it.
        input: { cluster: o.cluster, version: (ctx.incarnation - 1) * VERSIONS_PER_INCARNATION },
      };
    },
  };
}

class StatusMoment extends LazyMoment implements StatusFacts {
  readonly #registry: Registry;

  constructor({ ports, registry }: ActorCtx<StatusEvent>) {
    super(ports);
    this.#registry = registry;
  }
  get shown(): StatusFacts['shown'] {
    return this.#registry.read(apiView.pods)?.value;
  }
  get records(): StatusFacts['records'] {
    return this.#registry.read(podsView)?.value.records;
  }
}

function statusMetrics(metrics: Metrics) {
  return {
    starts: metrics.histogram(
      'kubelet_pod_start_duration_seconds',
      'Seconds from the first sight of a pod until it runs',
      POD_START_SECONDS,
    ),
    ends: metrics.counter('kubelet_terminated_containers_total', 'Ends of containers that statuses of pods show', [
      'container_type',
      'exit_code',
      'reason',
    ]),
  };
}

interface Kept {
  counts: ReturnType<typeof statusMetrics>;
  /** Pods whose probes were looked for and that are not forgotten. */
  probed: Set<string>;
  deaths: boolean;
}

function deliver(ctx: ActorCtx<StatusEvent>, { cluster, entries, taken }: Delivery, { counts, probed, deaths }: Kept): void {
  const { uid } = taken;
  if (taken.kind === 'refused') {
    const { pod } = taken.event;
    ctx.log.warn({ pod: `${pod.namespace}/${pod.name}`, uid, why: taken.why }, 'status update refused; the earlier status stays');
  }
  if (taken.kind === 'changed' && taken.from !== taken.status.phase) {
    const { event, from, status } = taken;
    const pod = `${event.pod.namespace}/${event.pod.name}`;
    ctx.log.info({ pod, uid, from: from ?? '', to: status.phase ?? '', reason: status.reason ?? '' }, 'pod phase changed');
  }
  const changed = taken.kind === 'changed' || taken.kind === 'forgotten';
  if (changed) ctx.publish(statusesView, entries);
  if (taken.kind === 'changed') {
    if (taken.startedInMs !== null) counts.starts.observe(taken.startedInMs / 1000);
    for (const end of newEnds(taken.before, taken.status)) counts.ends.inc({ ...terminationOf(end) });
    const record = ctx.registry.read(podsView)?.value.records.get(uid);
    if (deaths && record !== undefined) tellDeaths(ctx, taken, record);
    // A static pod has its resources from its next start on.
    if (record?.source === 'api') {
      for (const event of resizeEvents(taken.before, taken.status, record.pod)) {
        ctx.registry.send(eventsAddr, { type: 'event.record', event: { type: 'Normal', ...event, pod: taken.event.pod } });
      }
    }
  }
  lookForProbes(ctx, taken, probed);
  if (cluster && changed) ctx.registry.send(apiAddr.podWriters, { type: 'pod.write', uid });
}

/** A container that ended badly or did not start, a pod that was evicted or refused. */
function tellDeaths(ctx: ActorCtx<StatusEvent>, { event, before, status }: Extract<Taken, { kind: 'changed' }>, { pod }: PodRecord): void {
  const deaths = deathsBetween(before, status, { pod, nowMs: ctx.ports.clock.wallMs(), ending: event.deleting });
  if (deaths.length > 0) ctx.registry.send(deathsAddr, { type: 'deaths.seen', deaths });
}

/** Tells the probes also when nothing changed: the pod may have begun to end, or its definition may be another. */
function lookForProbes(ctx: ActorCtx<StatusEvent>, { uid, kind }: Taken, probed: Kept['probed']): void {
  const pod = ctx.registry.read(podsView)?.value.records.get(uid)?.pod;
  if (pod !== undefined && hasProbes(pod)) probed.add(uid);
  if (!probed.has(uid)) return;
  ctx.registry.send(probesAddr, { type: 'probes.look', uid });
  if (kind === 'forgotten') probed.delete(uid);
}
