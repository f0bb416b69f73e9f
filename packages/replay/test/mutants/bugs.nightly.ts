/** Of 15 plausible bugs of one line, a replay finds all, and the words of the first divergences tell 12. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { scratch } from '../../../sim/test/mutants/scratch.ts';
import { BUGS } from './bugs.ts';
import { recordings } from './recordings.ts';

const TOLD_MIN = 12;
const TIMEOUT_MS = 3_600_000;

it(
  'a replay finds each bug of one line, and its words tell most of them',
  async () => {
    using copy = scratch();
    using recorded = recordings(copy);
    expect(BUGS).toHaveLength(15);
    const count = { found: 0, told: 0 };
    for (const bug of BUGS) {
      expect(copy.fits(bug), bug.id).toBe('');
      const [, seed = ''] = bug.daemon.split('-');
      const file = join(await recorded.of(Number(seed)), `${bug.daemon}.inputs.zst`);
      const without = await copy.ctl(['replay', file]);
      expect(without.code, `${bug.daemon} without a bug: ${without.out}`).toBe(0);
      const { code, out } = await copy.planted(bug, () => copy.ctl(['replay', file]));
      const [words = ''] = out.split('The last steps of the node');
      const isFound = code === 1 && words.includes('DIVERGENCE');
      const isTold = isFound && bug.told?.every((what) => what.test(words)) === true;
      count.found += isFound ? 1 : 0;
      count.told += isTold ? 1 : 0;
      console.log(`${isTold ? 'told  ' : isFound ? 'found ' : 'missed'} ${bug.id}`);
      // What a person was told once stays told.
      expect({ id: bug.id, isFound, isTold }, words).toEqual({ id: bug.id, isFound: true, isTold: bug.told !== null });
    }
    console.log(`${count.found} of ${BUGS.length} bugs found, ${count.told} of them told by the words alone`);
    expect(count.told).toBeGreaterThanOrEqual(TOLD_MIN);
  },
  TIMEOUT_MS,
);
