/**
 * Whether a replay finds a changed line: a seed is recorded, a mutant is planted, and the recording is replayed. A mutant counts
 * where the seed with it does something else than without it.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { CAUGHT_BEFORE, type Mutant } from '../../../sim/test/mutants/mutants.ts';
import { scratch } from '../../../sim/test/mutants/scratch.ts';
import { record, recordings } from './recordings.ts';

/** `same`: the seed does with the mutant what it does without, up to where an invariant of the tree's insides ends it. */
export type Found = { kind: 'found'; by: string } | { kind: 'missed' } | { kind: 'same' } | { kind: 'unusable'; why: string };
export interface ReplayedMutants extends Disposable {
  find(m: Mutant): Promise<Found>;
}

/** The first of those that no seed is known for. */
const SEED = 8;

export function replayedMutants(): ReplayedMutants {
  const copy = scratch();
  const recorded = recordings(copy);
  return {
    async find(m) {
      const why = copy.fits(m);
      if (why !== '') return { kind: 'unusable', why };
      const seed = CAUGHT_BEFORE[m.id] ?? SEED;
      const recording = await recorded.of(seed);
      const { code, out } = await copy.planted(m, () => copy.ctl(['replay', recording]));
      if (code === 1) return { kind: 'found', by: wordsOf(out) };
      if (code !== 0) return { kind: 'unusable', why: out.slice(-500) };
      const changed = join(recorded.dir, 'changed');
      await copy.planted(m, () => record(copy, { seed, to: changed }));
      const names = readdirSync(changed);
      if (names.length === 0) return { kind: 'unusable', why: 'the seed with it recorded nothing' };
      const same = names.every((name) => textOf(join(recording, name)).startsWith(textOf(join(changed, name))));
      rmSync(changed, { recursive: true, force: true });
      return { kind: same ? 'same' : 'missed' };
    },
    [Symbol.dispose]() {
      copy[Symbol.dispose]();
      recorded[Symbol.dispose]();
    },
  };
}

function textOf(file: string): string {
  return existsSync(file) ? zstdDecompressSync(readFileSync(file)).toString() : '';
}

/** Then and now, in one line. */
function wordsOf(out: string): string {
  const [, was = '', now = ''] = /then: (.*)\n\s*now: +(.*)/.exec(out) ?? [];
  return was === '' ? out.trim().slice(0, 200) : `then ${was}, now ${now}`;
}
