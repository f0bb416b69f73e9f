/** Text in pages. Pure. */
import { printable } from '@actorlet/kubelet/machines/text/table.ts';

/** Foreign text in a page: no markup, no control characters, nothing that turns the direction of text around. */
export function escapedHtml(text: string): string {
  return printable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
