/**
 * How many changed lines a replay finds: for each mutant of the mutant table, a seed of the simulation is recorded without it and
 * replayed with it. A mutant counts where the seed does something else with it than without it, up to
 * where an invariant ends the seed.
 * Options: --from=1 --count=1000 --out=FILE: a part of the table, by its order.
 */
import { type Found, replayedMutants } from '../packages/replay/test/mutants/replayed.ts';
import { MUTANTS } from '../packages/sim/test/mutants/mutants.ts';
import { numberOption, report, say } from './lib/report.ts';

const FROM = numberOption('from', 1);
const COUNT = numberOption('count', 1_000);
const BARS = { foundShare: 0.9 } as const;

using mutants = replayedMutants();
const all: Record<string, Found> = {};
for (const m of MUTANTS.slice(FROM - 1, FROM - 1 + COUNT)) {
  const found = await mutants.find(m);
  all[m.id] = found;
  say(`${found.kind} ${m.id}`);
}
const those = (kind: Found['kind']) => Object.keys(all).filter((id) => all[id]?.kind === kind);
const [found, missed] = [those('found'), those('missed')];
await report('replayMutants', {
  bars: BARS,
  foundShare: found.length / (found.length + missed.length),
  ...{ found: found.length, missed, same: those('same'), unusable: those('unusable') },
  mutants: all,
});
