/** A pod's life as lanes under one time axis. */
import { useState } from 'react';
import { Icon } from '../../bits.tsx';
import { clock, duration } from '../../words.ts';
import { type Bar, callsOf, containerLanes, firstWindow, phasesOf, spanOf, type Told, ticksOf, totalsOf, type Window } from './lanes.ts';

const CALLS_SHOWN_MAX = 40;
/** Shorter ones would be invisible. */
const BAR_PERCENT_MIN = 0.35;
/** Text in a narrower bar would be cut: it stands beside it. */
const TEXT_PERCENT_MIN = 9;
/** Behind this share the axis has no room for a text. */
const TICKS_TO = 0.95;
const WINDOWS: readonly (readonly [Window, string])[] = [
  ['start', 'Start'],
  ['last', 'Last minute'],
  ['all', 'Everything'],
];

export function Timeline({ told, now, troubled }: { told: Told; now: number; troubled: boolean }) {
  const [chosen, setWindow] = useState<Window | null>(null);
  const [callsShown, setWithCalls] = useState<boolean | null>(null);
  const phases = phasesOf(told, now);
  const calls = callsOf(told, now);
  const lanes = containerLanes(told, now);
  const starts = [...phases, ...calls, ...lanes.flatMap((l) => l.bars)].map((b) => b.fromMs);
  const first = Math.min(told.seenAtMs || Number.POSITIVE_INFINITY, ...starts);
  if (!Number.isFinite(first)) return <p className="quiet">Nothing is recorded of it.</p>;
  const window = chosen ?? firstWindow(phases, { troubled, first, now });
  // Calls take most of the time of a start.
  const withCalls = callsShown ?? window === 'start';
  const { readyAtMs } = told.history;
  const [fromMs, toMs] = spanOf(window, { told, first, now, phases });
  const seen = (b: Bar) => b.toMs >= fromMs && b.fromMs <= toMs;
  const shownPhases = phases.filter(seen);
  const shownCalls = calls.filter(seen);
  const at = (ms: number) => Math.min(100, Math.max(0, ((ms - fromMs) / (toMs - fromMs)) * 100));
  return (
    <div className="timeline">
      <div className="bar">
        {WINDOWS.map(([key, text]) => (
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
        <Axis spanMs={toMs - fromMs} />
        <LaneRow name="worker" bars={shownPhases} at={at} tall />
        {lanes.map((l) => (
          <LaneRow key={`${l.init} ${l.name}`} name={l.name} note={l.init ? 'init' : ''} bars={l.bars.filter(seen)} at={at} tall />
        ))}
        {readyAtMs !== undefined && readyAtMs >= fromMs && readyAtMs <= toMs && (
          <LaneRow name="Ready first" bars={[readyBar(readyAtMs)]} at={at} text={() => `after ${duration(readyAtMs - first)}`} />
        )}
        {shownCalls.length > 0 && (
          <button type="button" className="linkish" aria-expanded={withCalls} onClick={() => setWithCalls(!withCalls)}>
            <Icon name={withCalls ? 'open' : 'closed'} /> {shownCalls.length} calls of the runtime
          </button>
        )}
        {withCalls &&
          shownCalls
            .slice(-CALLS_SHOWN_MAX)
            .map((b) => <LaneRow key={b.key} name={b.name} note={b.note} bars={[b]} at={at} text={lengthOf} />)}
        {withCalls && shownCalls.length > CALLS_SHOWN_MAX && (
          <p className="quiet">{shownCalls.length - CALLS_SHOWN_MAX} earlier calls are not drawn.</p>
        )}
      </div>
      <ul className="plain totals" aria-label="Time per state">
        {totalsOf(shownPhases, fromMs, toMs).map(([name, ms, kind]) => (
          <li key={name}>
            <i className={`swatch phase-${kind}`} /> {name} <strong>{duration(ms)}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}

const lengthOf = (b: Bar): string => `${duration(b.toMs - b.fromMs)}${b.open ? ' …' : ''}`;

function Axis({ spanMs }: { spanMs: number }) {
  return (
    <div className="lane axis" aria-hidden="true">
      <span />
      <div className="lane-bars">
        {ticksOf(spanMs * TICKS_TO).map((ms) => (
          <span key={ms} className="tick" style={{ left: `${(ms / spanMs) * 100}%` }}>
            {ms === 0 ? '' : `+${duration(ms)}`}
          </span>
        ))}
      </div>
    </div>
  );
}

interface LaneProps {
  name: string;
  note?: string;
  bars: readonly Bar[];
  at(ms: number): number;
  /** Its bars have their names in them. */
  tall?: boolean;
  text?(b: Bar): string;
}

function LaneRow({ name, note = '', bars, at, tall = false, text = (b) => b.name }: LaneProps) {
  return (
    <div className="lane">
      <span className="lane-name" title={`${name} ${note}`}>
        {name} <span className="quiet">{note}</span>
      </span>
      <div className={`lane-bars${tall ? ' phases' : ''}`}>
        {bars.map((b) => (
          <BarLine key={b.key} b={b} left={at(b.fromMs)} right={at(b.toMs)} text={text(b)} hidesText={tall} />
        ))}
      </div>
    </div>
  );
}

function BarLine({ b, left, right, text, hidesText }: { b: Bar; left: number; right: number; text: string; hidesText: boolean }) {
  const width = Math.max(BAR_PERCENT_MIN, right - left);
  const fits = width >= TEXT_PERCENT_MIN;
  return (
    <div
      className={`span phase-${b.kind}${b.open ? ' open' : ''}`}
      title={`${b.name} ${b.note}\n${clock(b.fromMs)}, ${duration(b.toMs - b.fromMs)}`}
      style={{ left: `${left}%`, width: `${width}%` }}
    >
      <span className={fits ? '' : left < 80 ? 'beside' : 'before'}>{!fits && hidesText ? '' : text}</span>
    </div>
  );
}

function readyBar(atMs: number): Bar {
  return { key: 'ready', name: 'Ready first', fromMs: atMs, toMs: atMs, kind: 'call', note: '', open: false };
}
