/**
 * The status manager: the accepted status of every pod, with a version that only grows. A reducer, so its machine has no
 * states. The action `deliver` gets what an update came to.
 */
import type { ApiPodsView } from '../../api/messages.ts';
import { mirrorOf, mirrors } from '../../api/podWriterDecide.ts';
import { shareData } from '../../data/sharedData.ts';
import { SharedMap } from '../../data/sharedMap.ts';
import type { PodStatus } from '../../kube/types.ts';
import { goesOn } from '../../pod/lives.ts';
import { isTerminal } from '../../pod/phase.ts';
import type { Moment } from '../../xstate/facts.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { PodRecord } from '../manager/messages.ts';
import { storeStatus } from './manager.ts';
import type { StatusEntry, StatusEvent } from './messages.ts';
import { sameStatus } from './normalize.ts';

interface StatusInput {
  /** The node belongs to a cluster: accepted statuses go to the API. */
  cluster: boolean;
  /** The last one that an earlier incarnation may have given. */
  version: number;
}
/** What comes with each event: the time, and the pods as others show them. */
export interface StatusFacts extends Moment {
  readonly shown: ApiPodsView | undefined;
  readonly records: ReadonlyMap<string, PodRecord> | undefined;
}
/** What an update came to. */
export type Taken =
  | { kind: 'unchanged' | 'forgotten'; uid: string }
  /** The earlier status stays. */
  | { kind: 'refused'; uid: string; event: StatusSet; why: string }
  /** `before`: what it follows. `from`: the phase before. `startedInMs`: since the pod was first seen, where it runs for the first time. */
  | {
      kind: 'changed';
      uid: string;
      event: StatusSet;
      before: PodStatus | undefined;
      from: string | undefined;
      status: PodStatus;
      startedInMs: number | null;
    };
export interface StatusContext extends StatusInput {
  entries: ReadonlyMap<string, StatusEntry>;
  /** Of whatever pod was accepted last: most pods of a node have addresses and resources of another. Absent: none was. */
  last?: PodStatus;
}
/** Statuses as they are after it. */
export interface Delivery extends Pick<StatusContext, 'cluster' | 'entries'> {
  taken: Taken;
}
type StatusSet = Extract<StatusEvent, { type: 'status.set' }>;
type StatusForget = Extract<StatusEvent, { type: 'status.forget' }>;
interface Step {
  next: Partial<StatusContext>;
  taken: Taken;
}

const { setup, facts } = setupWith<StatusFacts>();
const effects = setup({
  types: { context: {} as StatusContext, events: {} as StatusEvent, input: {} as StatusInput },
  /** Publishes, sends, logs and counts. */
  actions: { deliver: unprovidedAction<Delivery>() },
});

export const statusMachine = effects
  .extend({
    actions: {
      take: effects.enqueueActions(({ context, event, enqueue }) => {
        const { next, taken } = event.type === 'status.forget' ? forget(context, event) : store(context, event, facts());
        enqueue.assign(next);
        enqueue({ type: 'deliver', params: { cluster: context.cluster, entries: next.entries ?? context.entries, taken } });
      }),
    },
  })
  .createMachine({
    id: 'status',
    meta: {
      ...projecting<StatusContext>(({ entries, version, cluster }) => ({
        ...{ cluster, version, statuses: entries.size },
        finished: names([...entries].filter(([, e]) => e.finished).map(([uid]) => uid)),
      })),
      reason: ({ cluster }: StatusContext) => (cluster ? 'Member' : 'Standalone'),
      message: ({ cluster }: StatusContext) =>
        cluster ? 'statuses are kept here and handed to the writers of the API' : 'statuses are kept here and written nowhere',
    },
    context: ({ input }) => ({ cluster: input.cluster, version: input.version, entries: SharedMap.of<string, StatusEntry>() }),
    on: {
      'status.set': {
        description: 'keeps the status if it may follow the last one, publishes it, and tells the probes and the writer of the API',
        actions: ['take'],
      },
      'status.forget': { description: 'drops the status of a pod that is gone, and tells its writer', actions: ['take'] },
    },
  });

function forget(context: StatusContext, event: StatusForget): Step {
  const { uid } = event;
  const held = context.entries.get(uid);
  if (held !== undefined && held.life > event.life) return { next: {}, taken: { kind: 'unchanged', uid } };
  // Its writer has to hear of the end also where there is no status.
  if (held === undefined) return { next: {}, taken: { kind: 'forgotten', uid } };
  const entries = SharedMap.draft(context.entries);
  entries.delete(uid);
  return { next: { entries: entries.finish() }, taken: { kind: 'forgotten', uid } };
}

function store(context: StatusContext, event: StatusSet, now: StatusFacts): Step {
  const { uid } = event.pod;
  const held = context.entries.get(uid);
  const old = held !== undefined && goesOn(held.life, event.life) ? held : undefined;
  const finished = event.finished === true;
  const stopped = finished || event.stopped === true;
  const shown = old === undefined ? shownStatus(event, now) : undefined;
  const after = (before: PodStatus | undefined) =>
    storeStatus({
      old: before,
      next: event.status,
      restartPolicy: event.restartPolicy,
      restartable: new Set(event.restartable ?? []),
      cached: old !== undefined,
      nowWallMs: now.wallMs,
      force: (finished && old?.finished !== true) || (stopped && old?.stopped !== true),
    });
  const going = after(old?.status ?? shown?.status);
  // A mirror pod outlives what it tells of: what cannot follow from its word belongs to another life.
  const verdict = going.kind === 'refused' && shown?.ofMirror === true ? after(undefined) : going;
  if (verdict.kind === 'refused') return { next: {}, taken: { kind: 'refused', uid, event, why: verdict.why } };
  if (verdict.kind === 'unchanged') return { next: {}, taken: { kind: 'unchanged', uid } };
  const { status } = verdict;
  // That its volumes are down, too, is nothing to write.
  const written = old?.stopped === true && sameStatus(old.status, status) ? old.version : null;
  const newest = written === null ? context.version + 1 : context.version;
  const version = written ?? newest;
  const entry: StatusEntry = { status: shareData(context.last, status), life: event.life, version, stopped, finished };
  const startedInMs = held?.status.phase === 'Pending' && status.phase === 'Running' ? sinceSeen(uid, now) : null;
  return {
    next: { entries: SharedMap.draft(context.entries).set(uid, entry).finish(), version: newest, last: entry.status },
    taken: { kind: 'changed', uid, event, before: old?.status ?? shown?.status, from: old?.status.phase, status, startedInMs },
  };
}

function sinceSeen(uid: string, { records, wallMs }: StatusFacts): number | null {
  const seenAtMs = records?.get(uid)?.seenAtMs;
  return seenAtMs === undefined ? null : Math.max(0, wallMs - seenAtMs);
}

/**
 * What the API server shows of a pod that has no status here yet, so that a restart changes no times and takes back no
 * end. A static pod's is that of its mirror, unless that tells of an earlier life.
 */
function shownStatus(event: StatusSet, { shown: api, records }: StatusFacts): { status: PodStatus; ofMirror: boolean } | undefined {
  if (api === undefined) return undefined;
  const own = api.byUid.get(event.pod.uid);
  if (own !== undefined) return { status: own.status, ofMirror: false };
  const record = records?.get(event.pod.uid);
  if (record === undefined || record.renewed === true || record.life !== event.life) return undefined;
  const { pod } = record;
  const mirror = mirrorOf(pod, { api, gone: new Set() });
  if (mirror === undefined || !mirrors(mirror, pod) || isTerminal(mirror.status.phase)) return undefined;
  return { status: mirror.status, ofMirror: true };
}
