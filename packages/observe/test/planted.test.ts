/** The faults of `test/cluster/observe/planted.nightly.ts`, which runs at night alone: they fit the sources of this commit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BUGS } from '../../../test/cluster/observe/planted/bugs.ts';
import { LIES } from '../../../test/cluster/observe/planted/lies.ts';
import { Expectations } from '../src/border/expectations.ts';

test('each planted bug changes one line of its file, and there are ten of each side', () => {
  const times = BUGS.map(({ id, file, find }) => [
    id,
    readFileSync(join(import.meta.dirname, '../../..', file), 'utf8').split(find).length - 1,
  ]);
  expect(times).toEqual(BUGS.map(({ id }) => [id, 1]));
  expect([BUGS.length, LIES.length]).toEqual([10, 10]);
});

/** Seconds until an act with a bound of 20 s is named, where the looks are so late. `took`: what another one took just before. */
function namedAfter(lateMs: (look: number) => number, took?: number): number {
  let [nowMs, dueMs, fire] = [0, 0, () => {}];
  const setTimeout = (fn: () => void, ms: number): void => {
    [dueMs, fire] = [nowMs + ms, fn];
  };
  const expectations = new Expectations({ monoMs: () => nowMs, wallMs: () => nowMs, setTimeout, clearTimeout: () => undefined });
  const expect = (uid: string) => expectations.expect({ kind: 'Folder', pod: `default/${uid}`, uid, what: 'made the folder of the pod' });
  const other = took === undefined ? undefined : expect('other');
  nowMs = took ?? 0;
  other?.came();
  expect('web');
  for (let i = 0; i < 60 && expectations.ledger().disagreements.length === 0; i++) {
    nowMs = Math.max(nowMs, dueMs + lateMs(i));
    fire();
  }
  return (nowMs - (took ?? 0)) / 1_000;
}

test('a bound grows by what holds up the observer or the kubelet, once, and up to twice', () => {
  const held = (ms: number) => namedAfter((look) => (look === 0 ? ms : 0));
  expect([0, 900].map((ms) => Math.round(namedAfter(() => ms)))).toEqual([20, 20]);
  // After it was held up it looks again first.
  expect([held(15_000), held(60_000)]).toEqual([35, 62]);
  expect(namedAfter(() => 3_000)).toBeLessThanOrEqual(45);
  expect([4_000, 7_500, 19_000].map((ms) => Math.round(namedAfter(() => 0, ms)))).toEqual([20, 30, 40]);
});
