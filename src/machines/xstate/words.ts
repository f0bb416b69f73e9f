/** A snapshot for people: its state in dots, and the words that the innermost state has in its `meta`. */

import type { AnyActorRef } from 'xstate';
import { messageOf } from '../text/errors.ts';
import { readingOf } from './facts.ts';
import { activeStates, logicOf } from './inside.ts';

/** `syncing.pulling`; parallel regions in brackets: `up(net.ok,disk.ok)`. '' for what is no machine. */
export function dottedState(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const parts = Object.entries(value).map(([name, inner]) => {
    const below = dottedState(inner);
    if (below === '') return name;
    return below.startsWith('(') ? `${name}${below}` : `${name}.${below}`;
  });
  return parts.length <= 1 ? (parts[0] ?? '') : `(${parts.join(',')})`;
}

/**
 * `meta.reason` and `meta.message` of the innermost active state that has them: a string, or a function of the context and of
 * what `actor` reads with its events.
 */
export function reasonOf(snapshot: unknown, actor: AnyActorRef | null = null): { reason: string; message: string } {
  let best: ReturnType<typeof activeStates>[number] | null = null;
  for (const state of activeStates(snapshot)) {
    if (state.meta?.reason === undefined) continue;
    if (best === null || state.path.length > best.path.length) best = state;
  }
  if (best === null) return { reason: '', message: '' };
  const { context } = snapshot as { context?: unknown };
  return { reason: text(best.meta?.reason, context, actor), message: text(best.meta?.message, context, actor) };
}

function text(value: unknown, context: unknown, actor: AnyActorRef | null): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'function') return '';
  try {
    return String(value.length > 1 ? value(context, actor === null ? undefined : readingOf(logicOf(actor) ?? {})?.read()) : value(context));
  } catch (thrown) {
    return `(meta threw: ${messageOf(thrown)})`;
  }
}
