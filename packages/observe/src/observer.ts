/**
 * State held: since when each act that nobody expected has been seen.
 * Lost on restart: that; its time begins anew.
 * Rebuilt from: the observer port, the listing of the runtime, and the pods.
 */

import type { Extension, ExtensionHost } from '@actorlet/kubelet/actors/extension.ts';
import type { ActorCtx, ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { podGroup } from '@actorlet/kubelet/machines/allocation/cgroups/names.ts';
import type { UnexpectedAct } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { runtimePodsView } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';
import type { Observer } from '@actorlet/kubelet/ports/machine/observer.ts';
import { secretsOfPod } from '@actorlet/shown/src/deaths/gathered.ts';
import { observerView } from '@actorlet/shown/src/observer/ledger.ts';
import { fromCallback } from 'xstate';
import { unexpectedActs } from './unexpected.ts';

/** A pod comes to the runtime and to this tree by two ways: one may be so much slower. */
const UNEXPECTED_AFTER_MS = 20_000;
const LOOK_EVERY_MS = 2_000;
/** Groups of pods change seldom, and each costs a look at the machine. */
const GROUPS_EVERY_MS = 6_000;
/** Bursts of changes are shown as one. */
const SHOWN_EVERY_MS = 250;

interface ObserverOptions {
  /** Path of the group of one pod; undefined: it has none. */
  podGroup(pod: Pod): string | undefined;
  /** What is secret of a pod: the kubelet says it in statuses, and its calls of the runtime are not seen. */
  learn(words: readonly string[]): void;
}

/** Shows what is expected of the kubelet, and looks for what nobody expected. A node that observes nothing has no such actor. */
export function observer({ config: { config }, facts, inspect, outside }: ExtensionHost): Extension {
  if (outside.observer === undefined) return {};
  const learn = inspect.secrets?.learn ?? (() => undefined);
  return { actors: { foundation: [observerSpec({ podGroup: (pod) => podGroup(config, facts.cgroupDriver, pod), learn })] } };
}

function observerSpec(o: ObserverOptions): ActorSpec {
  return {
    type: 'actor',
    id: 'observer',
    start: (ctx) => ({ logic: fromCallback(() => observing(ctx, o)) }),
  };
}

function observing(ctx: ActorCtx, o: ObserverOptions): () => void {
  const { observer, clock } = ctx.ports;
  if (observer === undefined) throw new Error('this node observes nothing');
  let showing: unknown;
  const show = (): void => {
    showing = undefined;
    ctx.publish(observerView, observer.ledger());
  };
  const watching = observer.watch(() => {
    showing ??= clock.setTimeout(show, SHOWN_EVERY_MS);
  });
  show();
  const learned = new WeakSet<Pod>();
  const learning = ctx.registry.watch(podsView, ({ records }) => {
    for (const { pod } of records.values()) {
      if (!learned.has(pod)) o.learn(secretsOfPod(pod));
      learned.add(pod);
    }
  });
  const since = new Map<string, number>();
  const groups = new PodGroups(ctx, o);
  const look = (): void => {
    groups.look();
    lookAround(ctx, observer, { since, more: groups.gone });
    looking = clock.setTimeout(look, LOOK_EVERY_MS);
  };
  let looking = clock.setTimeout(look, LOOK_EVERY_MS);
  return () => {
    watching[Symbol.dispose]();
    learning[Symbol.dispose]();
    clock.clearTimeout(looking);
    if (showing !== undefined) clock.clearTimeout(showing);
  };
}

interface Seen {
  /** Monotonic ms since when each act is seen. */
  since: Map<string, number>;
  more: readonly UnexpectedAct[];
}

function lookAround({ ports, registry }: ActorCtx, observer: Observer, { since, more }: Seen): void {
  const nowMs = ports.clock.monoMs();
  const pods = registry.read(podsView)?.value;
  const names = [...(pods?.records ?? [])].map(([uid, { pod }]) => [uid, `${pod.metadata.namespace}/${pod.metadata.name}`] as const);
  observer.pods(new Map(names));
  const all = [...unexpectedActs(registry.read(runtimePodsView)?.value, pods), ...more];
  const acts = new Map(all.map((act) => [JSON.stringify(act), act]));
  for (const key of since.keys()) if (!acts.has(key)) since.delete(key);
  for (const key of acts.keys()) if (!since.has(key)) since.set(key, nowMs);
  observer.unexpected([...acts].flatMap(([key, act]) => (nowMs - (since.get(key) ?? nowMs) >= UNEXPECTED_AFTER_MS ? [act] : [])));
}

/** Pods whose containers run, although the cgroup of the pod is gone. */
class PodGroups {
  gone: readonly UnexpectedAct[] = [];
  readonly #ctx: ActorCtx;
  readonly #o: ObserverOptions;
  #lookedMonoMs = 0;
  #looking = false;

  constructor(ctx: ActorCtx, o: ObserverOptions) {
    this.#ctx = ctx;
    this.#o = o;
  }

  look(): void {
    const { cgroups, clock } = this.#ctx.ports;
    if (cgroups === undefined || this.#looking || clock.monoMs() - this.#lookedMonoMs < GROUPS_EVERY_MS) return;
    this.#looking = true;
    const over = (): void => {
      [this.#looking, this.#lookedMonoMs] = [false, clock.monoMs()];
    };
    // What cannot be read now is read the next time.
    this.#found(cgroups).then((gone) => {
      this.gone = gone;
      over();
    }, over);
  }

  async #found(cgroups: NonNullable<ActorCtx['ports']['cgroups']>): Promise<UnexpectedAct[]> {
    const { registry } = this.#ctx;
    const listing = registry.read(runtimePodsView)?.value.pods;
    const gone: UnexpectedAct[] = [];
    for (const record of registry.read(podsView)?.value.records.values() ?? []) {
      const { pod } = record;
      const { uid, namespace, name } = pod.metadata;
      const path = isWanted(record) && listing?.get(uid)?.containers.some((c) => c.state === 'running') ? this.#o.podGroup(pod) : undefined;
      if (path === undefined || (await cgroups.exists(path))) continue;
      const came = `containers run without the cgroup ${path} of their pod`;
      gone.push({ kind: 'Cgroup', pod: `${namespace}/${name}`, uid, expected: 'expects it', came });
    }
    return gone;
  }
}
