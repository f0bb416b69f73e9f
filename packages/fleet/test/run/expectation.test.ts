/** One expectation of a run of a fleet, look by look. */
import { describe, expect, it } from 'vitest';
import { callsOf, Expectation, percentile } from '../../src/run/expectation.ts';
import type { ExpectSpec } from '../../src/spec/expect.ts';

const of = (o: Partial<ExpectSpec> = {}): Expectation =>
  new Expectation({ name: 'x', measure: { what: 'podsReady' }, atLeast: 3, afterMs: 0, withinMs: 1_000, holds: 'once', ...o });

describe('an expectation', () => {
  it.each([
    [
      'once: met at the first look that fits',
      {},
      [
        [100, 1],
        [200, 3],
        [300, 0],
      ],
      200,
      3,
    ],
    [
      'once: late',
      {},
      [
        [100, 1],
        [1_100, 3],
      ],
      null,
      1,
    ],
    [
      'throughout: every look fits',
      { holds: 'throughout' },
      [
        [100, 3],
        [1_000, 4],
      ],
      1_000,
      4,
    ],
    [
      'throughout: the last look comes late',
      { holds: 'throughout' },
      [
        [100, 3],
        [1_200, 4],
      ],
      1_000,
      4,
    ],
    [
      'throughout: one look does not',
      { holds: 'throughout' },
      [
        [100, 3],
        [500, 2],
        [1_000, 4],
      ],
      null,
      2,
    ],
    [
      'after: looks before do not count',
      { holds: 'throughout', afterMs: 400 },
      [
        [100, 0],
        [500, 3],
        [1_000, 3],
      ],
      1_000,
      3,
    ],
    [
      'at most: more than that is not met, however long',
      { atMost: 4 },
      [
        [100, 5],
        [1_000, 5],
      ],
      null,
      5,
    ],
    [
      'throughout: nothing could be seen',
      { holds: 'throughout' },
      [
        [100, null],
        [1_000, null],
      ],
      null,
      null,
    ],
  ] as const)('%s', (_, spec, looks, metMs, is) => {
    const e = of(spec);
    for (const [atMs, value] of looks) e.look(value, atMs, false);
    expect(e.report()).toMatchObject({ metMs, is });
  });

  it('of calls counts from its beginning to the end, and nothing where the run ends before', () => {
    const calls = { measure: { what: 'calls', pattern: '* *' }, atMost: 5, withinMs: null, afterMs: 400 } as const;
    const { atLeast: _, ...spec } = of().spec;
    const counted = new Expectation({ ...spec, ...calls });
    for (const [atMs, value] of [
      [100, 10],
      [500, 20],
      [900, 24],
    ] as const)
      counted.look(value, atMs, atMs === 900);
    expect(counted.report()).toMatchObject({ metMs: 900, is: 4 });
    const early = new Expectation({ ...spec, ...calls });
    early.look(10, 100, true);
    expect(early.report()).toMatchObject({ metMs: null, is: null });
  });
});

it('sums up calls by verb and resource, and takes percentiles by rank', () => {
  const calls = new Map([
    ['PATCH pods/status', 3],
    ['GET pods', 2],
    ['PATCH leases', 7],
  ]);
  expect([callsOf(calls, 'PATCH *'), callsOf(calls, '* pods'), callsOf(calls, 'PATCH pods/status')]).toEqual([10, 2, 3]);
  expect([percentile([], 50), percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99)]).toEqual([null, 2, 4]);
});
