/** The slider through the time of a recording. */
import { useEffect, useState } from 'react';
import type { HelloFrame } from '../../feed/frames.ts';
import { Icon } from '../bits.tsx';
import { type PageState, store } from '../store.ts';
import { clock, duration } from '../words.ts';

/** One press of an arrow key. */
const STEP_MS = 100;

export function Past({
  recording,
  atMs,
  steps,
}: {
  recording: NonNullable<HelloFrame['recording']>;
  atMs: number;
  steps: PageState['steps'];
}) {
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
      {steps !== null && (
        <>
          <StepTo ms={steps.beforeMs} word="Step back" sign="‹" choose={choose} />
          <StepTo ms={steps.afterMs} word="Step on" sign="›" choose={choose} />
        </>
      )}
      <button type="button" onClick={() => choose(toMs)} aria-label="To the end" title="To the end">
        <Icon name="last" />
      </button>
      <output>
        <time>{clock(chosenMs)}</time> <span className="quiet">{duration(toMs - chosenMs)} before the end</span>
      </output>
    </section>
  );
}

/** To the moment of a step of any actor. */
function StepTo({ ms, word, sign, choose }: { ms: number | null; word: string; sign: string; choose(ms: number): void }) {
  return (
    <button type="button" disabled={ms === null} onClick={() => choose(ms ?? 0)} aria-label={word} title={word}>
      {sign}
    </button>
  );
}
