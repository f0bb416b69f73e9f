/**
 * The probe manager as a statechart: which probes run, what they found, how many go at once. It learns of pods from views
 * (a message only says where to look again), so that it can be started over at any time.
 */

import { assign } from 'xstate';
import type { ApiPodsView } from '../../api/messages.ts';
import type { Pod, PodStatus } from '../../kube/types.ts';
import { fullName } from '../../pod/names.ts';
import { isMirror } from '../../pod/phase.ts';
import type { ProbeLedger, ProbeResult, ProbeTarget } from '../../pod/probes/probes.ts';
import { evictionOf, isWanted, type PodRecord, type PodsView, refusalOf } from '../../pods/manager/messages.ts';
import type { StatusEntry } from '../../pods/status/messages.ts';
import type { Moment } from '../../xstate/facts.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { stopAll } from '../../xstate/stopAll.ts';
import { type ProberInput, type ProberReport, proberMachine } from './proberMachine.ts';
import { freeSlots, isResumed, NO_SLOTS, type Slots, wantSlot } from './schedule.ts';
import { isNews, lookedAt, type PodFacts, targetsOf, unstarted, withoutPods, withResult } from './state.ts';

/** Results of pods that are in no list are kept this long at least twice over: a list may be in the making. */
const SWEEP_MS = 60_000;

/** What comes with each event: the time, and the pods as others show them. */
export interface ProbesFacts extends Moment {
  readonly pods: PodsView | undefined;
  readonly statuses: ReadonlyMap<string, StatusEntry> | undefined;
  /** The API server's pods; null: the node belongs to no cluster. */
  readonly api: ApiPodsView | undefined | null;
  /** Where in its period a probe begins: in [0, 1), the same at every start. */
  phase(key: string): number;
}
interface Context {
  beganAtMs: number;
  ledger: ProbeLedger;
  /** Running schedules by key. */
  probes: ReadonlyMap<string, ProbeTarget>;
  /** Their keys by pod; none while its containers wait to start again. */
  byPod: ReadonlyMap<string, readonly string[]>;
  /** By pod the containers that were last seen not to run. */
  unstarted: ReadonlyMap<string, ReadonlySet<string>>;
  slots: Slots;
  /** Pods with results that no list had at the last sweep. */
  absent: ReadonlySet<string>;
}
type ProbeManagerEvent = { type: 'probes.look'; uid: string | null } | ProberReport;

const { setup, facts } = setupWith<ProbesFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as ProbeManagerEvent },
  actors: { prober: proberMachine, load: unprovided<ProbeLedger>() },
  actions: {
    publish: unprovidedAction<{ ledger: ProbeLedger }>(),
    sayChanged: unprovidedAction<{ target: ProbeTarget; result: ProbeResult; output: string }>(),
    sayEnded: unprovidedAction<{ uid: string }>(),
    sayTakenOver: unprovidedAction<{ uid: string }>(),
  },
});

const deciding = effects.extend({
  actions: {
    /** Looks at some pods, or at all: spawns, updates and stops schedules, and brings the ledger up to date. */
    look: enqueuing(effects)(({ context, enqueue }, params: { uids: readonly string[] | null }) => {
      const seen = facts();
      const uids = params.uids ?? [...new Set([...(seen.statuses?.keys() ?? []), ...context.byPod.keys()])];
      let { ledger } = context;
      const probes = new Map(context.probes);
      const byPod = new Map(context.byPod);
      const waiting = new Map(context.unstarted);
      const stopped: string[] = [];
      const news: string[] = [];
      const begun: { id: string; input: ProberInput }[] = [];
      for (const uid of uids) {
        const pod = podFacts(uid, seen);
        if (pod === undefined && seen.pods?.records.has(uid) === true) continue;
        if (pod !== undefined) {
          const before = ledger;
          ledger = lookedAt(before, pod);
          if (ledger !== before && isNews(before, ledger, pod)) news.push(uid);
        }
        const targets = pod === undefined ? [] : targetsOf(ledger, pod);
        const wanted = new Set(targets.map((t) => t.key));
        for (const key of byPod.get(uid) ?? []) {
          if (wanted.has(key) || !probes.has(key)) continue;
          probes.delete(key);
          stopped.push(key);
        }
        for (const target of targets) {
          const result = ledger.get(target.containerId)?.[target.type] ?? 'unknown';
          if (probes.has(target.key)) enqueue.sendTo(target.key, { type: 'probe.target', target, result });
          else {
            const fresh = waiting.get(uid)?.has(target.container.name) === true;
            const phase = !fresh && isResumed(target, context.beganAtMs) ? seen.phase(target.key) : null;
            begun.push({ id: target.key, input: { target, result, phase, fresh } });
          }
          probes.set(target.key, target);
        }
        const notYet = pod === undefined ? null : unstarted(pod);
        if (notYet === null || notYet.size === 0) waiting.delete(uid);
        else waiting.set(uid, notYet);
        const over = pod === undefined || pod.terminating;
        if (wanted.size > 0 || (!over && byPod.has(uid))) byPod.set(uid, [...wanted]);
        else if (byPod.delete(uid)) enqueue({ type: 'sayEnded', params: { uid } });
      }
      enqueue(stopAll(stopped));
      enqueue.assign(({ spawn }) => {
        for (const one of begun) spawn('prober', one);
        return { ledger, probes, byPod, unstarted: waiting };
      });
      if (ledger !== context.ledger) enqueue({ type: 'publish', params: { ledger } });
      for (const uid of news) enqueue({ type: 'sayTakenOver', params: { uid } });
      grantTo(enqueue, freeSlots(context.slots, stopped));
    }),
    result: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'probe.result') return;
      const { target, result, output } = event;
      const ledger = withResult(context.ledger, { containerId: target.containerId, type: target.type, result });
      if (ledger === context.ledger) return;
      enqueue.assign({ ledger });
      enqueue({ type: 'publish', params: { ledger } });
      enqueue({ type: 'sayChanged', params: { target, result, output } });
    }),
    want: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type === 'probe.want') grantTo(enqueue, wantSlot(context.slots, event.key, event.kind));
    }),
    free: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type === 'probe.free') grantTo(enqueue, freeSlots(context.slots, [event.key]));
    }),
    sweep: effects.enqueueActions(({ context, enqueue }) => {
      const { pods } = facts();
      if (pods?.sourcesReady !== true) return;
      const absent = new Set([...context.ledger.values()].map((e) => e.uid).filter((uid) => !pods.records.has(uid)));
      const gone = new Set([...absent].filter((uid) => context.absent.has(uid)));
      const ledger = withoutPods(context.ledger, gone);
      enqueue.assign({ absent, ledger });
      if (ledger !== context.ledger) enqueue({ type: 'publish', params: { ledger } });
    }),
  },
  delays: { sweep: SWEEP_MS },
});

