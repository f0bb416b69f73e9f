/** Signals made of others: they abort with the first, and leave nothing behind on signals that outlive them. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { joinSignals } from '../../../src/actors/supervision/signals.ts';

test('a joined signal aborts with the first of its sources, for its reason', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const joined = joinSignals(a.signal, b.signal);
  expect(joined.signal.aborted).toBe(false);
  b.abort(new Error('b ended'));
  a.abort(new Error('a ended'));
  expect(joined.signal.reason).toEqual(new Error('b ended'));
});

test('a joined signal is aborted at once where a source is', () => {
  const a = new AbortController();
  const joined = joinSignals(a.signal, AbortSignal.abort('gone'));
  expect(joined.signal.reason).toBe('gone');
  expect(getEventListeners(a.signal, 'abort')).toEqual([]);
});

test('nothing stays on a source once one aborted, or once the joined signal is disposed', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  {
    using joined = joinSignals(a.signal, b.signal);
    expect(joined.signal.aborted).toBe(false);
    expect(getEventListeners(a.signal, 'abort')).toHaveLength(1);
  }
  expect(getEventListeners(a.signal, 'abort')).toEqual([]);
  joinSignals(a.signal, b.signal);
  a.abort();
  expect(getEventListeners(b.signal, 'abort')).toEqual([]);
});
