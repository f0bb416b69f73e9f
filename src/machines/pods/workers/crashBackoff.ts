/**
 * The waits between a container's exits and its next starts: 0, 10, 20, 40, 80, 160, 300, 300 s (pod lifecycle 5.12).
 * Back-off is data. What a daemon forgets by restarting is inferred from the restart count and the times that the
 * runtime kept, so that a crash loop does not begin anew.
 */
import type { Container } from '../../k8s.ts';
import { hashNameAndImage, matchesHash } from '../containerHash.ts';
import type { CrashBackoffEntry, RuntimeContainer } from '../types.ts';

/** First wait. The longest is the node's to say (`crashLoopBackOff.maxContainerRestartPeriod`, default 300 s). */
export const BACKOFF_BASE_MS = 10_000;
/** An instance that ended this long after the last advance was healthy: the series starts again. */
export const BACKOFF_RESET_MS = 600_000;

export interface CheckBackoffInput {
  entry: CrashBackoffEntry | undefined;
  /** Newest exited instance, leaving out instances stopped by this node in order to be replaced (trap 17). */
  newestExited: Pick<RuntimeContainer, 'startedAtMs' | 'finishedAtMs' | 'hash'> | null | undefined;
  /** Restart count of the newest instance; 0 for the first. */
  restartCount: number;
  nowWallMs: number;
  nowMonoMs: number;
  baseMs: number;
  maxMs: number;
  /**
   * The present definition. Given, an exited instance of another definition is no reason to wait when `entry` is
   * missing: a changed image starts afresh (trap 16).
   */
  container?: Container;
  /**
   * Wall time since which `entry` has been kept without a gap. An instance that started later and has no entry truly has
   * none (it replaced one that a probe ended), so nothing is inferred for it. Absent: always infer.
   */
  rememberedSinceWallMs?: number;
}

export type BackoffVerdict =
  /** Start now and keep `next` (undefined: nothing exited yet, no back-off). */
  | { allowed: true; next: CrashBackoffEntry | undefined }
  | {
      allowed: false;
      /** When to try again, on the wall clock as it stands now. */
      retryAtWallMs: number;
      /** The whole wait, as the `CrashLoopBackOff` message names it. */
      delayMs: number;
      /** Keep this: it may have been inferred. */
      entry: CrashBackoffEntry;
    };

/** Key of an entry within its pod: a changed definition starts a fresh series. */
export function backoffKey(container: Container): string {
  return `${container.name}_${hashNameAndImage(container)}`;
}

export function checkBackoff(input: CheckBackoffInput): BackoffVerdict {
  const exited = input.newestExited;
  if (exited === null || exited === undefined) return { allowed: true, next: input.entry };
  const base = Math.min(input.baseMs, input.maxMs);
  const entry = input.entry ?? inferEntry(input, exited, base);
  const advanced = (delayMs: number): BackoffVerdict => ({
    allowed: true,
    next: { delayMs, updatedAtMonoMs: input.nowMonoMs, updatedAtWallMs: input.nowWallMs },
  });
  if (entry === undefined) return advanced(base);
  const finishedAtMs = exited.finishedAtMs;
  if (finishedAtMs !== null) {
    const kept = withFutureExit(entry, { finishedAtMs, input });
    const stayedMs =
      finishedAtMs > input.nowWallMs
        ? futureExitMonoMs({ input, exited, finishedAtMs, entry: kept }) - entry.updatedAtMonoMs
        : finishedAtMs - entry.updatedAtWallMs;
    if (stayedMs > BACKOFF_RESET_MS) return advanced(base);
    const delayMs = Math.min(entry.delayMs, input.maxMs);
    const waitMs = remainingMs({ input, exited, finishedAtMs, entry: kept, delayMs });
    if (waitMs > 0) return { allowed: false, retryAtWallMs: input.nowWallMs + waitMs, delayMs, entry: kept };
  }
  return advanced(Math.min(entry.delayMs * 2, input.maxMs));
}

/** Notes when an exit in the future was first seen; an entry about another exit is left as it is. */
function withFutureExit(entry: CrashBackoffEntry, at: { finishedAtMs: number; input: CheckBackoffInput }): CrashBackoffEntry {
  const { finishedAtMs, input } = at;
  if (finishedAtMs <= input.nowWallMs || entry.futureExit?.finishedAtMs === finishedAtMs) return entry;
  return { ...entry, futureExit: { finishedAtMs, seenAtMonoMs: input.nowMonoMs } };
}

/**
 * What is left of the wait. Normally the wall clock tells. An exit in the future means that the clock was set back:
 * then the exit is placed on the monotonic clock, a run's length after the start that the entry recorded and no later
 * than it was first seen (the clock may have jumped within the run), so that a clock set back by an hour does not hold a
 * container for an hour.
 */
function remainingMs(at: {
  input: CheckBackoffInput;
  exited: Pick<RuntimeContainer, 'startedAtMs'>;
  finishedAtMs: number;
  entry: CrashBackoffEntry;
  delayMs: number;
}): number {
  const { input, finishedAtMs, delayMs } = at;
  if (finishedAtMs <= input.nowWallMs) return finishedAtMs + delayMs - input.nowWallMs;
  return Math.min(delayMs, futureExitMonoMs(at) + delayMs - input.nowMonoMs);
}

/** When an exit that the wall clock puts into the future can have been, on the monotonic clock. */
function futureExitMonoMs(at: {
  input: CheckBackoffInput;
  exited: Pick<RuntimeContainer, 'startedAtMs'>;
  finishedAtMs: number;
  entry: CrashBackoffEntry;
}): number {
  const { exited, entry, finishedAtMs, input } = at;
  const ranMs = exited.startedAtMs === null ? 0 : Math.max(0, finishedAtMs - exited.startedAtMs);
  return Math.min(entry.updatedAtMonoMs + ranMs, entry.futureExit?.seenAtMonoMs ?? input.nowMonoMs);
}

/** Where the series stood when the instance that has now exited was started: its restart count says how far it had come. */
function inferEntry(
  input: CheckBackoffInput,
  exited: Pick<RuntimeContainer, 'startedAtMs' | 'finishedAtMs' | 'hash'>,
  baseMs: number,
): CrashBackoffEntry | undefined {
  if (input.restartCount <= 0 || exited.finishedAtMs === null) return undefined;
  if (input.container !== undefined && !matchesHash(input.container, exited.hash)) return undefined;
  const startedAtMs = exited.startedAtMs ?? exited.finishedAtMs;
  if (input.rememberedSinceWallMs !== undefined && startedAtMs >= input.rememberedSinceWallMs) return undefined;
  const steps = Math.min(input.restartCount - 1, 30);
  return {
    delayMs: Math.min(baseMs * 2 ** steps, input.maxMs),
    updatedAtWallMs: startedAtMs,
    updatedAtMonoMs: input.nowMonoMs - Math.max(0, input.nowWallMs - startedAtMs),
  };
}
