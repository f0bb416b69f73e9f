/** The faults of `test/cluster/observe/planted.nightly.ts`, which runs at night alone: they fit the sources of this commit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BUGS } from '../../../test/cluster/observe/planted/bugs.ts';
import { LIES } from '../../../test/cluster/observe/planted/lies.ts';

test('each planted bug changes one line of its file, and there are ten of each side', () => {
  const times = BUGS.map(({ id, file, find }) => [
    id,
    readFileSync(join(import.meta.dirname, '../../..', file), 'utf8').split(find).length - 1,
  ]);
  expect(times).toEqual(BUGS.map(({ id }) => [id, 1]));
  expect([BUGS.length, LIES.length]).toEqual([10, 10]);
});
