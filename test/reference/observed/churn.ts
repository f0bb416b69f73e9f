/**
 * The same as `fates.ts`, with churn (`churning.ts`). Prints the ledger by kind, and each disagreement.
 *   ... scripts/node test/reference/observed/churn.ts FOLDER [MINUTES] [PODS-AT-ONCE]
 */
import { churn } from './churning.ts';
import { keepIn, ledgerLines, withObservedLab } from './lab.ts';

const [, , folder, minutes = '30', atOnce = '8'] = process.argv;

await withObservedLab({}, async (lab) => {
  const ledger = await churn(lab, { minutes: Number(minutes), atOnce: Number(atOnce) });
  for (const line of ledgerLines(ledger)) console.log(line);
  if (folder !== undefined) keepIn(folder, lab, ledger);
});
