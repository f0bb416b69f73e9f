/** Durations as people read them. Pure. */

/** `850ms`, `12s`, `4m10s`, `3h5m`, `2d3h`: the two largest units, like kubectl's ages. */
export function shortDuration(ms: number): string {
  const safe = Math.max(0, ms);
  if (safe < 1000) return `${Math.round(safe)}ms`;
  const s = Math.floor(safe / 1000);
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return s % 60 === 0 || m >= 10 ? `${m}m` : `${m}m${s % 60}s`;
  const h = Math.floor(m / 60);
  if (h < 24) return m % 60 === 0 ? `${h}h` : `${h}h${m % 60}m`;
  const d = Math.floor(h / 24);
  return h % 24 === 0 ? `${d}d` : `${d}d${h % 24}h`;
}

/** `14:03:07.120Z` of a wall time: the day is left to the reader. */
export function clockTime(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(11);
}
