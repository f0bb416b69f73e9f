/**
 * Writes the node's events to the API.
 *
 * State held: events that wait, which were written before, how many each object has had.
 * Lost on restart: all of it; a repeat then becomes an event of its own. What waited is lost: events are told once.
 * Rebuilt from: nothing.
 */
import { fromPromise } from 'xstate';
import { EVENTS_WAITING_MAX, EventCorrelator, eventObject, eventPatch } from '../../machines/api/eventCorrelator.ts';
import { type EventOutcome, type EventWriterFacts, eventWriterMachine } from '../../machines/api/eventWriterMachine.ts';
import type { EventWriterEvent } from '../../machines/api/messages.ts';
import { failureText, isRefusal, type KubeRequest, kubePath } from '../../machines/kube/request.ts';
import { runtimeBusy } from '../../machines/runtime/cri/messages.ts';
import { LazyMoment } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { kubeClient } from './client.ts';

/** With more than so many none waits for anybody: beyond the correlator's room events are lost. */
const EVENTS_KEPT_BACK_MAX = EVENTS_WAITING_MAX / 2;
/** In a row: then it is looked whether they are to wait for pods. */
const SENT_IN_A_ROW_MAX = 16;

export function eventWriterSpec(o: { nodeName: string }): ActorSpec<EventWriterEvent> {
  return {
    type: 'actor',
    id: 'events',
    mailbox: { capacity: 4_096, overflow: 'drop-oldest', lane: (e) => (e.type === 'api.found' ? 'control' : 'data') },
    start: (ctx) => writer(ctx, o),
  };
}

function writer(ctx: ActorCtx<EventWriterEvent>, o: { nodeName: string }) {
  const { clock, metrics } = ctx.ports;
  const client = kubeClient(ctx);
  const correlator = new EventCorrelator(o.nodeName);
  const dropped = metrics.counter('actorlet_events_dropped_total', 'Events that never reached the API server.');
  let counted = 0;
  const count = (): void => {
    if (correlator.dropped > counted) dropped.inc({}, correlator.dropped - counted);
    counted = correlator.dropped;
  };

  const sendOne = async (signal: AbortSignal): Promise<EventOutcome> => {
    const pending = correlator.next();
    if (pending === null) return 'settled';
    const { namespace, name } = pending;
    const request: KubeRequest = pending.exists
      ? { verb: 'PATCH', path: kubePath.event(namespace, name), body: eventPatch(pending), patchType: 'strategic' }
      : { verb: 'POST', path: kubePath.eventsIn(namespace), body: eventObject(pending, o.nodeName) };
    const result = await client.request(request, { class: 'event', signal });
    if (result.ok || result.failure.reason === 'AlreadyExists') correlator.done(pending);
    else if (pending.exists && result.failure.code === 404) correlator.recreate(pending);
    else if (isRefusal(result.failure)) {
      // A namespace that is going away takes no more events; nobody will read them there.
      ctx.log.debug({ reason: pending.event.reason }, `${failureText(request, result.failure)}; the event is dropped`);
      correlator.drop(pending);
    } else return 'again';
    count();
    return 'settled';
  };
  const send = async (signal: AbortSignal): Promise<EventOutcome> => {
    for (let sent = 0; sent < SENT_IN_A_ROW_MAX && correlator.size > 0; sent++) {
      // What does not arrive after others is tried on its own.
      if ((await sendOne(signal)) === 'again') return sent === 0 ? 'again' : 'settled';
    }
    return 'settled';
  };
  class EventWriterMoment extends LazyMoment implements EventWriterFacts {
    get waiting(): boolean {
      return correlator.size > 0;
    }
    get busy(): boolean {
      return correlator.size < EVENTS_KEPT_BACK_MAX && ctx.registry.read(runtimeBusy)?.value === true;
    }
  }
  const logic = provided(
    eventWriterMachine,
    {
      actors: { send: fromPromise<EventOutcome>(({ signal }) => send(signal)) },
      actions: {
        keep: (_, { events }) => {
          for (const each of events) correlator.take(each, { wallMs: clock.wallMs(), monoMs: clock.monoMs() });
          count();
        },
        giveUp: () => {
          const pending = correlator.next();
          if (pending !== null) correlator.drop(pending);
          count();
        },
      },
    },
    () => new EventWriterMoment(ctx.ports),
  );
  return { logic };
}
