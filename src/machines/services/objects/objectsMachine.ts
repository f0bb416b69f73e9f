/**
 * Secrets and config maps that pods of this node name: one statechart per object for as long as some pod names it. Pods are
 * noted when they ask, and found again in the pod manager's view; one that has ended gives up what it named.
 */

import type { ApiObject, ObjectResult } from '../../kube/objects.ts';
import type { Pod } from '../../kube/types.ts';
import { type ObjectRef, podReferences, refKey } from '../../pod/volumes/references.ts';
import { isRefused, type PodRecord, type PodsView } from '../../pods/manager/messages.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { type LookDue, unprovidedLookout } from '../../xstate/lookout.ts';
import { podName, projecting, some } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { stopAll } from '../../xstate/stopAll.ts';
import type { ObjectsEvent } from './messages.ts';
import { type ObjectChanged, type ObjectEvent, type ObjectReply, type ObjectStrategy, objectMachine } from './objectMachine.ts';

/** What became of pods is looked at this often. Costs no I/O. */
const OBJECTS_LOOK_MS = 2_000;
/**
 * Objects that have a watch of their own; each holds a connection, and the other calls need some too. Objects beyond it
 * are asked for as under `Cache`.
 */
export const OBJECT_WATCHES_MAX = 128;

export interface ObjectsFacts {
  readonly pods: PodsView | undefined;
}
interface ObjectsInput {
  strategy: ObjectStrategy;
}
interface Entry {
  ref: ObjectRef;
  machine: string;
  watched: boolean;
  pods: ReadonlySet<string>;
}
export interface ObjectsContext extends ObjectsInput {
  entries: ReadonlyMap<string, Entry>;
  /** By UID, as it was when it was noted, with the keys of what it names. */
  pods: ReadonlyMap<string, { pod: Pod; keys: ReadonlySet<string> }>;
  lastId: number;
}
interface Held {
  ask: number;
  replyTo: ReplyTo<ObjectResult<ApiObject>>;
}
type Event =
  | ObjectsEvent
  | ObjectChanged
  | LookDue
  | { type: 'pods.take'; pods: readonly Pod[]; gone: readonly string[] }
  | { type: 'object.pass'; ask: number; ref: ObjectRef };

/** Static pods name nothing of the API: those that do are refused. */
export function mayNameObjects(record: PodRecord): boolean {
  return !namesNothing(record) && record.worker !== null;
}
/** It never names an object again. A worker that asks may not have been heard of yet: its pod still names what it named. */
function namesNothing(record: PodRecord): boolean {
  const phase = record.worker?.phase;
  return record.source !== 'api' || isRefused(record) || phase === 'terminated' || phase === 'finished';
}

/** What the references of pods come to: added before anything is dropped (trap 66). */
export function retake(
  context: Pick<ObjectsContext, 'entries' | 'pods' | 'lastId' | 'strategy'>,
  o: { pods: readonly Pod[]; gone: readonly string[] },
): {
  entries: Map<string, Entry>;
  pods: Map<string, { pod: Pod; keys: ReadonlySet<string> }>;
  lastId: number;
  added: Entry[];
  renewed: string[];
  dropped: string[];
} {
  const entries = new Map(context.entries);
  const pods = new Map(context.pods);
  const added: Entry[] = [];
  const renewed: string[] = [];
  const dropped: string[] = [];
  let { lastId } = context;
  let watches = [...entries.values()].filter((e) => e.watched).length;
  const give = (uid: string, keys: Iterable<string>): void => {
    for (const key of keys) {
      const entry = entries.get(key);
      if (entry === undefined) continue;
      const left = new Set(entry.pods);
      left.delete(uid);
      if (left.size > 0) entries.set(key, { ...entry, pods: left });
      else {
        entries.delete(key);
        dropped.push(entry.machine);
      }
    }
  };
  for (const pod of o.pods) {
    const { uid } = pod.metadata;
    const before = pods.get(uid);
    if (before?.pod === pod) continue;
    const refs = podReferences(pod);
    for (const [key, ref] of refs) {
      const entry = entries.get(key);
      if (entry === undefined) {
        lastId += 1;
        const watched = context.strategy === 'Watch' && watches < OBJECT_WATCHES_MAX;
        if (watched) watches += 1;
        const made: Entry = { ref, machine: `${key}#${lastId}`, watched, pods: new Set([uid]) };
        entries.set(key, made);
        added.push(made);
      } else if (!entry.pods.has(uid)) {
        entries.set(key, { ...entry, pods: new Set([...entry.pods, uid]) });
        renewed.push(entry.machine);
      }
    }
    pods.set(uid, { pod, keys: new Set(refs.keys()) });
    give(
      uid,
      [...(before?.keys ?? [])].filter((key) => !refs.has(key)),
    );
  }
  for (const uid of o.gone) {
    give(uid, pods.get(uid)?.keys ?? []);
    pods.delete(uid);
  }
  return { entries, pods, lastId, added, renewed, dropped };
}

