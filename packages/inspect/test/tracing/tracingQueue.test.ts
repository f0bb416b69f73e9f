/** Spans on their way: bounded, in batches, tried again, and ended in a bounded time. */
import { describe, expect, it } from 'vitest';
import { virtualTime } from '../../../../test/integration/virtualTime.ts';
import { collectingLogger, type LogLine } from '../../../../test/supervision/fakePorts.ts';
import type { Span } from '../../src/tracing/model.ts';
import { BATCH_MAX, QUEUE_MAX, type Sent, SpanQueue } from '../../src/tracing/queue.ts';

const span = (n: number): Span => ({
  ...{ traceId: '0'.repeat(32), spanId: n.toString(16).padStart(16, '0'), parentSpanId: '', name: String(n), kind: 'internal' },
  ...{ startMs: 0, endMs: 1, attributes: {}, events: [], error: '' },
});
const spans = (count: number, from = 0): Span[] => Array.from({ length: count }, (_, i) => span(from + i));
const AWAY: Sent = { ok: false, again: true, why: 'nobody is there' };
const TAKEN: Sent = { ok: true, rejected: 0 };

function rig(answer: (batch: readonly Span[], signal: AbortSignal) => Sent | Promise<Sent>) {
  const time = virtualTime();
  const lines: LogLine[] = [];
  const batches: string[][] = [];
  const send = async (batch: readonly Span[], signal: AbortSignal): Promise<Sent> => {
    batches.push(batch.map((s) => s.name));
    return answer(batch, signal);
  };
  return { time, lines, batches, queue: new SpanQueue({ send }, { clock: time.clock, log: collectingLogger(lines) }) };
}

describe('the queue of spans', () => {
  it('sends what comes together in one request, a second later', async () => {
    const { time, queue, batches } = rig(() => TAKEN);
    queue.add(spans(3));
    queue.add(spans(2, 3));
    await time.advance(999);
    expect(batches).toEqual([]);
    await time.advance(1);
    expect(batches).toEqual([['0', '1', '2', '3', '4']]);
    expect(queue.figures).toEqual({ exported: 5, dropped: 0 });
  });

  it('sends full batches at once, one after the other', async () => {
    let under = 0;
    let most = 0;
    const { time, queue, batches } = rig(async () => {
      most = Math.max(most, ++under);
      await Promise.resolve();
      under -= 1;
      return TAKEN;
    });
    queue.add(spans(BATCH_MAX * 2 + 1));
    await time.advance(0);
    await time.settle();
    await time.advance(1_000);
    expect(batches.map((b) => b.length)).toEqual([BATCH_MAX, BATCH_MAX, 1]);
    expect(most).toBe(1);
  });

  it('keeps the newest while the receiver is away, counts the others, and says each change once', async () => {
    let away = true;
    const { time, queue, lines, batches } = rig(() => (away ? AWAY : TAKEN));
    for (let i = 0; i < 30; i++) {
      queue.add(spans(100, i * 100));
      await time.advance(1_000);
    }
    expect(queue.waiting).toBe(QUEUE_MAX);
    expect(queue.figures).toEqual({ exported: 0, dropped: 3_000 - QUEUE_MAX });
    expect(batches.length).toBeLessThan(10);
    away = false;
    await time.advance(60_000);
    expect(queue.figures).toEqual({ exported: QUEUE_MAX, dropped: 3_000 - QUEUE_MAX });
    expect(batches.at(-1)?.at(-1)).toBe('2999');
    expect(lines.map((l) => [l.level, l.msg])).toEqual([
      ['warn', 'tracing: the receiver did not take spans'],
      ['info', 'tracing: the receiver takes spans again'],
    ]);
  });

  it('drops what the receiver refuses for good, in whole or in part', async () => {
    const answers: Sent[] = [
      { ok: false, again: false, why: 'not for you' },
      { ok: true, rejected: 4 },
    ];
    const { time, queue } = rig(() => answers.shift() ?? TAKEN);
    queue.add(spans(5));
    await time.advance(1_000);
    queue.add(spans(10));
    await time.advance(1_000);
    expect(queue.figures).toEqual({ exported: 6, dropped: 9 });
  });

  it('sends what waits at its end', async () => {
    const { time, queue, batches } = rig(() => TAKEN);
    queue.add(spans(BATCH_MAX + 1));
    const ended = queue.end(2_000);
    await time.settle();
    await ended;
    expect(batches.map((b) => b.length)).toEqual([BATCH_MAX, 1]);
    queue.add(spans(1));
    await time.advance(10_000);
    expect(batches).toHaveLength(2);
    expect(queue.figures).toEqual({ exported: BATCH_MAX + 1, dropped: 1 });
  });

  it('ends at once when the receiver is away, and within its time when the receiver does not answer', async () => {
    const away = rig(() => AWAY);
    away.queue.add(spans(3));
    await away.queue.end(2_000);
    expect([away.batches.length, away.queue.figures.dropped]).toEqual([1, 3]);

    const aborted: boolean[] = [];
    const stuck = rig((_batch, signal) => {
      signal.addEventListener('abort', () => aborted.push(true));
      return new Promise<Sent>(() => undefined);
    });
    stuck.queue.add(spans(3));
    const ended = stuck.queue.end(2_000);
    let over = false;
    void ended.then(() => {
      over = true;
    });
    await stuck.time.advance(1_999);
    expect(over).toBe(false);
    await stuck.time.advance(1);
    await ended;
    expect([aborted, stuck.queue.figures]).toEqual([[true], { exported: 0, dropped: 3 }]);
  });
});
