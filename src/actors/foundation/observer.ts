/**
 * State held: since when each act that nobody expected has been seen.
 * Lost on restart: that; its time begins anew.
 * Rebuilt from: the observer port, the listing of the runtime, and the pods.
 */
import { fromCallback } from 'xstate';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { observerView } from '../../machines/shown/observer/ledger.ts';
import { unexpectedActs } from '../../machines/shown/observer/unexpected.ts';
import type { Observer } from '../../ports/machine/observer.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';

/** A pod comes to the runtime and to this tree by two ways: one may be so much slower. */
const UNEXPECTED_AFTER_MS = 20_000;
const LOOK_EVERY_MS = 2_000;
/** Bursts of changes are shown as one. */
const SHOWN_EVERY_MS = 250;

/** Shows what is expected of the kubelet, and looks for what nobody expected. */
export function observerSpec(): ActorSpec {
  return {
    type: 'actor',
    id: 'observer',
    start: (ctx) => ({ logic: fromCallback(() => observing(ctx)) }),
  };
}

function observing(ctx: ActorCtx): () => void {
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
  const since = new Map<string, number>();
  const look = (): void => {
    lookAround(ctx, observer, since);
    looking = clock.setTimeout(look, LOOK_EVERY_MS);
  };
  let looking = clock.setTimeout(look, LOOK_EVERY_MS);
  return () => {
    watching[Symbol.dispose]();
    clock.clearTimeout(looking);
    if (showing !== undefined) clock.clearTimeout(showing);
  };
}

function lookAround({ ports, registry }: ActorCtx, observer: Observer, since: Map<string, number>): void {
  const nowMs = ports.clock.monoMs();
  const pods = registry.read(podsView)?.value;
  const names = [...(pods?.records ?? [])].map(([uid, { pod }]) => [uid, `${pod.metadata.namespace}/${pod.metadata.name}`] as const);
  observer.pods(new Map(names));
  const acts = new Map(unexpectedActs(registry.read(runtimePodsView)?.value, pods).map((act) => [JSON.stringify(act), act]));
  for (const key of since.keys()) if (!acts.has(key)) since.delete(key);
  for (const key of acts.keys()) if (!since.has(key)) since.set(key, nowMs);
  observer.unexpected([...acts].flatMap(([key, act]) => (nowMs - (since.get(key) ?? nowMs) >= UNEXPECTED_AFTER_MS ? [act] : [])));
}