export const probeManagerMachine = deciding.createMachine({
  id: 'probes',
  meta: projecting<Context>(({ probes, byPod, slots }) => ({
    ...{ probes: probes.size, pods: byPod.size },
    trying: names(slots.holding.keys()),
    waiting: names(slots.waiting.keys()),
  })),
  options: { maxIterations: 1000 },
  context: () => ({
    beganAtMs: facts().wallMs,
    ledger: new Map(),
    probes: new Map(),
    byPod: new Map(),
    unstarted: new Map(),
    slots: NO_SLOTS,
    absent: new Set(),
  }),
  initial: 'loading',
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading the results of the probes that ran before' },
      invoke: {
        src: 'load',
        onDone: { target: 'serving', actions: [assign(({ event }) => ({ ledger: event.output }))] },
        // The actor logs why they cannot be loaded. Without them every container begins anew.
        onError: { target: 'serving' },
      },
    },
    serving: {
      meta: { reason: 'Serving', message: ({ probes }: Context) => `${probes.size} probes are kept up` },
      entry: [
        { type: 'publish', params: ({ context: { ledger } }) => ({ ledger }) },
        { type: 'look', params: { uids: null } },
      ],
      initial: 'sweeping',
      on: {
        'probes.look': {
          actions: [{ type: 'look', params: ({ event }) => ({ uids: event.uid === null ? null : [event.uid] }) }],
        },
        'probe.result': {
          actions: ['result', { type: 'look', params: ({ event }) => ({ uids: [event.target.pod.uid] }) }],
        },
        'probe.want': { actions: ['want'] },
        'probe.free': { actions: ['free'] },
      },
      states: {
        sweeping: { after: { sweep: { target: 'sweeping', reenter: true, actions: ['sweep'] } } },
      },
    },
  },
});

/** Undefined: the pod is in no list, or has no status yet. */
export function podFacts(uid: string, { pods, statuses, api }: Pick<ProbesFacts, 'pods' | 'statuses' | 'api'>): PodFacts | undefined {
  const record = pods?.records.get(uid);
  const status = statuses?.get(uid)?.status;
  if (record === undefined || status === undefined) return undefined;
  const phase = record.worker?.phase;
  const ending = phase === 'terminating' || phase === 'terminated' || phase === 'finished';
  const refused = (refusalOf(record) ?? evictionOf(record)) !== null;
  const terminating = !isWanted(record) || refused || Boolean(record.pod.metadata.deletionTimestamp) || ending;
  return { pod: record.pod, status, terminating, said: saidOf(record, api) };
}

/** A static pod comes from its manifest without a status: what is known of it since before this node's start is in its mirror. */
function saidOf({ pod, source }: PodRecord, api: ProbesFacts['api']): PodStatus | null {
  if (api === null || (source !== 'file' && source !== 'http')) return pod.status;
  if (api?.synced !== true) return null;
  return shownPod(pod, api).status;
}

/** As the API server shows it: itself, or its mirror. */
export function shownPod(pod: Pod, api: ApiPodsView | undefined | null): Pod {
  const own = api?.byUid.get(pod.metadata.uid);
  if (own !== undefined) return own;
  for (const mirror of api?.byUid.values() ?? []) if (isMirror(mirror) && fullName(mirror) === fullName(pod)) return mirror;
  return pod;
}

type Enqueue = { assign(c: { slots: Slots }): void; sendTo(id: string, event: { type: 'probe.granted' }): void };

function grantTo(enqueue: Enqueue, next: { slots: Slots; granted: string[] }): void {
  enqueue.assign({ slots: next.slots });
  for (const key of next.granted) enqueue.sendTo(key, { type: 'probe.granted' });
}
