/** `-l`: kubectl's label selectors. */
import { CtlError, EXIT } from '../admin/client.ts';
import { parseLabelSelector, type Selector } from '../machines/kube/read/labelSelector.ts';
import { printable } from '../machines/text/table.ts';

/** @throws CtlError */
export function labelSelector(text: string): Selector {
  const selector = parseLabelSelector(text);
  if (typeof selector !== 'string') return selector;
  throw new CtlError(
    EXIT.usage,
    `-l ${printable(text)}: ${printable(selector)} is no requirement on a label; write app=web, app!=web, app, !app or app in (a,b).`,
  );
}
