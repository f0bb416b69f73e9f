/** The slider through the time of a recording. */
import { useEffect, useState } from 'react';
import type { HelloFrame } from '../../feed/frames.ts';
import { Icon } from '../bits.tsx';
import { store } from '../store.ts';
import { clock, duration } from '../words.ts';

/** One press of an arrow key. */
const STEP_MS = 100;

export function Past({ recording, atMs }: { recording: NonNullable<HelloFrame['recording']>; atMs: number }) {
  const { fromMs, toMs, runs } = recording;
  const [chosenMs, setChosenMs] = useState(atMs);
  useEffect(() => setChosenMs(atMs), [atMs]);
  const choose = (ms: number) => {
    const next = Math.min(toMs, Math.max(fromMs, ms));
    setChosenMs(next);
    store.seek(next);
  };
  const span = Math.max(1, toMs - fromMs);
  return (
    <section className="past" aria-label="Moment of the recording">
      <button type="button" onClick={() => choose(fromMs)} aria-label="To the beginning" title="To the beginning">
        <Icon name="first" />
      </button>
      <span className="past-track">
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={new Date(chosenMs).toISOString()}
          min={0}
          max={Math.ceil(span / STEP_MS)}
          value={Math.ceil((chosenMs - fromMs) / STEP_MS)}
          onChange={(e) => choose(fromMs + Number(e.target.value) * STEP_MS)}
        />
        <svg className="past-runs" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true">
          {runs.map((r, i) => (
            <rect
              key={r.fromMs}
              // Nobody knows how the last one ended: it may run on.
              className={r.stopped || i === runs.length - 1 ? 'run' : 'run cut'}
              x={((r.fromMs - fromMs) / span) * 1000}
              width={Math.max(2, ((r.toMs - r.fromMs) / span) * 1000 - 2)}
              height={6}
            />
          ))}
        </svg>
      </span>
      <button type="button" onClick={() => choose(toMs)} aria-label="To the end" title="To the end">
        <Icon name="last" />
      </button>
      <output>
        <time>{clock(chosenMs)}</time> <span className="quiet">{duration(toMs - chosenMs)} before the end</span>
      </output>
    </section>
  );
}
