/** The years that a time in the API can name. */
const MIN_MS = Date.UTC(1, 0, 1);
const MAX_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** As JSON has it. What a client's number of seconds leads out of the calendar is its first or last moment. */
export function timestamp(ms: number): string {
  return new Date(Math.min(MAX_MS, Math.max(MIN_MS, ms))).toISOString();
}
