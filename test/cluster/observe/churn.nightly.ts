/** The long form: twenty minutes of churn and bad moments beside the reference kubelet, and what the observer makes of it. */
import { describe, expect, it } from 'vitest';
import { whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { churn } from '../../reference/observed/churning.ts';
import { judgedOf, ledgerLines, withObservedLab } from '../../reference/observed/lab.ts';

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) console.warn(`not run: ${whyNot}`);

/** `MINUTES=3` for a look. */
const MINUTES = Number(process.env.MINUTES ?? 20);
const LIMIT_MS = (MINUTES + 10) * 60_000;
/** Of a minute of churn, on two cores that have other work. */
const JUDGED_PER_MINUTE_MIN = 50;

describe.skipIf(whyNot !== undefined)('churn beside the reference kubelet', () => {
  it(
    'is judged act by act, and no disagreement stands when it is over',
    async () => {
      await withObservedLab({}, async (lab) => {
        const ledger = await churn(lab, { minutes: MINUTES, atOnce: 6 });
        for (const line of ledgerLines(ledger)) console.log(line);
        expect(judgedOf(ledger)).toBeGreaterThan(MINUTES * JUDGED_PER_MINUTE_MIN);
        expect(ledger.disagreements.filter((d) => d.known === null && d.settledMs === null)).toEqual([]);
      });
    },
    LIMIT_MS,
  );
});