const { setup, facts } = setupWith<ObjectsFacts>();

const effects = setup({
  types: { context: {} as ObjectsContext, events: {} as Event, input: {} as ObjectsInput },
  actors: {
    object: objectMachine,
    /** The pods have changed since the last look. */
    lookout: unprovidedLookout(),
  },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<Held>(),
    reply: unprovidedAction<ObjectReply>(),
    /** Files of these pods are made of something that changed, or a container of theirs waits for it. */
    markPods: unprovidedAction<{ uids: Iterable<string>; what: string }>(),
  },
});

const deciding = effects.extend({
  actions: {
    look: effects.enqueueActions(({ context, enqueue }) => {
      const records = facts().pods?.records;
      if (records === undefined) return;
      const pods = [...records.values()].filter(mayNameObjects).map((r) => r.pod);
      const gone = [...context.pods.keys()].filter((uid) => {
        const record = records.get(uid);
        return record === undefined || namesNothing(record);
      });
      const news = pods.filter((p) => context.pods.get(p.metadata.uid)?.pod !== p);
      if (news.length + gone.length > 0) enqueue.raise({ type: 'pods.take', pods: news, gone });
    }),
    noteAsker: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.get') return;
      const known = context.pods.get(event.pod.metadata.uid);
      if (known?.keys.has(refKey(event.ref)) !== true) enqueue.raise({ type: 'pods.take', pods: [event.pod], gone: [] });
      const { ref, replyTo } = event;
      const ask = context.lastId + 1;
      enqueue.assign({ lastId: ask });
      enqueue({ type: 'hold', params: { ask, replyTo } });
      // After that: raised events are handled in order.
      enqueue.raise({ type: 'object.pass', ask, ref });
    }),
    pass: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'object.pass') return;
      const { ask, ref } = event;
      const entry = context.entries.get(refKey(ref));
      if (entry !== undefined) return enqueue.sendTo(entry.machine, { type: 'object.ask', ask } satisfies ObjectEvent);
      const message = `object "${ref.namespace}"/"${ref.name}" not registered`;
      enqueue({ type: 'reply', params: { ask, result: { kind: 'failed', message } } });
    }),
    take: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'pods.take') return;
      const { entries, pods, lastId, added, renewed, dropped } = retake(context, event);
      // All at once: each child that is begun by itself copies the list of all others.
      enqueue.assign(({ spawn }) => {
        for (const { machine: id, ref, watched } of added)
          spawn('object', { id, input: { ref, strategy: context.strategy === 'Watch' && !watched ? 'Cache' : context.strategy } });
        return { entries, pods, lastId };
      });
      for (const machine of renewed) enqueue.sendTo(machine, { type: 'object.renew' } satisfies ObjectEvent);
      enqueue(stopAll(dropped));
    }),
    wake: effects.enqueueActions(({ context, enqueue }) => {
      for (const { machine } of context.entries.values()) enqueue.sendTo(machine, { type: 'api.found' } satisfies ObjectEvent);
    }),
  },
  guards: {
    someNamed: ({ context }) => context.entries.size > 0,
    noneNamed: ({ context }) => context.entries.size === 0,
  },
});

export const objectsMachine = deciding.createMachine({
  id: 'objects',
  meta: projecting<ObjectsContext>(({ strategy, entries, pods }) => ({
    strategy,
    objects: some(entries, ([key, entry]) => `${key}: ${entry.pods.size} pods${entry.watched ? ', watched' : ''}`),
    pods: some(pods.values(), ({ pod }) => podName(pod)),
  })),
  context: ({ input }) => ({ ...input, entries: new Map(), pods: new Map(), lastId: 0 }),
  // From time to time, and never in a step with a question: a look that drops an object would end it before it hears of that.
  entry: ['look'],
  invoke: { src: 'lookout', input: { everyMs: OBJECTS_LOOK_MS } },
  initial: 'idle',
  on: {
    'look.due': { actions: ['look'] },
    'object.get': { actions: ['noteAsker'] },
    'object.pass': { actions: ['pass'] },
    'pods.take': { actions: ['take'] },
    'object.changed': {
      actions: [
        {
          type: 'markPods',
          params: ({ context, event }) => ({ uids: context.entries.get(event.key)?.pods ?? [], what: event.key }),
        },
      ],
    },
    'api.found': { actions: ['wake'] },
  },
  states: {
    idle: {
      meta: { reason: 'Ready', message: '' },
      always: { guard: 'someNamed', target: 'following' },
    },
    following: {
      meta: { reason: 'Ready', message: ({ entries }: ObjectsContext) => `${entries.size} secrets and config maps are named by pods` },
      always: { guard: 'noneNamed', target: 'idle' },
    },
  },
});
