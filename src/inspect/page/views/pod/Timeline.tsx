/** A pod's life as bars: the states of its worker, and each call of the runtime as a span. */
import { useState } from 'react';
import type { PodFrame } from '../../../feed/frames.ts';
import { clock, duration } from '../../words.ts';

type Told = NonNullable<PodFrame['pod']>;
type Window = 'start' | 'all' | 'last';

interface Bar {
  key: string;
  name: string;
  fromMs: number;
  toMs: number;
  kind: string;
  note: string;
  open: boolean;
}
const LAST_MS = 60_000;
const CALLS_SHOWN_MAX = 40;
/** Shorter ones would be invisible. */
const BAR_PERCENT_MIN = 0.35;

export function Timeline({ told, now }: { told: Told; now: number }) {
  const [window, setWindow] = useState<Window>('start');
  const phases = phasesOf(told, now);
  const calls = callsOf(told, now);
  const first = Math.min(told.seenAtMs || Number.POSITIVE_INFINITY, ...phases.map((p) => p.fromMs), ...calls.map((c) => c.fromMs));
  if (!Number.isFinite(first)) return <p className="quiet">Nothing is recorded of it.</p>;
  const { readyAtMs } = told.history;
  const [fromMs, toMs] = span(window, { told, first, now, phases });
  const seen = (b: Bar) => b.toMs >= fromMs && b.fromMs <= toMs;
  const shownPhases = phases.filter(seen);
  const shownCalls = calls.filter(seen);
  const at = (ms: number) => Math.min(100, Math.max(0, ((ms - fromMs) / (toMs - fromMs)) * 100));
  const totals = totalsOf(shownPhases, fromMs, toMs);
  return (
    <div className="timeline">
      <div className="bar">
        {(
          [
            ['start', 'Start'],
            ['last', 'Last minute'],
            ['all', 'Everything'],
          ] as const
        ).map(([key, text]) => (
          <button key={key} type="button" aria-pressed={window === key} onClick={() => setWindow(key)}>
            {text}
          </button>
        ))}
        <span className="quiet">
          {clock(fromMs)} + {duration(toMs - fromMs)}
          {told.history.left > 0 && `, ${told.history.left} older entries left out`}
        </span>
      </div>
      <div className="lanes">
        <div className="lane">
          <span className="lane-name">worker</span>
          <div className="lane-bars phases">
            {shownPhases.map((b) => (
              <BarLine key={b.key} b={b} left={at(b.fromMs)} right={at(b.toMs)} text={b.name} />
            ))}
          </div>
        </div>
        {readyAtMs !== undefined && readyAtMs >= fromMs && readyAtMs <= toMs && (
          <div className="lane">
            <span className="lane-name">Ready first</span>
            <div className="lane-bars">
              <BarLine b={readyBar(readyAtMs)} left={at(readyAtMs)} right={at(readyAtMs)} text={`after ${duration(readyAtMs - first)}`} />
            </div>
          </div>
        )}
        {shownCalls.slice(-CALLS_SHOWN_MAX).map((b) => (
          <div className="lane" key={b.key}>
            <span className="lane-name" title={`${b.name} ${b.note}`}>
              {b.name} <span className="quiet">{b.note}</span>
            </span>
            <div className="lane-bars">
              <BarLine
                b={b}
                left={at(b.fromMs)}
                right={at(b.toMs)}
                text={b.open ? `${duration(b.toMs - b.fromMs)} …` : duration(b.toMs - b.fromMs)}
              />
            </div>
          </div>
        ))}
        {shownCalls.length > CALLS_SHOWN_MAX && <p className="quiet">{shownCalls.length - CALLS_SHOWN_MAX} earlier calls are not drawn.</p>}
      </div>
      <ul className="plain totals" aria-label="Time per state">
        {totals.map(([name, ms, kind]) => (
          <li key={name}>
            <i className={`swatch phase-${kind}`} /> {name} <strong>{duration(ms)}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}

function BarLine({ b, left, right, text }: { b: Bar; left: number; right: number; text: string }) {
  const width = Math.max(BAR_PERCENT_MIN, right - left);
  const isPhase = b.kind !== 'call' && b.kind !== 'failed';
  return (
    <div
      className={`span phase-${b.kind}${b.open ? ' open' : ''}`}
      title={`${b.name} ${b.note}\n${clock(b.fromMs)}, ${duration(b.toMs - b.fromMs)}`}
      ref={(el) => {
        el?.style.setProperty('left', `${left}%`);
        el?.style.setProperty('width', `${width}%`);
      }}
    >
      <span className={width >= 9 ? '' : left < 80 ? 'beside' : 'before'}>{width < 9 && isPhase ? '' : text}</span>
    </div>
  );
}

function phasesOf(told: Told, now: number): Bar[] {
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

function readyBar(atMs: number): Bar {
  return { key: 'ready', name: 'Ready first', fromMs: atMs, toMs: atMs, kind: 'call', note: '', open: false };
}

function kindOf(state: string): string {
  if (/settled$/.test(state)) return 'rest';
  if (/^terminat|killing|finished|cleaning/.test(state)) return 'end';
  if (/Failed|Away|backingOff|Again/.test(state)) return 'trouble';
  if (/fencing|inspecting|deciding/.test(state)) return 'look';
  return 'act';
}

function callsOf(told: Told, now: number): Bar[] {
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

function span(window: Window, o: { told: Told; first: number; now: number; phases: readonly Bar[] }): [number, number] {
  const { first, now, told } = o;
  if (window === 'last') return [Math.max(first, now - LAST_MS), now];
  if (window === 'all') return [first, now];
  const rest = o.phases.find((p) => p.kind === 'rest');
  const settled = rest === undefined ? now : Math.max(rest.fromMs, told.history.readyAtMs ?? 0, ...startEnds(told));
  const end = Math.min(now, settled);
  return [first, Math.max(first + 100, end + (end - first) * 0.08)];
}
/** When each container had been started for the first time. */
function startEnds(told: Told): number[] {
  const starts = told.history.calls.filter((c) => c.endMs !== null && c.method === 'StartContainer');
  return starts.slice(0, told.containers.length).map((c) => c.endMs ?? 0);
}

function totalsOf(phases: readonly Bar[], fromMs: number, toMs: number): [string, number, string][] {
  const out = new Map<string, [string, number, string]>();
  for (const p of phases) {
    const [name, ms, kind] = out.get(p.name) ?? [p.name, 0, p.kind];
    out.set(p.name, [name, ms + Math.max(0, Math.min(p.toMs, toMs) - Math.max(p.fromMs, fromMs)), kind]);
  }
  return [...out.values()].sort((a, b) => b[1] - a[1]);
}
