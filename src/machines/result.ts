import { cut } from './text/errorList.ts';

/** Outcome of a pure builder: what was asked for, or why it cannot be. */
export type Built<T> = { ok: true; value: T } | { ok: false; message: string };

export function built<T>(value: T): Built<T> {
  return { ok: true, value };
}
/** Longest message of a refusal: it quotes what the pod's author wrote, and ends up in statuses, events and logs. */
const MESSAGE_CHARS_MAX = 4_096;

export function refused(message: string): { ok: false; message: string } {
  return { ok: false, message: cut(message, MESSAGE_CHARS_MAX) };
}
