/** Events of xstate for people: each in one word. */

import type { AnyActorRef } from 'xstate';
import { invokedAs } from '../../../machines/xstate/inside.ts';

/** In one word: `pod.update`, `start`, `after:500ms`, `done:inspect`, `error:inspect`; an actor that was spawned by its id. */
export function eventName(type: string, actor: AnyActorRef | null): string {
  if (type === '' || type === 'xstate.init') return 'start';
  if (!type.startsWith('xstate.')) return type;
  const after = /^xstate\.after\.([^.]+)\./.exec(type)?.[1];
  if (after !== undefined) return `after:${after}${/^\d+$/.test(after) ? 'ms' : ''}`;
  const [, how, id] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? [];
  if (how === undefined || id === undefined) return type.slice('xstate.'.length);
  return `${how}:${(actor === null ? undefined : invokedAs(actor, id)) ?? id}`;
}
