/**
 * State held: the node's recent events with their counts, and since when each pod with events has been gone.
 * Lost on restart: nothing that was published; the gone-since times begin anew (events stay a little longer).
 * Rebuilt from: the last published view.events.
 */

import { fromCallback } from 'xstate';
import { apiAddr } from '../../machines/api/messages.ts';
import { createEventLog, EVENT_LOG_LIMITS, type EventLogLimits } from '../../machines/foundation/eventLog.ts';
import { type EventsEvent, eventsAddr, eventsView, type RecordedEvent } from '../../machines/foundation/messages.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';

export interface TelemetryOptions {
  /** The node belongs to a cluster: events go to the API too. Default false. */
  cluster?: boolean;
  limits?: EventLogLimits;
  /** How long the events of a pod that is gone stay readable. Default 10 minutes. */
  goneMs?: number;
  /** How often gone pods are looked for. Default 1 minute. */
  sweepMs?: number;
}

/** The actor behind `addr.events`: keeps, counts, publishes (`view.events`, latest last) and logs events. */
export function telemetrySpec(opts: TelemetryOptions = {}): ActorSpec<EventsEvent> {
  return {
    type: 'actor',
    id: eventsAddr.path.split('/').at(-1) ?? 'telemetry',
    shutdownMs: 1000,
    backoff: { minMs: 100 },
    // Telemetry may lose the oldest of a storm; nobody waits for it.
    mailbox: { capacity: 4096, overflow: 'drop-oldest' },
    start: (ctx) => ({ logic: telemetryLogic(ctx, opts) }),
  };
}

function telemetryLogic(ctx: ActorCtx<EventsEvent>, opts: TelemetryOptions) {
  const { clock } = ctx.ports;
  const goneMs = opts.goneMs ?? 600_000;
  const sweepMs = opts.sweepMs ?? 60_000;
  return fromCallback<EventsEvent>(({ receive }) => {
    const log = createEventLog(opts.limits ?? EVENT_LOG_LIMITS, ctx.registry.read(eventsView)?.value);
    const goneSince = new Map<string, number>();
    let publishing = false;
    let stopped = false;
    let unwritten: RecordedEvent[] = [];

    // Many events of one burst become one publish and one message: the array is copied once per turn, not once per event.
    const publishSoon = () => {
      if (publishing) return;
      publishing = true;
      ctx.ports.yield.defer(() => {
        publishing = false;
        if (stopped) return;
        ctx.publish(eventsView, log.list());
        if (unwritten.length > 0) ctx.registry.send(apiAddr.events, { type: 'event.write', events: unwritten });
        unwritten = [];
      });
    };
    const sweep = () => {
      if (forgetGone(ctx, { log, goneSince, goneMs })) publishSoon();
      timer = clock.setTimeout(sweep, sweepMs);
    };
    let timer = clock.setTimeout(sweep, sweepMs);

    receive((message) => {
      if (message.type !== 'event.record') return;
      const { event, repeated } = log.record(message.event, clock.wallMs());
      if (!repeated) say(ctx, event);
      if (opts.cluster === true) unwritten.push(event);
      publishSoon();
    });
    return () => {
      stopped = true;
      clock.clearTimeout(timer);
    };
  });
}

/**
 * A pod's Normal events are logged for debugging only, for a crash loop would drown the log with them; a Warning is news about the
 * pod, not a fault of the node, so info.
 */
function say(ctx: ActorCtx<EventsEvent>, event: RecordedEvent): void {
  const fields = {
    reason: event.reason,
    ...(event.pod === undefined ? {} : { uid: event.pod.uid, pod: `${event.pod.namespace}/${event.pod.name}` }),
    ...(event.fieldPath === undefined ? {} : { fieldPath: event.fieldPath }),
  };
  const ofPod = event.pod !== undefined;
  if (event.type === 'Warning') ctx.log[ofPod ? 'info' : 'warn'](fields, event.message);
  else ctx.log[ofPod ? 'debug' : 'info'](fields, event.message);
}

/** Forgets pods that have been out of view.pods for `goneMs`; says whether any went. */
function forgetGone(
  ctx: ActorCtx<EventsEvent>,
  o: { log: ReturnType<typeof createEventLog>; goneSince: Map<string, number>; goneMs: number },
): boolean {
  const pods = ctx.registry.read(podsView)?.value;
  // Before the sources have spoken nobody knows which pods are gone.
  if (pods === undefined || !pods.sourcesReady) return false;
  const nowMs = ctx.ports.clock.monoMs();
  let any = false;
  const withEvents = new Set(o.log.pods());
  for (const uid of withEvents) {
    if (pods.records.has(uid)) {
      o.goneSince.delete(uid);
      continue;
    }
    const since = o.goneSince.get(uid) ?? nowMs;
    o.goneSince.set(uid, since);
    if (nowMs - since < o.goneMs) continue;
    o.log.forget(uid);
    o.goneSince.delete(uid);
    any = true;
  }
  for (const uid of o.goneSince.keys()) if (!withEvents.has(uid)) o.goneSince.delete(uid);
  return any;
}
