/**
 * The volume manager: what pods want, what there is, and a statechart per volume that leads from one to the other. It begins
 * with what an earlier daemon left on disk, as *uncertain*; none of that is taken down before every source has spoken.
 */

import { assign, type DoneActorEvent, stopChild } from 'xstate';
import { type VolumeRef, volumeKey } from '../../pod/volumes/volumePaths.ts';
import { podVolumes } from '../../pod/volumes/volumes.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import type { Moment } from '../../xstate/facts.ts';
import { type LookDue, unprovidedLookout } from '../../xstate/lookout.ts';
import { projecting, some } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { type SubPathsResult, VOLUMES_WAIT_MS, type VolumesEvent, type VolumesResult } from './messages.ts';
import {
  type Actual,
  type ActualState,
  boundParts,
  type DesiredState,
  type Look,
  leavingPods,
  reconcile,
  refreshAt,
  takenOver,
  volumesOfPod,
  without,
} from './reconcile.ts';
import type { BindJob } from './subPaths.ts';
import { type VolumeChanged, type VolumeEvent, type VolumeInput, volumeMachine } from './volumeMachine.ts';
import { concerns, givenBack, lateness, outcome, type Waiter } from './waiters.ts';

/** What became of pods is looked at this often: a pod that changed, one that nobody wants any more. Costs no I/O. */
const LOOK_MS = 2_000;
/** First wait after the disk could not be read; doubles. */
const SCAN_RETRY_MS = 500;
const SCAN_RETRY_MAX_MS = 30_000;

/** Id of the child that asks servers; one at a time. */
const SEVER = 'sever';

interface VolumesInput {
  rootDir: string;
  /** `syncFrequency`. A pod's files are compared with their sources again after it, lengthened by up to half. */
  refreshMs: number;
}
/** The time, chance, the pods as others show them, and who still waits. */
export interface VolumesFacts extends Moment {
  readonly pods: Look['pods'];
  readonly listed: Look['listed'];
  /** Drivers that were asked about volumes of that pod and have not answered: sentences. */
  unanswered(uid: string): readonly string[];
  /** The asker of this question still waits for its answer. */
  isOpen(ask: number): boolean;
}
export interface VolumesContext extends VolumesInput {
  desired: DesiredState;
  actual: ActualState;
  /** Ids of the statecharts, by volume key. */
  machines: ReadonlyMap<string, string>;
  waiters: readonly Waiter[];
  /** Pods whose containers do not end; out once they are here again with the same UID. */
  stuck: ReadonlySet<string>;
  /** Servers are being asked; `again`: more pods are to go since. */
  severing: 'no' | 'yes' | 'again';
  /** Pods that nobody minds, and since when. */
  unminded: ReadonlyMap<string, number>;
  lastId: number;
  error: string;
  attempts: number;
}
interface Held<R> {
  ask: number;
  replyTo: ReplyTo<R>;
}
interface Replied<R> {
  ask: number;
  result: R;
}
type Event =
  | VolumesEvent
  | VolumeChanged
  | LookDue
  | { type: 'waiter.expired'; ask: number }
  /** Others that may use a dead server are to go, or have gone. */
  | { type: 'pods.leave' }
  | { type: 'pods.direct'; uids: readonly string[] }
  | DoneActorEvent;

const { setup, facts } = setupWith<VolumesFacts>();

const effects = setup({
  types: { context: {} as VolumesContext, events: {} as Event, input: {} as VolumesInput },
  actors: {
    volume: volumeMachine,
    /** See {@link isLookDue}. */
    lookout: unprovidedLookout(),
    /** Never rejects: its question is answered. */
    bind: unprovided<void, BindJob>(),
    /** Gives up dead servers that these pods alone use. */
    sever: unprovided<void, { uids: readonly string[] }>(),
    /** Volumes found on disk that can be taken down by name alone. */
    scan: unprovided<readonly VolumeRef[]>(),
  },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<Held<VolumesResult>>(),
    reply: unprovidedAction<Replied<VolumesResult>>(),
    holdParts: unprovidedAction<Held<SubPathsResult>>(),
    replyParts: unprovidedAction<Replied<SubPathsResult>>(),
    publish: unprovidedAction<{ actual: ActualState }>(),
    /** Nothing of this pod is left. */
    forget: unprovidedAction<{ uid: string }>(),
  },
});

