/** `-l`: kubectl's label selectors. */
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { parseLabelSelector, type Selector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';

/** @throws CtlError */
export function labelSelector(text: string): Selector {
  const selector = parseLabelSelector(text);
  if (typeof selector !== 'string') return selector;
  throw new CtlError(
    EXIT.usage,
    `-l ${printable(text)}: ${printable(selector)} is no requirement on a label; write app=web, app!=web, app, !app or app in (a,b).`,
  );
}
