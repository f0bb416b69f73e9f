/** The file that says when the last shutdown of the node began and ended, as the kubelet writes it. Pure. */

export const STATE_FILE = 'graceful_node_shutdown_state';
/** Two times are some 80 bytes. */
export const STATE_BYTES_MAX = 4096;
/** Go's zero time: it did not happen. */
const ZERO = '0001-01-01T00:00:00Z';

export interface ShutdownState {
  startedMs: number | null;
  endedMs: number | null;
}
export const NO_SHUTDOWN: ShutdownState = { startedMs: null, endedMs: null };

export function encodeState({ startedMs, endedMs }: ShutdownState): string {
  return JSON.stringify({ startTime: timeText(startedMs), endTime: timeText(endedMs) });
}

/** @throws Error that says what is wrong with it. */
export function decodeState(text: string): ShutdownState {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it holds no object');
  const { startTime, endTime } = value as { startTime?: unknown; endTime?: unknown };
  return { startedMs: timeOf('startTime', startTime), endedMs: timeOf('endTime', endTime) };
}

function timeText(ms: number | null): string {
  return ms === null ? ZERO : new Date(ms).toISOString();
}

/** RFC 3339; the kubelet writes its own zone and nanoseconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

function timeOf(field: string, value: unknown): number | null {
  if (value === undefined || value === ZERO) return null;
  const ms = typeof value === 'string' && TIME.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) throw new Error(`${field} is not a time`);
  return ms;
}