const deciding = effects.extend({
  actions: {
    noteAsk: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'volumes.mount' && event.type !== 'volumes.unmount') return;
      const { uid, replyTo } = event;
      const ask = context.lastId + 1;
      const pod = event.type === 'volumes.mount' ? event.pod : null;
      // An earlier question of the other kind is of an earlier life of the pod's worker: nobody waits for its answer.
      const waiters = context.waiters.filter((w) => w.uid !== uid || (w.pod === null) === (pod === null));
      const desired = new Map(context.desired);
      // A pod whose containers start again and again asks all the time: its files are compared when their time has come all the same.
      if (pod === null) desired.delete(uid);
      else desired.set(uid, { pod, refreshAtMonoMs: desired.get(uid)?.refreshAtMonoMs ?? refreshAt(context.refreshMs, facts()) });
      const stuck = pod === null ? context.stuck : new Set([...context.stuck].filter((one) => one !== uid));
      enqueue.assign({ lastId: ask, desired, stuck, waiters: [...waiters, { ask, uid, pod }] });
      enqueue({ type: 'hold', params: { ask, replyTo } });
      enqueue.raise({ type: 'waiter.expired', ask }, { id: `waiter:${ask}`, delay: VOLUMES_WAIT_MS });
    }),
    bind: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'volumes.bind') return;
      const { replyTo } = event;
      const parts = boundParts(context, event);
      const ask = context.lastId + 1;
      enqueue.assign({ lastId: ask });
      enqueue({ type: 'holdParts', params: { ask, replyTo } });
      if (!parts.ok) enqueue({ type: 'replyParts', params: { ask, result: parts } });
      else enqueue.spawnChild('bind', { id: `bind#${ask}`, input: { ask, parts: parts.value } });
    }),
    sever: effects.enqueueActions(({ context, event, enqueue }) => {
      const more = event.type === 'volumes.sever' && volumesOfPod(context.actual, event.uid).length > 0 ? [event.uid] : [];
      const stuck = new Set([...context.stuck, ...more]);
      const now = context.severing === 'no' && stuck.size > 0;
      enqueue.assign({ stuck, severing: now ? 'yes' : context.severing === 'no' ? 'no' : 'again' });
      if (now) enqueue.spawnChild('sever', { id: SEVER, input: { uids: [...stuck, ...leavingPods(context)] } });
    }),
    severed: enqueuing(effects)(({ context, enqueue }, _: undefined) => {
      enqueue.assign({ severing: 'no' });
      if (context.severing === 'again') enqueue.raise({ type: 'pods.leave' });
    }),
    /** Statecharts of everything found; they wait to be told what is wanted of them. */
    adopt: enqueuing(effects)(({ enqueue }, params: { found: readonly VolumeRef[] }) => {
      const machines = new Map<string, string>();
      const actual = new Map<string, Actual>();
      for (const ref of params.found) {
        const key = volumeKey(ref);
        machines.set(key, `${key}#0`);
        actual.set(key, { ref, phase: 'uncertain', error: '', sinceMs: facts().wallMs, done: null });
      }
      enqueue.assign(({ spawn }) => {
        for (const ref of params.found) spawn('volume', { id: `${volumeKey(ref)}#0`, input: { ref, job: null } });
        return { machines, actual, error: '', attempts: 0 };
      });
    }),
    /** Every wanted pod has its statecharts, and they know that they are wanted; the others know that they are not. */
    direct: enqueuing(effects)(({ context, enqueue }, params: { uids: readonly string[] | 'all' }) => {
      const uids = params.uids === 'all' ? [...context.desired.keys(), ...givenBack(context.waiters)] : params.uids;
      const machines = new Map(context.machines);
      const actual = new Map(context.actual);
      const begun: { id: string; input: VolumeInput }[] = [];
      let { lastId } = context;
      for (const uid of new Set(uids)) {
        const entry = context.desired.get(uid);
        if (entry === undefined) {
          for (const a of volumesOfPod(actual, uid)) enqueue.sendTo(machines.get(volumeKey(a.ref)) ?? '', { type: 'volume.unwant' });
          continue;
        }
        for (const volume of podVolumes(entry.pod).volumes) {
          const key = volumeKey(volume);
          const machine = machines.get(key);
          if (machine !== undefined) {
            enqueue.sendTo(machine, { type: 'volume.want', volume, pod: entry.pod } satisfies VolumeEvent);
            continue;
          }
          lastId += 1;
          const id = `${key}#${lastId}`;
          const ref = { uid: volume.uid, plugin: volume.plugin, name: volume.name };
          machines.set(key, id);
          actual.set(key, { ref, phase: 'mounting', error: '', sinceMs: facts().wallMs, done: null });
          begun.push({ id, input: { ref, job: { volume, pod: entry.pod } } });
        }
      }
      enqueue.assign(({ spawn }) => {
        for (const one of begun) spawn('volume', one);
        return { machines, actual, lastId };
      });
    }),
    refresh: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'volumes.refresh') return;
      for (const [uid, { pod }] of context.desired) {
        if (event.uid !== undefined && event.uid !== uid) continue;
        for (const volume of podVolumes(pod).volumes) {
          const machine = context.machines.get(volumeKey(volume));
          if (machine === undefined) continue;
          enqueue.sendTo(machine, { type: 'volume.refresh', volume, pod, changed: event.changed === true } satisfies VolumeEvent);
        }
      }
    }),
    retry: effects.enqueueActions(({ context, enqueue }) => {
      for (const machine of context.machines.values()) enqueue.sendTo(machine, { type: 'volume.retry' } satisfies VolumeEvent);
    }),
    noteChange: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'volume.changed') return;
      const was = context.actual.get(event.key);
      if (was === undefined) return;
      if (event.phase !== 'gone' && was.phase === event.phase && was.error === event.error && was.done === event.done) return;
      const actual = new Map(context.actual);
      if (event.phase !== 'gone') {
        actual.set(event.key, { ref: was.ref, phase: event.phase, error: event.error, sinceMs: facts().wallMs, done: event.done });
        const taken = takenOver(actual, event);
        if (taken !== null) {
          enqueue.stopChild(context.machines.get(taken) ?? '');
          actual.delete(taken);
          enqueue.assign({ machines: without(context.machines, taken) });
        }
        enqueue.assign({ actual });
        if (event.phase === 'unmounting' && context.stuck.size > 0) enqueue.raise({ type: 'pods.leave' });
        // A volume that an earlier daemon has left may have lost its claim since.
        const machine = context.machines.get(event.key) ?? '';
        if (event.phase === 'mounted' && was.phase === 'mounting' && machine.endsWith('#0')) enqueue.sendTo(machine, LOOK);
        return;
      }
      actual.delete(event.key);
      enqueue.assign({ actual, machines: without(context.machines, event.key) });
      const { uid } = was.ref;
      if (context.stuck.size > 0) enqueue.raise({ type: 'pods.leave' });
      if (volumesOfPod(actual, uid).length > 0) return;
      enqueue.assign({ stuck: new Set([...context.stuck].filter((one) => one !== uid)) });
      enqueue({ type: 'forget', params: { uid } });
    }),
    /** Answers every worker whose wait is over. */
    answer: effects.enqueueActions(({ context, event, enqueue }) => {
      const left: Waiter[] = [];
      for (const waiter of context.waiters) {
        const result = !facts().isOpen(waiter.ask) ? null : concerns(event, waiter.uid) ? outcome(context, waiter) : undefined;
        if (result === undefined) left.push(waiter);
        else {
          enqueue.cancel(`waiter:${waiter.ask}`);
          if (result !== null) enqueue({ type: 'reply', params: { ask: waiter.ask, result } });
        }
      }
      if (left.length < context.waiters.length) enqueue.assign({ waiters: left });
    }),
    /** `scanned`: what is on disk is known. */
    expire: enqueuing(effects)(({ context, event, enqueue }, { scanned }: { scanned: boolean }) => {
      if (event.type !== 'waiter.expired') return;
      const waiter = context.waiters.find((w) => w.ask === event.ask);
      if (waiter === undefined) return;
      enqueue.assign({ waiters: context.waiters.filter((w) => w !== waiter) });
      enqueue({
        type: 'reply',
        params: {
          ask: waiter.ask,
          result: { ok: false, failure: lateness({ ...context, scanned, unanswered: facts().unanswered(waiter.uid) }, waiter) },
        },
      });
    }),
    lookAround: effects.enqueueActions(({ context, enqueue }) => {
      if (context.desired.size === 0 && context.actual.size === 0) {
        if (context.unminded.size > 0) enqueue.assign({ unminded: new Map() });
        return;
      }
      const { pods, listed, monoMs } = facts();
      const look: Look = { pods, listed, nowMonoMs: monoMs };
      const { desired: asked, actual, unminded: before } = context;
      const { drop, want, refresh, unminded } = reconcile({ desired: asked, actual, look, unminded: before });
      enqueue.assign({ unminded });
      if (drop.length + want.length + refresh.length === 0) return;
      const desired = new Map(context.desired);
      const refreshAtMonoMs = refreshAt(context.refreshMs, facts());
      for (const uid of drop) desired.delete(uid);
      for (const { uid, pod } of [...want, ...refresh]) desired.set(uid, { pod, refreshAtMonoMs });
      enqueue.assign({ desired });
      enqueue.raise({ type: 'pods.direct', uids: [...drop, ...want.map((w) => w.uid)] });
      for (const { uid, pod } of refresh) {
        // Nodes may not watch claims. Each is read when its pod is synced, as the kubelet does.
        for (const key of podVolumes(pod).volumes.map(volumeKey)) {
          const machine = context.machines.get(key);
          if (machine !== undefined) enqueue.sendTo(machine, LOOK);
        }
        enqueue.raise({ type: 'volumes.refresh', uid });
      }
    }),
  },
  guards: {
    /** The worker may have gone on meanwhile, to the end of its pod perhaps: then nothing is wanted, and nothing is unwanted. */
    stillAsked: ({ event }) => event.type === 'volumes.mount' && !event.replyTo.signal.aborted,
  },
  delays: {
    scanRetry: ({ context }) => retryDelayMs({ minMs: SCAN_RETRY_MS, maxMs: SCAN_RETRY_MAX_MS }, context.attempts),
  },
});

