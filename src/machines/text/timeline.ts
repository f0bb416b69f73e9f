/** A pod's life as lines: each state of its worker and each call of the runtime, with how long it took. Pure. */
import { clockTime, shortDuration } from './duration.ts';
import { renderTable } from './table.ts';

export interface TimelineData {
  name: string;
  seenAtMs: number;
  steps: readonly { atMs: number; to: string; event: string; reason: string }[];
  calls: readonly { method: string; about: string; startMs: number; endMs: number | null; error: string }[];
  /** When it was Ready first; absent: never yet, or it is not kept. */
  readyAtMs?: number;
  /** Entries that are no longer there. */
  left: number;
  /** False: calls are not kept on this node, only what the flight recorder holds of its states. */
  kept: boolean;
}

export function renderTimeline(t: TimelineData, o: { nowMs: number }): string[] {
  const steps = t.steps.map((s, i) => ({
    atMs: s.atMs,
    took: shortDuration((t.steps[i + 1]?.atMs ?? (s.to === 'finished' ? s.atMs : o.nowMs)) - s.atMs),
    what: s.to,
    why: [`on ${s.event}`, s.reason].filter((w) => w !== '').join(', '),
  }));
  const calls = t.calls.map((c) => ({
    atMs: c.startMs,
    took: c.endMs === null ? `${shortDuration(o.nowMs - c.startMs)} …` : shortDuration(c.endMs - c.startMs),
    what: `  ${c.method}`,
    why: [c.about, c.error === '' ? '' : `failed: ${c.error}`].filter((w) => w !== '').join(' '),
  }));
  const first = t.steps[0]?.atMs ?? Number.POSITIVE_INFINITY;
  const seen =
    t.seenAtMs > 0
      ? [
          {
            atMs: t.seenAtMs,
            took: first > t.seenAtMs && Number.isFinite(first) ? shortDuration(first - t.seenAtMs) : '',
            what: 'seen',
            why: '',
          },
        ]
      : [];
  const ready = t.readyAtMs === undefined ? [] : [{ atMs: t.readyAtMs, took: '', what: 'Ready', why: 'for the first time' }];
  const rows = [...seen, ...steps, ...calls, ...ready].sort((a, b) => a.atMs - b.atMs);
  const began = rows[0]?.atMs ?? 0;
  const table = renderTable(
    ['AT', 'AFTER', 'TOOK', 'WHAT', 'WHY'],
    rows.map((r) => [clockTime(r.atMs), shortDuration(r.atMs - began), r.took, r.what, r.why]),
  );
  const notes = [
    ...(t.left > 0 ? [`(${t.left} entries in between are no longer kept)`] : []),
    ...(t.kept ? [] : ['(calls of the runtime are kept only with --actorlet-inspect; states as long as the flight recorder holds them)']),
  ];
  return rows.length === 0 ? ['Nothing is recorded of it (any more).', ...notes] : [...table, ...notes];
}
