/** Reading xstate for people: dotted state values, the reason that the innermost state gives, names of events. */

import type { AnyActorLogic, AnyActorRef } from 'xstate';
import { messageOf } from '../../../machines/text/errors.ts';
import { readingOf } from '../../../machines/xstate/facts.ts';

/** `syncing.pulling`; parallel regions in brackets: `up(net.ok,disk.ok)`. '' for what is no machine. */
export function dottedState(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const parts = Object.entries(value).map(([name, inner]) => {
    const below = dottedState(inner);
    if (below === '') return name;
    return below.startsWith('(') ? `${name}${below}` : `${name}.${below}`;
  });
  return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(',')})`;
}

/** The same logic. `note` hears the type of each event before the logic takes it: also of timers and of invoked actors. */
export function noting<L extends AnyActorLogic>(logic: L, note: (type: string) => void): L {
  const step = logic.transition.bind(logic);
  const transition: AnyActorLogic['transition'] = (snapshot, event: { type: string }, scope) => {
    note(event.type);
    return step(snapshot, event, scope);
  };
  return Object.assign(Object.create(logic) as L, { transition });
}

/** In one word: `pod.update`, `start`, `after:500ms`, `done:inspect`, `error:inspect`; an actor that was spawned by its id. */
export function eventName(type: string, actor: AnyActorRef | null): string {
  if (type === '' || type === 'xstate.init') return 'start';
  if (!type.startsWith('xstate.')) return type;
  const after = /^xstate\.after\.([^.]+)\./.exec(type)?.[1];
  if (after !== undefined) return `after:${after}${/^\d+$/.test(after) ? 'ms' : ''}`;
  const [, how, id] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? [];
  if (how === undefined || id === undefined) return type.slice('xstate.'.length);
  return `${how}:${sourceOf(id, actor) ?? id}`;
}

/** Name of the actor source that a state invokes; xstate numbers invocations by state: `0.podWorker.syncing.inspecting`. */
function sourceOf(id: string, actor: AnyActorRef | null): string | undefined {
  const states = (Reflect.get(actor ?? {}, 'logic') as { idMap?: ReadonlyMap<string, { invoke: readonly Invoked[] }> } | undefined)?.idMap;
  const found = states?.get(id.replace(/^\d+\./, ''))?.invoke.find((i) => i.id === id);
  return typeof found?.src === 'string' ? found.src : undefined;
}
interface Invoked {
  id: string;
  src: unknown;
}

interface NodeLike {
  path?: readonly string[];
  meta?: { reason?: unknown; message?: unknown };
}

/**
 * `meta.reason` and `meta.message` of the innermost active state that has them: a string, or a function of the context and of
 * what `actor` reads with its events.
 */
export function reasonOf(snapshot: unknown, actor: AnyActorRef | null = null): { reason: string; message: string } {
  const { _nodes: nodes, context } = (snapshot ?? {}) as { _nodes?: readonly NodeLike[]; context?: unknown };
  let best: NodeLike | null = null;
  for (const node of nodes ?? []) {
    if (node.meta?.reason === undefined) continue;
    if (best === null || (node.path?.length ?? 0) > (best.path?.length ?? 0)) best = node;
  }
  if (best === null) return { reason: '', message: '' };
  return { reason: text(best.meta?.reason, context, actor), message: text(best.meta?.message, context, actor) };
}

function text(value: unknown, context: unknown, actor: AnyActorRef | null): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'function') return '';
  try {
    return String(value.length > 1 ? value(context, readingOf(Reflect.get(actor ?? {}, 'logic') ?? {})?.read()) : value(context));
  } catch (thrown) {
    return `(meta threw: ${messageOf(thrown)})`;
  }
}
