/**
 * The waits between a container's exits and its next starts: 0, 10, 20, 40, 80, 160, 300, 300 s (pod lifecycle 5.12).
 * Back-off is data. What a daemon forgets by restarting is inferred from the restart count and the times that the
 * runtime kept, so that a crash loop does not begin anew.
 */
import type { Container } from '../../../kube/podTable.ts';
import { hashNameAndImage, matchesHash } from '../../../pod/runtime/containerHash.ts';
import type { CrashBackoffEntry, RuntimeContainer } from '../../../pod/runtime/seen.ts';

/** First wait (pod lifecycle 5.12). The longest is the node's to say (`crashLoopBackOff.maxContainerRestartPeriod`, default 300 s). */
export const BACKOFF_BASE_MS = 10_000;
/** An instance that ended this long after the last advance was healthy: the series starts again. */
export const BACKOFF_RESET_MS = 600_000;
/** The wall clock is slewed against the monotonic one, and times of the runtime may be in whole seconds. */
const CLOCK_SLACK_MS = 2_000;

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
  const kept = withStrangeExit(entry, exited, input);
  const exitMonoMs = exitAtMonoMs(kept, exited, input);
  if (exitMonoMs !== null) {
    if (exitMonoMs - entry.updatedAtMonoMs > BACKOFF_RESET_MS) return advanced(base);
    const delayMs = Math.min(entry.delayMs, input.maxMs);
    const waitMs = Math.min(delayMs, exitMonoMs + delayMs - input.nowMonoMs);
    if (waitMs > 0) return { allowed: false, retryAtWallMs: input.nowWallMs + waitMs, delayMs, entry: kept };
  }
  return advanced(Math.min(entry.delayMs * 2, input.maxMs));
}

type Exit = Pick<RuntimeContainer, 'startedAtMs' | 'finishedAtMs'>;

/** The exit by the runtime's clock, on the monotonic one; null where it cannot be: before the start was allowed, or to come. */
function saidAtMonoMs(entry: CrashBackoffEntry, finishedAtMs: number, input: CheckBackoffInput): number | null {
  const monoMs = input.nowMonoMs - (input.nowWallMs - finishedAtMs);
  return monoMs >= entry.updatedAtMonoMs - CLOCK_SLACK_MS && monoMs <= input.nowMonoMs ? monoMs : null;
}

/** Notes when an exit that cannot have been when the runtime says was first seen; an entry about another exit is left as it is. */
function withStrangeExit(entry: CrashBackoffEntry, { finishedAtMs }: Exit, input: CheckBackoffInput): CrashBackoffEntry {
  if (finishedAtMs === null || entry.strangeExit?.finishedAtMs === finishedAtMs) return entry;
  if (saidAtMonoMs(entry, finishedAtMs, input) !== null) return entry;
  return { ...entry, strangeExit: { finishedAtMs, seenAtMonoMs: input.nowMonoMs } };
}

/**
 * When the instance ended. Normally the wall clock tells. It cannot where the runtime's clock is another, or one of the two was set: then
 * the exit is placed a run's length after the start that the entry recorded and no later than it was first seen. So a clock that is an hour
 * behind lifts no wait, and one that is an hour ahead makes none longer. Null: the runtime does not say that it ended.
 */
function exitAtMonoMs(entry: CrashBackoffEntry, { startedAtMs, finishedAtMs }: Exit, input: CheckBackoffInput): number | null {
  if (finishedAtMs === null) return null;
  const strange = entry.strangeExit?.finishedAtMs === finishedAtMs ? entry.strangeExit : null;
  if (strange === null) return saidAtMonoMs(entry, finishedAtMs, input) ?? input.nowMonoMs;
  const ranMs = startedAtMs === null ? 0 : Math.max(0, finishedAtMs - startedAtMs);
  return Math.min(entry.updatedAtMonoMs + ranMs, strange.seenAtMonoMs);
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
