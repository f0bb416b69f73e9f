/** Errors of the supervision, and how anything thrown becomes an Error. */

/** The specification given to `createTree` is wrong. Lists every problem found, each with the path and field. */
export class SpecError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`invalid supervision tree: ${problems.join('; ')}`);
    this.name = 'SpecError';
    this.problems = problems;
  }
}

/** The actor did not meet its `ready.when` within `ready.timeoutMs`. Counts as a crash. */
export class NotReadyError extends Error {
  constructor(path: string, timeoutMs: number) {
    super(`${path} was not ready within ${timeoutMs} ms`);
    this.name = 'NotReadyError';
  }
}

/** A supervisor went over its intensity. */
export class EscalationError extends Error {
  readonly path: string;
  constructor(path: string, why: string) {
    super(`supervisor ${path} gave up: ${why}`);
    this.name = 'EscalationError';
    this.path = path;
  }
}

export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  if (typeof thrown === 'string') return new Error(thrown);
  try {
    return new Error(`thrown: ${JSON.stringify(thrown)}`);
  } catch {
    return new Error(`thrown: ${String(thrown)}`);
  }
}

/** True for 1, 2, 4, 8, ...: which of many equal lines to log. */
export function isPowerOfTwo(n: number): boolean {
  return n > 0 && Number.isInteger(Math.log2(n));
}