const LOOK = { type: 'volume.look' } satisfies VolumeEvent;

const DIRECT = { type: 'direct' as const, params: ({ event }: { event: { uid: string } }) => ({ uids: [event.uid] }) };
const PUBLISH = { type: 'publish' as const, params: ({ context: { actual } }: { context: VolumesContext }) => ({ actual }) };

/** No chart of a volume is made before it is known what is on disk. */
const UNREAD = {
  'volumes.mount': { guard: 'stillAsked', actions: ['noteAsk', PUBLISH] },
  'volumes.unmount': { actions: ['noteAsk'] },
  'waiter.expired': { actions: [{ type: 'expire', params: { scanned: false } }] },
} as const;

export const volumesMachine = deciding.createMachine({
  id: 'volumes',
  meta: projecting<VolumesContext>(({ desired, actual, waiters, error, attempts }) => ({
    wanted: desired.size,
    volumes: some(actual.values(), ({ ref, phase }) => `${ref.uid}/${ref.name}: ${phase}`),
    ...{ waiters: waiters.length, error, attempts },
  })),
  context: ({ input }) => ({
    ...input,
    desired: new Map(),
    actual: new Map(),
    machines: new Map(),
    waiters: [],
    stuck: new Set(),
    severing: 'no',
    unminded: new Map(),
    lastId: 0,
    error: '',
    attempts: 0,
  }),
  initial: 'reconstructing',
  on: {
    'volumes.bind': { actions: ['bind'] },
    'volumes.sever': { actions: ['sever'] },
    'pods.leave': { actions: ['sever'] },
    [`xstate.done.actor.${SEVER}`]: { actions: [stopChild(SEVER), 'severed'] },
    // xstate keeps a child that has ended, and what it knew, until its parent stops it.
    'xstate.done.actor.*': { actions: [stopChild(({ event }) => event.actorId)] },
  },
  states: {
    reconstructing: {
      meta: { reason: 'Reconstructing', message: 'looking on disk for volumes of an earlier daemon' },
      on: UNREAD,
      invoke: {
        src: 'scan',
        onDone: {
          target: 'ready',
          actions: [
            { type: 'adopt', params: ({ event }) => ({ found: event.output }) },
            { type: 'direct', params: { uids: 'all' } },
            PUBLISH,
            'answer',
          ],
        },
        onError: {
          target: 'scanFailed',
          actions: assign(({ context, event }) => ({
            attempts: context.attempts + 1,
            error: `the volumes on disk cannot be listed: ${messageOf(event.error)}`,
          })),
        },
      },
    },
    scanFailed: {
      meta: { reason: 'ReconstructionFailed', message: ({ error }: VolumesContext) => error },
      on: UNREAD,
      after: { scanRetry: { target: 'reconstructing' } },
    },
    ready: {
      meta: {
        reason: 'Ready',
        message: ({ actual }: VolumesContext) => (actual.size === 0 ? '' : `${actual.size} volumes`),
      },
      on: {
        'look.due': { actions: ['lookAround'] },
        'volumes.mount': { guard: 'stillAsked', actions: ['noteAsk', DIRECT, 'answer', PUBLISH] },
        'volumes.unmount': { actions: ['noteAsk', DIRECT, 'answer'] },
        'volumes.refresh': { actions: ['refresh'] },
        'volumes.retry': { actions: ['retry'] },
        'volume.changed': { actions: ['noteChange', PUBLISH, 'answer'] },
        'pods.direct': { actions: [{ type: 'direct', params: ({ event }) => ({ uids: event.uids }) }] },
        'waiter.expired': { actions: [{ type: 'expire', params: { scanned: true } }] },
      },
      invoke: { src: 'lookout', input: { everyMs: LOOK_MS } },
    },
  },
});
