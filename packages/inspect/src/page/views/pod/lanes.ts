/** A pod's life as bars on lanes: the states of its worker, its containers, each call of the runtime. Pure. */
import type { PodFrame } from '../../../feed/frames.ts';

export type Told = NonNullable<PodFrame['pod']>;
/** `start`: until it was at rest. `last`: its last minute, up to now or to its end. */
export type Window = 'start' | 'last' | 'all';

export interface Bar {
  key: string;
  name: string;
  fromMs: number;
  toMs: number;
  kind: string;
  note: string;
  open: boolean;
}
export interface Lane {
  name: string;
  init: boolean;
  bars: readonly Bar[];
}
const LAST_MS = 60_000;
/** A troubled or ended pod that lived no longer is shown from its start to its end. */
const WHOLE_MAX_MS = 600_000;
/** Steps of the time axis, so that there are at most so many. */
const TICKS_MAX = 4;
const TICK_STEPS_MS = [1, 2, 5].flatMap((n) => [n, 10 * n, 100 * n, 1_000 * n, 10_000 * n]);
const TICK_STEPS_LONG_MS = [30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map((s) => s * 1_000);

export function phasesOf(told: Told, now: number): Bar[] {
  const { steps } = told.history;
  const bars: Bar[] = steps.map((s, i) => {
    const next = steps[i + 1];
    const ended = s.to === 'finished';
    return {
      key: `${s.atMs} ${i}`,
      name: s.to.replace(/^syncing\./, ''),
      fromMs: s.atMs,
      toMs: next?.atMs ?? (ended ? s.atMs : now),
      kind: kindOf(s.to),
      note: s.reason,
      open: next === undefined && !ended,
    };
  });
  const first = bars[0];
  if (told.seenAtMs > 0 && first !== undefined && first.fromMs > told.seenAtMs) {
    bars.unshift({
      key: 'seen',
      name: 'admission',
      fromMs: told.seenAtMs,
      toMs: first.fromMs,
      kind: 'wait',
      note: 'from seen to its worker',
      open: false,
    });
  }
  return bars;
}

function kindOf(state: string): string {
  if (/settled$/.test(state)) return 'rest';
  if (/^terminat|killing|finished|cleaning/.test(state)) return 'end';
  if (/Failed|Away|backingOff|Again/.test(state)) return 'trouble';
  if (/fencing|inspecting|deciding/.test(state)) return 'look';
  return 'act';
}

/** A lane per container: running, how it ended, why it waits. */
export function containerLanes(told: Told, now: number): Lane[] {
  const lanes = new Map<string, Lane & { bars: Bar[] }>();
  for (const [i, s] of told.history.containers.entries()) {
    const key = `${s.init} ${s.name}`;
    const lane = lanes.get(key) ?? { name: s.name, init: s.init, bars: [] };
    lanes.set(key, lane);
    const before = lane.bars.at(-1);
    if (before !== undefined) Object.assign(before, { toMs: s.fromMs, open: false });
    const ended = s.state !== 'running' && s.lastExit !== '' && (before === undefined || before.name === RUNNING);
    const name =
      s.state === 'running' ? RUNNING : [ended ? s.lastExit : '', isRepeated(s) ? '' : s.reason].filter((t) => t !== '').join(' · ');
    const note = s.restartCount > 0 ? `${s.restartCount} restarts` : '';
    lane.bars.push({ key: `${s.fromMs} ${i}`, name: name || s.state, fromMs: s.fromMs, toMs: now, kind: kindOfSpan(s), note, open: true });
  }
  return [...lanes.values()];
}
const RUNNING = 'running';
type Span = Told['history']['containers'][number];

/** The exit's text has the reason already. */
function isRepeated({ state, reason, lastExit }: Span): boolean {
  return state === 'terminated' && lastExit.includes(`(${reason})`);
}
function kindOfSpan({ state, reason, lastExit }: Span): string {
  if (state === 'running') return 'rest';
  if (state === 'terminated') return lastExit.startsWith('exit code 0') ? 'end' : 'failed';
  return /BackOff|Err|Invalid/.test(reason) ? 'trouble' : 'wait';
}

export function callsOf(told: Told, now: number): Bar[] {
  return told.history.calls.map((c, i) => ({
    key: `${c.startMs} ${c.method} ${i}`,
    name: c.method,
    fromMs: c.startMs,
    toMs: c.endMs ?? now,
    kind: c.error === '' ? 'call' : 'failed',
    note: c.error === '' ? c.about : `${c.about} ${c.error}`,
    open: c.endMs === null,
  }));
}

/** Where a pod's worker ended; `now` for one that lives. */
function endOf(phases: readonly Bar[], now: number): number {
  const last = phases.at(-1);
  return last === undefined || last.open ? now : last.toMs;
}

/** What a reader sees first: how it starts, but of a pod in trouble or one that ended how it came to that. */
export function firstWindow(phases: readonly Bar[], o: { troubled: boolean; first: number; now: number }): Window {
  const ends = phases.at(-1)?.kind === 'end';
  if (!o.troubled && !ends) return 'start';
  return endOf(phases, o.now) - o.first > WHOLE_MAX_MS ? 'last' : 'all';
}

export function spanOf(window: Window, o: { told: Told; first: number; now: number; phases: readonly Bar[] }): [number, number] {
  const { first, now, told, phases } = o;
  const end = endOf(phases, now);
  const room = (from: number, to: number): [number, number] => [from, Math.max(from + 100, to + (to - from) * (to < now ? 0.08 : 0))];
  if (window === 'last') return room(Math.max(first, end - LAST_MS), end);
  if (window === 'all') return room(first, end);
  const rest = phases.find((p) => p.kind === 'rest');
  // The worker rests while the runtime pulls an image and starts a container.
  const starting = told.history.readyAtMs === undefined && told.history.calls.some((c) => c.endMs === null);
  const settled = rest === undefined || starting ? now : Math.max(rest.fromMs, told.history.readyAtMs ?? 0, ...startEnds(told));
  return room(first, Math.min(end, settled));
}
/** When each container had been started for the first time. */
function startEnds(told: Told): number[] {
  const starts = told.history.calls.filter((c) => c.endMs !== null && c.method === 'StartContainer');
  return starts.slice(0, told.containers.length).map((c) => c.endMs ?? 0);
}

/** Milliseconds after the beginning at which the axis has a mark. */
export function ticksOf(spanMs: number): number[] {
  const steps = [...TICK_STEPS_MS.filter((s) => s < 30_000), ...TICK_STEPS_LONG_MS].toSorted((a, b) => a - b);
  const step = steps.find((s) => spanMs / s <= TICKS_MAX) ?? Math.ceil(spanMs / TICKS_MAX);
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, i) => i * step);
}

export function totalsOf(phases: readonly Bar[], fromMs: number, toMs: number): [string, number, string][] {
  const out = new Map<string, [string, number, string]>();
  for (const p of phases) {
    const [name, ms, kind] = out.get(p.name) ?? [p.name, 0, p.kind];
    out.set(p.name, [name, ms + Math.max(0, Math.min(p.toMs, toMs) - Math.max(p.fromMs, fromMs)), kind]);
  }
  return [...out.values()].sort((a, b) => b[1] - a[1]);
}
