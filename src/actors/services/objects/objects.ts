/**
 * State held: the secrets and config maps that pods of this node name, as the API server last showed them. Secret.
 * Lost on restart: all of it, and the questions under way, which are asked again.
 * Rebuilt from: the pod manager's view (who names what), the next questions, the API server.
 */

import { type AnyActorLogic, enqueueActions, fromPromise } from 'xstate';
import type { ListWatchContext } from '../../../machines/api/listWatchMachine.ts';
import { fromBase64 } from '../../../machines/data/base64.ts';
import type { ApiObject, ObjectResult } from '../../../machines/kube/objects.ts';
import { type KubeObject, kubePath } from '../../../machines/kube/request.ts';
import { type ObjectRef, refKey } from '../../../machines/pod/volumes/references.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { type ObjectsEvent, objectTtlView } from '../../../machines/services/objects/messages.ts';
import {
  type Fetched,
  type ObjectFacts,
  type ObjectReply,
  type ObjectStrategy,
  objectMachine,
  type Question,
} from '../../../machines/services/objects/objectMachine.ts';
import { type ObjectsContext, type ObjectsFacts, objectsMachine } from '../../../machines/services/objects/objectsMachine.ts';
import { volumesAddr } from '../../../machines/services/volumes/messages.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { kubeClient, listWatch, WATCH_SECONDS_MIN } from '../../api/client.ts';
import { lookout } from '../../supervision/looks/lookout.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';

export interface ObjectsOptions {
  /** `configMapAndSecretChangeDetectionStrategy`. */
  strategy: ObjectStrategy;
  podsMax: number;
  /** Is told the values of secrets, so that they are hidden in texts. */
  learn?: ((secrets: readonly string[]) => void) | undefined;
}

/** Under `Cache`, where the node object does not say another. */
const TTL_MS = 60_000;
/** One object. */
const FETCH_TIMEOUT_MS = 30_000;

export function objectsSpec(o: ObjectsOptions): ActorSpec<ObjectsEvent> {
  return {
    type: 'actor',
    id: 'objects',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 16 * o.podsMax + 256, key: (e) => (e.type === 'api.found' ? e.type : undefined) },
    start: (ctx) => {
      const ofObject = (): ObjectFacts => ({
        get ttlMs() {
          return ctx.registry.read(objectTtlView)?.value ?? TTL_MS;
        },
      });
      const facts = (): ObjectsFacts => ({ pods: ctx.registry.read(podsView)?.value });
      const looks = lookout(ctx.ports.clock, changedPods(ctx.registry));
      return {
        logic: objectsLogic(objectsIo(ctx, o.learn ?? (() => {})), { facts, ofObject, lookout: looks }),
        input: { strategy: o.strategy },
      };
    },
  };
}

/** Whether the pods, or what is noted of them, are other ones than when it was last asked. */
function changedPods(registry: Registry): (context: ObjectsContext) => boolean {
  let [version, noted] = [-1, null as ObjectsContext['pods'] | null];
  return ({ pods }) => {
    const now = registry.read(podsView)?.version ?? 0;
    if (now === version && pods === noted) return false;
    [version, noted] = [now, pods];
    return true;
  };
}

export interface ObjectIo {
  /**
   * Logic of a child that calls `seen` after the first list and after each change, never in the middle of its own step;
   * null: there is no such object.
   */
  watch(ref: ObjectRef, seen: (object: KubeObject | null) => void): { logic: AnyActorLogic; input: unknown };
  /** `fromCache`: what the API server holds in memory will do. */
  fetch(ref: ObjectRef, o: { fromCache: boolean; signal: AbortSignal }): Promise<Fetched>;
}
interface ObjectsIo extends ObjectIo {
  changed(uid: string, what: string): void;
}

export function objectLogic(io: ObjectIo, reply: (reply: ObjectReply) => void, facts: () => ObjectFacts) {
  return provided(
    objectMachine,
    {
      actors: { fetch: fromPromise<Fetched, Question>(({ input, signal }) => io.fetch(input.ref, { fromCache: input.asked, signal })) },
      actions: {
        reply: (_, answer) => reply(answer),
        follow: enqueueActions(({ context, enqueue, self }) => {
          const seen = (object: KubeObject | null): void => {
            if (self.getSnapshot().status === 'active') self.send({ type: 'object.seen', object });
          };
          const { logic, input } = io.watch(context.ref, seen);
          // The types of xstate give ids to actors that were named in advance only.
          const spawn = enqueue.spawnChild as unknown as (logic: AnyActorLogic, o: { id: string; input: unknown }) => void;
          spawn(logic, { id: 'watch', input });
        }),
      },
    },
    facts,
  );
}

