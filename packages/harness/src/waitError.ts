/** A wait that was not fulfilled: everything that a person needs to find out why is in its message. */
export class WaitError extends Error {
  /** What was waited for. */
  readonly what: string;
  /** The last state that was seen, in one line. */
  readonly seen: string;
  /** The node's own explanation (`actorctl why`). */
  readonly why: string;
  readonly afterMs: number;

  constructor(o: { what: string; seen: string; why: string; afterMs: number; ended: 'late' | 'never' | 'stopped'; daemon: string }) {
    const seconds = `${(o.afterMs / 1_000).toFixed(1)} s`;
    const lead =
      o.ended === 'late'
        ? `waited ${seconds} for ${o.what}`
        : o.ended === 'never'
          ? `${o.what}: cannot come true any more (after ${seconds})`
          : `waited for ${o.what}, given up after ${seconds}`;
    const block = (title: string, text: string): string[] =>
      text === '' ? [] : [`  ${title}`, ...text.split('\n').map((l) => `    ${l}`)];
    super([lead, `  last seen: ${o.seen}`, ...block('why:', o.why), ...block('daemon:', o.daemon)].join('\n'));
    this.name = 'WaitError';
    this.what = o.what;
    this.seen = o.seen;
    this.why = o.why;
    this.afterMs = o.afterMs;
  }
}
