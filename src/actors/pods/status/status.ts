/**
 * State held: the accepted status of every pod, with a version that only grows.
 * Lost on restart: all of it; everything after it in this layer restarts with it.
 * Rebuilt from: workers publish again after their first inspection. (The writer to the API comes with the api layer.)
 */
import { assign, setup } from 'xstate';
import { storeStatus } from '../../../machines/pods/status/manager.ts';
import { addr, type StatusEntry, type StatusEvent, view } from '../../../machines/protocol.ts';
import type { ActorCtx, ActorSpec } from '../../kernel/types.ts';

interface Context {
  entries: ReadonlyMap<string, StatusEntry>;
}

const statusMachine = setup({
  types: { context: {} as Context, events: {} as StatusEvent },
  actions: {
    take: assign((_, _p: { event: StatusEvent }): Partial<Context> => ({})),
  },
}).createMachine({
  id: 'status',
  context: { entries: new Map() },
  initial: 'standalone',
  on: {
    'status.set': { actions: { type: 'take', params: ({ event }) => ({ event }) } },
    'status.forget': { actions: { type: 'take', params: ({ event }) => ({ event }) } },
  },
  states: { standalone: { meta: { reason: 'Standalone', message: 'statuses are kept here and written nowhere' } } },
});

export function statusSpec(): ActorSpec<StatusEvent> {
  return {
    type: 'actor',
    id: 'status',
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 },
    mailbox: { capacity: 8_192 },
    start: (ctx) => {
      // An empty view is a statement too: readers must not keep what an earlier incarnation said.
      ctx.publish(view.statuses, new Map());
      return {
        logic: statusMachine.provide({
          actions: {
            take: assign(({ context }, { event }: { event: StatusEvent }) => {
              const next = take(ctx, context, event);
              // Said also when nothing changed: the pod may have begun to end, or its definition may be another.
              const uid = event.type === 'status.forget' ? event.uid : event.pod.uid;
              ctx.registry.send(addr.probes, { type: 'probes.look', uid });
              return next;
            }),
          },
        }),
      };
    },
  };
}

function take(ctx: ActorCtx<StatusEvent>, context: Context, event: StatusEvent): Partial<Context> {
  const entries = new Map(context.entries);
  if (event.type === 'status.forget') {
    if (!entries.delete(event.uid)) return {};
  } else {
    const old = entries.get(event.pod.uid);
    const finished = event.finished === true;
    const verdict = storeStatus({
      old: old?.status,
      next: event.status,
      restartPolicy: event.restartPolicy,
      sidecars: new Set(event.sidecars ?? []),
      cached: old !== undefined,
      nowWallMs: ctx.ports.clock.wallMs(),
      force: finished && old?.finished !== true,
    });
    if (verdict.kind === 'refused') {
      ctx.log.warn(
        { pod: `${event.pod.namespace}/${event.pod.name}`, uid: event.pod.uid, why: verdict.why },
        'status update refused; the earlier status stays',
      );
      return {};
    }
    if (verdict.kind === 'unchanged') return {};
    const before = old?.status.phase;
    if (before !== verdict.status.phase) {
      ctx.log.info(
        {
          pod: `${event.pod.namespace}/${event.pod.name}`,
          uid: event.pod.uid,
          from: before ?? '',
          to: verdict.status.phase ?? '',
          reason: verdict.status.reason ?? '',
        },
        'pod phase changed',
      );
    }
    entries.set(event.pod.uid, { status: verdict.status, version: (old?.version ?? 0) + 1, finished });
  }
  ctx.publish(view.statuses, entries);
  return { entries };
}
