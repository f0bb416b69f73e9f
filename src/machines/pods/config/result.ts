/** Outcome of a pure builder: what was asked for, or why it cannot be. */
export type Built<T> = { ok: true; value: T } | { ok: false; message: string };

export function built<T>(value: T): Built<T> {
  return { ok: true, value };
}
export function refused(message: string): { ok: false; message: string } {
  return { ok: false, message };
}
