/** Typed addresses and causes: how actors name each other and why a message was sent. Pure data. */

/** One link in the chain of causes behind a message. */
export interface Cause {
  /** Wall time, milliseconds. */
  atMs: number;
  /** Path of the actor that says so. */
  by: string;
  /** What happened, a short sentence: `manifest /etc/kubernetes/manifests/web.yaml changed`. */
  what: string;
  /** The one pod that it is about, as NAME_NAMESPACE. Absent: all that the message is about. */
  about?: string;
}
/** A message keeps its newest {@link CAUSES_MAX} causes and always its first (the root cause). */
export const CAUSES_MAX = 8;

/** Every protocol event may say why it was sent. */
export interface Message {
  type: string;
  causes?: readonly Cause[];
}

declare const eventType: unique symbol;
/** Where a mailbox is. The phantom parameter is the union of events it takes. */
export interface Address<E extends Message> {
  readonly path: string;
  readonly [eventType]?: (e: E) => void;
}
export function address<E extends Message>(path: string): Address<E> {
  return { path };
}

declare const viewType: unique symbol;
/** Name of an immutable, versioned snapshot that one actor publishes and others read. */
export interface ViewKey<T> {
  readonly view: string;
  readonly [viewType]?: () => T;
}
export function viewKey<T>(view: string): ViewKey<T> {
  return { view };
}

/** Appends one cause; bounded: the first (root) cause stays, the oldest of the middle go. */
export function because(prior: readonly Cause[] | undefined, next: Cause): readonly Cause[] {
  // Thousands of records keep theirs: what is spread into a literal takes room for 17.
  const all = (prior ?? []).concat(next);
  const first = all[0];
  if (all.length <= CAUSES_MAX || first === undefined) return all;
  return [first, ...all.slice(all.length - (CAUSES_MAX - 1))];
}
/** Without those that are about another pod. */
export function causesAbout(causes: readonly Cause[] | undefined, fullName: string): readonly Cause[] | undefined {
  return causes?.some((c) => c.about !== undefined && c.about !== fullName)
    ? causes.filter((c) => c.about === undefined || c.about === fullName)
    : causes;
}

/** Joins the causes of two coalesced messages: in order, without repeats, bounded. */
export function joinCauses(a: readonly Cause[] | undefined, b: readonly Cause[] | undefined): readonly Cause[] {
  let out: readonly Cause[] = a ?? [];
  for (const c of b ?? []) {
    if (!out.some((o) => o.atMs === c.atMs && o.by === c.by && o.what === c.what)) out = because(out, c);
  }
  return out;
}

/** What an `ask` comes to. `lost`: no answer within the time-out, or the actor ended first; the effect is unknown. */
export type Answer<R> = { kind: 'reply'; value: R } | { kind: 'refused'; reason: string } | { kind: 'lost'; reason: string };
/** Given to the asked actor inside its event. Calling it twice, or after the time-out, does nothing. */
export interface ReplyTo<R> {
  (value: R): void;
  refuse(reason: string): void;
  /** Aborted when the asker gave up (time-out, its own signal) or ended. */
  readonly signal: AbortSignal;
}