function objectsLogic(
  io: ObjectsIo,
  read: { facts(): ObjectsFacts; ofObject(): ObjectFacts; lookout: ReturnType<typeof lookout<ObjectsContext>> },
) {
  const replies = new Replies<ObjectResult<ApiObject>>();
  return provided(
    objectsMachine,
    {
      actors: { object: objectLogic(io, ({ ask, result }) => replies.reply(ask, result), read.ofObject), lookout: read.lookout },
      actions: {
        hold: (_, { ask, replyTo }) => replies.hold(ask, replyTo),
        reply: (_, { ask, result }) => replies.reply(ask, result),
        markPods: (_, { uids, what }) => {
          for (const uid of uids) io.changed(uid, what);
        },
      },
    },
    read.facts,
  );
}

function pathOf(ref: ObjectRef): string {
  return ref.kind === 'secret' ? kubePath.secret(ref.namespace, ref.name) : kubePath.configMap(ref.namespace, ref.name);
}

function objectsIo(ctx: ActorCtx<ObjectsEvent>, learn: (secrets: readonly string[]) => void): ObjectsIo {
  const { registry } = ctx;
  const client = kubeClient(ctx);
  return {
    watch(ref, seen) {
      const one = pathOf(ref);
      let latest: KubeObject | null = null;
      let due = false;
      // What hears of it may stop this very watch: that must wait until its step is done. Then only the newest counts, so that
      // no older one can come after it, in whatever order what was deferred is done.
      const tell = (object: KubeObject | null): void => {
        if (object !== null && ref.kind === 'secret') learn(valuesOf(object));
        latest = object;
        if (due) return;
        due = true;
        ctx.ports.yield.defer(() => {
          due = false;
          seen(latest);
        });
      };
      return listWatch(ctx, {
        // A list of one object costs nothing, and pods would wait 15 s for a server that never ends a stream of initial events.
        streams: false,
        // As the kubelet: until the server ends it.
        quietMs: 2_000 * WATCH_SECONDS_MIN,
        what: refKey(ref),
        path: one.slice(0, one.lastIndexOf('/')),
        // This very form is what an API server lets a node do for an object that a pod of it names.
        query: { fieldSelector: `metadata.name=${ref.name}` },
        deliver: (context) => deliver(context, tell),
      });
    },
    async fetch(ref, { fromCache, signal }): Promise<Fetched> {
      const query = fromCache ? { query: { resourceVersion: '0' } } : {};
      const result = await client.request({ verb: 'GET', path: pathOf(ref), ...query }, { signal, timeoutMs: FETCH_TIMEOUT_MS });
      if (!result.ok) return result;
      const object = result.body as KubeObject | undefined;
      if (typeof object?.metadata?.name === 'string') {
        if (ref.kind === 'secret') learn(valuesOf(object));
        return { ok: true, object };
      }
      const message = `GET ${pathOf(ref)} gave no object`;
      return { ok: false, failure: { code: 0, reason: 'MalformedAnswer', message, outcome: 'failed' } };
    },
    changed: (uid, what) => {
      registry.send(volumesAddr, { type: 'volumes.refresh', uid, changed: true });
      registry.send(workersAddr, { type: 'pod.dirty', uid, why: `${what} changed`, objects: 'only' });
    },
  };
}

/** Of a secret, and each line of those that have several: a log may hold one of them. What is no text is in no text. */
export function valuesOf({ data }: KubeObject): string[] {
  return Object.values(isRecord(data) ? data : {}).flatMap((value) => {
    const text = typeof value === 'string' ? textOf(value).trim() : '';
    return text.includes('\n') ? [text, ...text.split('\n')].filter((line) => line.length >= LINE_CHARS_MIN) : text === '' ? [] : [text];
  });
}
const LINE_CHARS_MIN = 8;
function textOf(base64: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromBase64(base64) ?? undefined);
  } catch {
    return '';
  }
}

/** The first list is told even when it is empty; a bookmark is no news. */
function deliver(context: ListWatchContext, seen: (object: KubeObject | null) => void): void {
  if (context.changed.length === 0 && context.heard) return;
  const [object] = context.items.values();
  const [unreadable] = context.unreadable.size > 0 ? context.changed : [];
  seen(object ?? unreadable ?? null);
}
