/**
 * What a person may see of a machine's context or of an event: numbers, truth values, sizes, and text under names known
 * to be harmless. Everything else is a type or a length. An allow-list: a field that nobody thought of is not shown.
 */

import { SharedMap } from '@actorlet/kubelet/machines/data/sharedMap.ts';
import { projectionOf, type Shown } from '@actorlet/kubelet/machines/xstate/projection.ts';

export type { Shown };

/** Levels of objects below the context. */
const DEPTH_MAX = 4;
/** Entries of one object, list or map. */
const ENTRIES_MAX = 24;
/** Values of one projection. */
const VALUES_MAX = 600;
/** Characters of one text. */
const TEXT_CHARS_MAX = 200;
/** Characters of all texts of what a machine shows itself. */
const CHOSEN_CHARS_MAX = 8_000;

/** Names whose text is shown. */
const TEXT_SHOWN = new Set(
  (
    'uid name namespace id key kind type state phase reason message why status method outcome source path container podUid ' +
    'podIP image imageRef sandboxId containerId containerName runtimeName runtimeVersion runtimeReason networkReason signal ' +
    'qosClass nodeName strategy escalate failure error details lifecycle actor address where view op restart policy by what'
  ).split(' '),
);
/** Names whose value is never looked at, whatever it is: a pod's author chooses what stands there, or it is secret. */
const CLOSED =
  /^(env|envs|environment|envFrom|data|stringData|binaryData|args|command|annotations|labels|body|content|contents|payload|headers|cookie|cookies|spec)$/i;
/** What a machine was given to act with: live objects of this program, and of no interest. */
const TOOLS = /^(io|ports|ctx|inspector|registry|log|clock|children|controller)$/;
const SECRET = /secret|token|passw|credential|auth|private|cert|apikey|pem|keyring|bearer/i;

/** What an actor shows of its context: what its machine chose, else what {@link projectContext} lets through. */
export function projectSnapshot(snapshot: unknown): Shown {
  const { machine, context } = (snapshot ?? {}) as { machine?: unknown; context?: unknown };
  const own = projectionOf(machine);
  if (own === null) return projectContext(context ?? null);
  try {
    return look(own(context), { depth: 0, key: '', budget: { left: VALUES_MAX, chosenChars: CHOSEN_CHARS_MAX }, seen: new Set() });
  } catch {
    return '(its own projection failed)';
  }
}

/** What is shown of a context whose machine does not say so. */
export function projectContext(context: unknown): Shown {
  return look(context, { depth: 0, key: '', budget: { left: VALUES_MAX }, seen: new Set() });
}

/** An event: its type, and of its fields what {@link projectContext} would show. */
export function projectEvent(event: unknown): { type: string; [key: string]: Shown } {
  const type = typeof event === 'object' && event !== null && 'type' in event ? String(event.type).slice(0, TEXT_CHARS_MAX) : '';
  const shown = look(event, { depth: 1, key: '', budget: { left: VALUES_MAX }, seen: new Set() });
  return { ...(isRecord(shown) ? shown : {}), type };
}

function isRecord(shown: Shown): shown is { readonly [key: string]: Shown } {
  return typeof shown === 'object' && shown !== null && !Array.isArray(shown);
}

interface At {
  depth: number;
  key: string;
  /** `chosenChars`: the machine chose what is shown, texts too, and they may still have this many characters. */
  budget: { left: number; chosenChars?: number };
  seen: ReadonlySet<object>;
}

function look(value: unknown, at: At): Shown {
  at.budget.left -= 1;
  if (at.budget.left < 0) return '…';
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return String(value).slice(0, TEXT_CHARS_MAX);
    case 'string':
      return at.budget.chosenChars === undefined ? textOf(value, at.key) : chosenText(value, at);
    case 'object':
      return value === null ? null : objectOf(value, at);
    case 'undefined':
      return null;
    default:
      return `(${typeof value})`;
  }
}

function textOf(value: string, key: string): Shown {
  if (value === '' || (TEXT_SHOWN.has(key) && !SECRET.test(key))) {
    return value.length > TEXT_CHARS_MAX ? `${value.slice(0, TEXT_CHARS_MAX - 1)}…` : value;
  }
  return `(text, ${value.length})`;
}

function chosenText(value: string, { budget }: At): Shown {
  const room = Math.min(TEXT_CHARS_MAX, budget.chosenChars ?? 0);
  budget.chosenChars = (budget.chosenChars ?? 0) - Math.min(value.length, room);
  return value.length > room ? `${value.slice(0, Math.max(0, room - 1))}…` : value;
}

function objectOf(value: object, at: At): Shown {
  if (at.seen.has(value)) return '(seen above)';
  const next = (key: string): At => ({ depth: at.depth + 1, key, budget: at.budget, seen: new Set([...at.seen, value]) });
  // An actor, a signal, a timer: what they are, not what they hold.
  if ('getSnapshot' in value || value instanceof AbortSignal || value instanceof Promise) return '(live object)';
  if (value instanceof Error) return { name: value.name, message: textOf(value.message, 'message') };
  if (ArrayBuffer.isView(value)) return `(bytes, ${value.byteLength})`;
  if (value instanceof Map || value instanceof SharedMap) return mapOf(value, at, next);
  if (value instanceof Set || Array.isArray(value)) {
    const list = [...value];
    if (list.length === 0 && at.budget.chosenChars !== undefined) return [];
    if (at.depth >= DEPTH_MAX || list.length === 0) return `(${list.length} items)`;
    const shown = list.slice(0, ENTRIES_MAX).map((v) => look(v, next(at.key)));
    return list.length > ENTRIES_MAX ? [...shown, `… ${list.length - ENTRIES_MAX} more`] : shown;
  }
  const keys = Object.keys(value);
  if (at.depth >= DEPTH_MAX) return `(object, ${keys.length})`;
  const out: Record<string, Shown> = {};
  const data = keys.filter((key) => !TOOLS.test(key) && typeof Reflect.get(value, key) !== 'function');
  for (const key of data.slice(0, ENTRIES_MAX)) out[cut(key)] = fieldOf(Reflect.get(value, key), key, next(key));
  if (data.length > ENTRIES_MAX) out['…'] = `${data.length - ENTRIES_MAX} more`;
  return out;
}

function mapOf(map: ReadonlyMap<unknown, unknown>, at: At, next: (key: string) => At): Shown {
  if (at.depth >= DEPTH_MAX || map.size === 0) return `(${map.size} entries)`;
  const out: Record<string, Shown> = {};
  let n = 0;
  for (const [key, value] of map) {
    if (n++ >= ENTRIES_MAX) break;
    const name = typeof key === 'string' ? key : String(n);
    // A key may be text of a pod's author: its value's text is judged by the name of the map.
    out[cut(name)] = fieldOf(value, name, next(at.key));
  }
  if (map.size > ENTRIES_MAX) out['…'] = `${map.size - ENTRIES_MAX} more`;
  return out;
}

function fieldOf(value: unknown, key: string, at: At): Shown {
  if (typeof value === 'function') return '(function)';
  if (typeof value === 'boolean' || typeof value === 'number') return look(value, at);
  if (CLOSED.test(key) || (at.budget.chosenChars === undefined && SECRET.test(key)))
    return value === null || value === undefined ? null : '(hidden)';
  return look(value, at);
}

function cut(key: string): string {
  return key.length > 80 ? `${key.slice(0, 79)}…` : key;
}
