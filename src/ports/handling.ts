/**
 * What this process handles at this moment, kept where the death of the process does not reach it: a pod or document that
 * kills the daemon twice is set aside at the next start (docs/architecture/boot.md, "Poison across processes").
 */
import type { Pod } from '../machines/kube/types.ts';

export interface Handling {
  /**
   * Runs `fn` to its end in the name of `subject` (`pod UID`, `file PATH DIGEST`): the process dying meanwhile counts against
   * it. Nested calls: the innermost counts. Lets errors through.
   */
  of<T>(subject: string, fn: () => T): T;
  /** Why this document is set aside; null: it is not. */
  documentAside(subject: string): string | null;
  /** Why this pod, in this definition, is set aside; null: it is not. */
  podAside(pod: Pod): string | null;
}

/** `fn` in the name of the pod, where the process keeps such notes. */
export function handlingPod<T>(ports: { readonly handling?: Handling }, uid: string, fn: () => T): T {
  return ports.handling === undefined ? fn() : ports.handling.of(`pod ${uid}`, fn);
}

/** A document that one step decodes; `aside` where it is set aside. */
export function handlingDocument<T>(
  { handling }: { readonly handling?: Handling },
  subject: string,
  o: { aside(why: string): T; decode(): T },
): T {
  const why = handling?.documentAside(subject) ?? null;
  if (why !== null) return o.aside(why);
  return handling === undefined ? o.decode() : handling.of(subject, o.decode);
}
