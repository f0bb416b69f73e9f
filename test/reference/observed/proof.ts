/**
 * That an observer changes nothing: minutes of churn beside the reference kubelet, under the eyes of `bench/lib/witness.ts`. Prints what it saw. The
 * exit code is 1 where something was changed. `npm run conformance -- --observe=proof` does the same in node conformance.
 *   ... scripts/node test/reference/observed/proof.ts [MINUTES] [PODS-AT-ONCE]
 */

import { Witness } from '../../../bench/lib/witness.ts';
import { churn } from './churning.ts';
import { judgedOf, ledgerLines, withObservedLab } from './lab.ts';

const [, , minutes = '3', atOnce = '6'] = process.argv;
const witness = new Witness();

await withObservedLab(
  {},
  async (lab) => {
    const ledger = await churn(lab, { minutes: Number(minutes), atOnce: Number(atOnce) });
    await lab.observer.end();
    const { lines, wrong } = await witness.saw();
    for (const line of [...lines, ...ledgerLines(ledger)]) console.log(line);
    console.log(`${judgedOf(ledger)} judged; ${wrong.length === 0 ? 'nothing was changed' : `changed:\n${wrong.join('\n')}`}`);
    if (wrong.length > 0) process.exitCode = 1;
  },
  {
    audit: witness.audit,
    prepare: ({ cluster: { plane, lab, daemon }, observer }) =>
      witness.before({ plane, socket: lab.socket, dir: daemon.dir, own: observer.folder }),
  },
);
witness.close();
process.exit();
