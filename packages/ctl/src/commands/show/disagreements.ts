/** `actorctl disagreements`: where a kubelet that is observed does something else than this tree would. */
import { EXIT } from '@actorlet/admin/src/client.ts';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { printable, renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { disagreementText } from '@actorlet/shown/src/observer/ledger.ts';
import { type Command, print, printData, wantsData, widthOf } from '../../asked.ts';

export interface DisagreementsArgs {
  /** Also those that are settled, and those on the list of known differences. */
  all: boolean;
}

/** The exit code is 1 where one stands that is on no list. */
export function disagreements(args: DisagreementsArgs): Command {
  return async (asked) => {
    const ledger = (await asked.client.json('/disagreements')) as ObserverLedger;
    const nowMs = asked.io.nowMs();
    const ofNamespace = (pod: string) => pod === '' || asked.chooses({ namespace: pod.slice(0, pod.indexOf('/')) });
    const found = ledger.disagreements.filter((d) => ofNamespace(d.pod) && (args.all || (d.settledMs === null && d.known === null)));
    const stands = found.some((d) => d.settledMs === null && d.known === null);
    if (wantsData(asked.format)) {
      printData(asked, { ...ledger, disagreements: found });
      return stands ? EXIT.no : EXIT.ok;
    }
    const lines = found.flatMap((d) => [
      `${d.pod === '' ? 'node' : d.pod}: ${disagreementText(d, nowMs)}`,
      `  ${d.known === null ? `the rule: ${d.rule}` : `known: ${d.known}`}`,
    ]);
    const judged = renderTable(
      ['ACT', 'AGREED', 'KNOWN', 'DISAGREED'],
      ledger.counts.map((c) => [c.kind, ...[c.agreed, c.known, c.disagreed].map(String)]),
    );
    const none = found.length === 0 ? ['No disagreement.'] : [];
    print(asked, [...none, ...lines, '', ...judged].map(printable), widthOf(asked));
    return stands ? EXIT.no : EXIT.ok;
  };
}
