/**
 * State held: the accepted status of every pod, with a version that only grows.
 * Lost on restart: all of it; everything after it in this layer restarts with it.
 * Rebuilt from: workers publish again after their first inspection; what the API server shows is the status before that.
 */
import { assign, setup } from 'xstate';
import { apiAddr, apiView } from '../../../machines/api/messages.ts';
import { mirrorOf } from '../../../machines/api/podWriterDecide.ts';
import type { PodStatus } from '../../../machines/k8s.ts';
import { goesOn } from '../../../machines/pods/manager/lives.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../../machines/pods/sources/decode.ts';
import { isTerminal } from '../../../machines/pods/status/generate.ts';
import { storeStatus } from '../../../machines/pods/status/manager.ts';
import { POD_START_SECONDS } from '../../../machines/pods/status/startup.ts';
import { addr, type StatusEntry, type StatusEvent, view } from '../../../machines/protocol.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

interface Context {
  entries: ReadonlyMap<string, StatusEntry>;
}

const statusMachine = setup({
  types: { context: {} as Context, events: {} as StatusEvent },
  actions: {
    take: assign((_, _p: { event: StatusEvent }): Partial<Context> => ({})),
  },
  guards: { member: () => false },
}).createMachine({
  id: 'status',
  context: { entries: new Map() },
  initial: 'choosing',
  on: {
    'status.set': { actions: { type: 'take', params: ({ event }) => ({ event }) } },
    'status.forget': { actions: { type: 'take', params: ({ event }) => ({ event }) } },
  },
  states: {
    choosing: { always: [{ guard: 'member', target: 'member' }, { target: 'standalone' }] },
    standalone: { meta: { reason: 'Standalone', message: 'statuses are kept here and written nowhere' } },
    member: { meta: { reason: 'Member', message: 'statuses are kept here and handed to the writers of the API' } },
  },
});

/** More statuses than one incarnation of this actor will ever accept. */
const VERSIONS_PER_INCARNATION = 2 ** 32;

export interface StatusOptions {
  /** The node belongs to a cluster: accepted statuses go to the API. */
  cluster: boolean;
}

export function statusSpec(o: StatusOptions = { cluster: false }): ActorSpec<StatusEvent> {
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
      // Never given twice: whoever wrote one to the API must not take another of the same number for it.
      let version = (ctx.incarnation - 1) * VERSIONS_PER_INCARNATION;
      const nextVersion = () => ++version;
      const starts = ctx.ports.metrics.histogram(
        'kubelet_pod_start_duration_seconds',
        'Seconds from the first sight of a pod until it runs',
        POD_START_SECONDS,
      );
      return {
        logic: statusMachine.provide({
          guards: { member: () => o.cluster },
          actions: {
            take: assign(({ context }, { event }: { event: StatusEvent }) => {
              const next = take(ctx, { context, event, nextVersion });
              const sinceMs = beganToRun(ctx, { before: context.entries, after: next.entries, event });
              if (sinceMs !== null) starts.observe(Math.max(0, ctx.ports.clock.wallMs() - sinceMs) / 1000);
              // Said also when nothing changed: the pod may have begun to end, or its definition may be another.
              const uid = event.type === 'status.forget' ? event.uid : event.pod.uid;
              ctx.registry.send(addr.probes, { type: 'probes.look', uid });
              if (o.cluster && next.entries !== undefined) ctx.registry.send(apiAddr.podWriters, { type: 'pod.write', uid });
              return next;
            }),
          },
        }),
      };
    },
  };
}

/** When the pod was first seen that this says to run for the first time; null for every other word. */
function beganToRun(
  ctx: ActorCtx<StatusEvent>,
  o: { before: Context['entries']; after: Context['entries'] | undefined; event: StatusEvent },
): number | null {
  if (o.after === undefined || o.event.type !== 'status.set') return null;
  const { uid } = o.event.pod;
  if (o.before.get(uid)?.status.phase !== 'Pending' || o.after.get(uid)?.status.phase !== 'Running') return null;
  return ctx.registry.read(view.pods)?.value.records.get(uid)?.seenAtMs ?? null;
}

function take(ctx: ActorCtx<StatusEvent>, o: { context: Context; event: StatusEvent; nextVersion(): number }): Partial<Context> {
  const { context, event } = o;
  const entries = new Map(context.entries);
  if (event.type === 'status.forget') {
    const held = entries.get(event.uid);
    if (held === undefined || held.incarnation > event.incarnation) return {};
    entries.delete(event.uid);
  } else {
    const held = entries.get(event.pod.uid);
    const old = held !== undefined && goesOn(held.incarnation, event.incarnation) ? held : undefined;
    const finished = event.finished === true;
    const shown = old === undefined ? shownStatus(ctx, event) : undefined;
    const after = (before: PodStatus | undefined) =>
      storeStatus({
        old: before,
        next: event.status,
        restartPolicy: event.restartPolicy,
        sidecars: new Set(event.sidecars ?? []),
        cached: old !== undefined,
        nowWallMs: ctx.ports.clock.wallMs(),
        force: finished && old?.finished !== true,
      });
    const going = after(old?.status ?? shown?.status);
    // A mirror pod outlives what it tells of: what cannot follow from its word belongs to another life.
    const verdict = going.kind === 'refused' && shown?.ofMirror === true ? after(undefined) : going;
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
    entries.set(event.pod.uid, { status: verdict.status, incarnation: event.incarnation, version: o.nextVersion(), finished });
  }
  ctx.publish(view.statuses, entries);
  return { entries };
}

/**
 * What the API server shows of a pod that has no status here yet, so that a restart changes no times and takes back no
 * end. A static pod's is that of its mirror, unless that tells of an earlier life.
 */
function shownStatus(
  ctx: ActorCtx<StatusEvent>,
  event: Extract<StatusEvent, { type: 'status.set' }>,
): { status: PodStatus; ofMirror: boolean } | undefined {
  const api = ctx.registry.read(apiView.pods)?.value;
  if (api === undefined) return undefined;
  const own = api.byUid.get(event.pod.uid);
  if (own !== undefined) return { status: own.status, ofMirror: false };
  const record = ctx.registry.read(view.pods)?.value.records.get(event.pod.uid);
  if (record === undefined || record.renewed === true || record.life !== event.incarnation) return undefined;
  const { pod } = record;
  const mirror = mirrorOf(pod, { api, gone: new Set() });
  const hash = pod.metadata.annotations?.[ANNOTATION_HASH] ?? pod.metadata.uid;
  if (mirror?.metadata.annotations?.[ANNOTATION_MIRROR] !== hash || isTerminal(mirror.status.phase)) return undefined;
  return { status: mirror.status, ofMirror: true };
}
