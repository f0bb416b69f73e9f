/** Seeds, each recorded once by a copy of the sources. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scratch } from '../../../sim/test/mutants/scratch.ts';

export interface Recordings extends Disposable {
  /** Where all of it is. */
  readonly dir: string;
  /** Folder with the recordings of the seed's daemons. */
  of(seed: number): Promise<string>;
}

export function recordings(copy: Scratch): Recordings {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-replayed-'));
  const seeds = new Map<number, Promise<string>>();
  return {
    dir,
    of(seed) {
      const known = seeds.get(seed) ?? record(copy, { seed, to: join(dir, `${seed}`) });
      seeds.set(seed, known);
      return known;
    },
    [Symbol.dispose]() {
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export async function record(copy: Scratch, o: { seed: number; to: string }): Promise<string> {
  mkdirSync(o.to);
  const { out } = await copy.ctl(['sim', `--seed=${o.seed}`, `--record=${o.to}`]);
  if (readdirSync(o.to).length === 0) throw new Error(`seed ${o.seed} was not recorded: ${out.slice(-500)}`);
  return o.to;
}
