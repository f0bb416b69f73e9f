/** Events of xstate for people: what a logic hears, and the event in one word. */

import type { AnyActorLogic, AnyActorRef } from 'xstate';

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
