/**
 * When a child is started again: back-off series, sliding-window intensity, and what one exit leads to.
 * Pure: time is monotonic milliseconds given by the caller, chance is a number in [0, 1) given by the caller.
 */

export type RestartType = 'permanent' | 'transient' | 'temporary';
export type Strategy = 'one_for_one' | 'rest_for_one';

/** Waits before restart n (0-based): min * factor^n, at most max, lengthened by up to `jitter` of itself. */
export interface Backoff {
  minMs: number;
  maxMs: number;
  factor: number;
  jitter: number;
}
/** More than `max` crashes within `periodMs` (monotonic, sliding) is over the limit. */
export interface Intensity {
  max: number;
  periodMs: number;
}

export type ExitReason =
  | { kind: 'normal' }
  /** Stopped by its supervisor in an orderly way. */
  | { kind: 'shutdown' }
  /** Stopped by an operator or a fault injector: restarted as a crash is, but never counted as poison. */
  | { kind: 'killed'; by: string }
  | { kind: 'error'; error: Error };

/** The part of a child specification that decides restarts. */
export interface RestartRules {
  restart: RestartType;
  intensity: Intensity;
  backoff: Backoff;
}

/** What is remembered of one child between its incarnations. */
export interface RestartHistory {
  /** Counted crashes still inside the window, oldest first, monotonic ms. */
  crashes: readonly number[];
  /** Crashes in a row, for the back-off series; also those that do not count. */
  row: number;
  /** Start of the newest incarnation, monotonic ms. */
  startedAtMs: number;
}
export const NO_HISTORY: RestartHistory = { crashes: [], row: 0, startedAtMs: 0 };

export interface Exit {
  reason: ExitReason;
  /** Monotonic ms. */
  atMs: number;
  /** In [0, 1), for jitter. */
  random: number;
  /** False for a crash held against a mailbox item (poison). */
  counts: boolean;
}

export type Verdict = { history: RestartHistory } & (
  | { next: 'restart'; delayMs: number; counted: boolean }
  | { next: 'end' }
  /** Over its intensity. */
  | { next: 'give-up' }
);

/** Delay before restart `n` (0-based). With {10 s, 300 s, 2, 0}: 10, 20, 40, 80, 160, 300, 300 s. */
export function backoffDelayMs(backoff: Backoff, n: number, random: number): number {
  // factor^n may overflow to Infinity for a long row: min() takes care of it.
  const plain = Math.min(backoff.minMs * backoff.factor ** n, backoff.maxMs);
  return plain * (1 + backoff.jitter * random);
}

/** Delay before retry `n` (0-based) of a machine: `minMs`, doubled each time, at most `maxMs`. `jitter` as in {@link Backoff}. */
export function retryDelayMs(of: Pick<Backoff, 'minMs' | 'maxMs'> & { jitter?: number }, n: number, random = 0): number {
  return backoffDelayMs({ jitter: 0, ...of, factor: 2 }, Math.max(0, n), random);
}

/** Adds crashes to a window and drops what is older than the period. A crash exactly `periodMs` old is out. */
export function addCrashes(
  window: readonly number[],
  added: readonly number[],
  intensity: Intensity,
): { crashes: readonly number[]; over: boolean } {
  const all = [...window, ...added].sort((a, b) => a - b);
  const newest = all.at(-1) ?? 0;
  const crashes = all.filter((at) => newest - at < intensity.periodMs);
  return { crashes, over: crashes.length > intensity.max };
}

/** What an exit that nobody asked for leads to. */
export function judgeExit(rules: RestartRules, history: RestartHistory, exit: Exit): Verdict {
  const clean = exit.reason.kind === 'normal' || exit.reason.kind === 'shutdown';
  if (rules.restart === 'temporary' || (clean && rules.restart === 'transient')) return { next: 'end', history };
  const row = exit.atMs - history.startedAtMs >= rules.backoff.maxMs ? 0 : history.row;
  const delayMs = backoffDelayMs(rules.backoff, row, exit.random);
  if (!exit.counts) return { next: 'restart', delayMs, counted: false, history: { ...history, row: row + 1 } };
  const { crashes, over } = addCrashes(history.crashes, [exit.atMs], rules.intensity);
  const next: RestartHistory = { ...history, crashes, row: row + 1 };
  return over ? { next: 'give-up', history: next } : { next: 'restart', delayMs, counted: true, history: next };
}
