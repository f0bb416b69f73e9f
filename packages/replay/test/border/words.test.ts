/** What a divergence says: the field that differs, of both sides, in one line each. */
import { expect, it } from 'vitest';
import type { Json, Outcome } from '../../src/entries.ts';
import { differences, saidWords } from '../../src/told/differences.ts';
import { touchesSecrets } from '../../src/told/divergence.ts';
import { didOf, Report } from '../../src/told/report.ts';

const stop = (timeout: number): Json => ['StopContainer', { containerId: 'c1', timeout }, { signal: { $: 'a' } }];

it.each<[string, Json, Json, object[]]>([
  ['a field of a request', stop(30), stop(31), [{ field: 'timeout', was: '30', now: '31' }]],
  [
    'an item of a list by its name, whatever its place',
    [
      {
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'Initialized', status: 'True' },
        ],
      },
    ],
    [
      {
        conditions: [
          { type: 'Initialized', status: 'True' },
          { type: 'Ready', status: 'False' },
        ],
      },
    ],
    [{ field: 'conditions[Ready].status', was: '"True"', now: '"False"' }],
  ],
  [
    'the order alone',
    [{ a: [{ name: 'x' }, { name: 'y' }] }],
    [{ a: [{ name: 'y' }, { name: 'x' }] }],
    [{ field: 'a (order)', was: 'x, y', now: 'y, x' }],
  ],
  ['a field that is not there', [{ a: 1 }], [{ a: 1, b: null }], [{ field: 'b', was: 'nothing', now: 'null' }]],
  [
    'a field of a document in a text',
    ['/x', { $: 'j', v: { cpu: '0-3' } }],
    ['/x', { $: 'j', v: { cpu: '0-2' } }],
    [{ field: 'argument 2.cpu', was: '"0-3"', now: '"0-2"' }],
  ],
  [
    'a line of a file',
    ['/etc/hosts', 'one\ntwo\n'],
    ['/etc/hosts', 'one\nthree\n'],
    [{ field: 'argument 2 line 2', was: '"two"', now: '"three"' }],
  ],
  [
    'the place in a long text',
    ['a'.repeat(500)],
    [`${'a'.repeat(400)}b`],
    [{ field: 'argument 1', was: expect.stringContaining('…aaa'), now: expect.stringMatching(/a+b"$/) }],
  ],
  ['nothing where both are the same', stop(30), stop(30), []],
])('names %s', (_, was, now, fields) => {
  expect(differences(was, now)).toMatchObject(fields);
  expect(differences(was, now)).toHaveLength(fields.length);
});

it('shows what was said without functions and signals', () => {
  expect(saidWords(stop(30))).toBe('StopContainer containerId="c1" timeout=30');
});

it('blames a secret for what differs only where one may have to do with it', () => {
  const ask = (masks: number[]): Outcome => ['ask', 'cri.call', 'd', 'later', 'CreateContainer', masks];
  const parted = { input: ['turn', 0, 1] as const, now: null };
  const field = (was: string, now: string) => [{ field: 'config.tty', was, now }];
  expect(touchesSecrets({ ...parted, done: [], was: ask([1]) }, [])).toBe(true);
  expect(touchesSecrets({ ...parted, done: [], was: ask([1]) }, field('"§5"', '"§6"'))).toBe(true);
  expect(touchesSecrets({ ...parted, done: [], was: ask([1]) }, field('false', 'true'))).toBe(false);
  expect(touchesSecrets({ ...parted, done: [ask([1])], was: ask([]) }, field('false', 'true'))).toBe(true);
  expect(touchesSecrets({ ...parted, done: [], was: ask([]) }, [])).toBe(false);
});

it('tells each kind of divergence once, and how many were like it', () => {
  const report = new Report();
  const by = (uid: string) => ({ actor: `node/pods/workers/${uid}`, state: 'syncing', event: 'pod.kill' });
  const at = { input: 1, inputIs: 'turn 1', monoMs: 0, wallMs: 0 };
  for (const uid of ['a', 'b', 'c']) report.add(didOf(['set', 10], by(uid), undefined), didOf(['set', 20], by(uid), undefined), at);
  report.add(null, didOf(['set', 30], by('d'), undefined), at);
  expect(report.all).toMatchObject([
    {
      was: 'a timer of 10 ms',
      now: 'a timer of 20 ms',
      wasBy: by('a'),
      nowBy: by('a'),
      fields: [{ field: 'ms', was: '10', now: '20' }],
      more: 2,
    },
    { was: 'nothing', now: 'a timer of 30 ms', nowBy: by('d'), fields: [], more: 0 },
  ]);
});

it('compares a status that one side alone publishes with the one that stands on the other side', () => {
  const report = new Report();
  const by = { actor: 'node/pods/status', state: '', event: 'status.set' };
  const at = { input: 1, inputIs: 'turn 1', monoMs: 0, wallMs: 0 };
  const [ready, not] = [true, false].map((is) => ({ containerStatuses: [{ name: 'c0', ready: is }] }));
  const shown = (said: Json | undefined, beside: Json | undefined) => ({ ...didOf(['shown', 'status', 'u', 'd'], by, said), beside });
  report.add(null, shown(not, ready), at);
  report.add(shown(ready, not), null, { ...at, input: 2 });
  const fields = [{ field: 'containerStatuses[c0].ready', was: 'true', now: 'false' }];
  expect(report.all).toMatchObject([
    { was: 'nothing', now: 'the status u', fields },
    { was: 'the status u', now: 'nothing', fields },
  ]);
  report.add(null, shown(not, undefined), { ...at, input: 3 });
  expect(report.all[2]?.fields).toEqual([]);
});
