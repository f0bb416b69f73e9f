/** `emptyDir`: an empty directory on the disk, in memory, or of huge pages. */

import { isZeroQuantity, quantityToInteger } from '../../../kube/quantity.ts';
import type { Pod } from '../../../kube/types.ts';
import { type Built, built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { textOf } from '../../../shape/lenient.ts';
import { honoured } from '../../fieldRule.ts';
import type { InlineKind } from '../kind.ts';
import { containersWithMounts } from '../mounting.ts';

export interface EmptyDir {
  kind: 'emptyDir';
  /** '' is the disk; `HugePages` alone leaves the size of the pages to what the pod asks for. */
  medium: string;
  sizeLimitBytes: number | null;
}

export const emptyDir: { inline: InlineKind<EmptyDir> } = {
  inline: {
    kind: 'emptyDir',
    plugin: 'kubernetes.io~empty-dir',
    fields: { emptyDir: decode },
    rules: honoured('emptyDir.medium', 'emptyDir.sizeLimit'),
    stands: 'here',
    foreign: false,
    refreshes: false,
    scratch: true,
    mounted: (_, dir) => ({ hostPath: dir, readOnly: false, managed: true }),
    onDisk: (volume) => textOf(isRecord(volume?.emptyDir) ? volume.emptyDir.medium : '') === '',
  },
};

function decode(content: Record<string, unknown>): Built<EmptyDir> {
  const medium = textOf(content.medium);
  if (medium !== '' && medium !== 'Memory' && !isHugePages(medium)) return refused(`emptyDir.medium "${medium}" is not a medium`);
  const limit = content.sizeLimit;
  const bytes = typeof limit === 'string' || typeof limit === 'number' ? quantityToInteger(limit) : 0;
  return built({ kind: 'emptyDir', medium, sizeLimitBytes: bytes > 0 ? bytes : null });
}

const HUGE_PAGES = 'HugePages';
const HUGE_PAGES_RESOURCE = 'hugepages-';

function isHugePages(medium: string): boolean {
  return medium === HUGE_PAGES || (medium.startsWith(`${HUGE_PAGES}-`) && quantityToInteger(medium.slice(HUGE_PAGES.length + 1)) > 0);
}

/**
 * Bytes of a page of the file system behind such a volume. The pod or some container must ask for pages of the size that the
 * medium names; a medium that names none stands for the only size that is asked for.
 */
export function hugePageBytes(pod: Pod, medium: string): Built<number> {
  const asked = new Set<number>();
  for (const { resources } of [pod.spec, ...containersWithMounts(pod)]) {
    for (const [name, amount] of Object.entries(resources?.requests ?? {})) {
      if (name.startsWith(HUGE_PAGES_RESOURCE) && !isZeroQuantity(amount)) {
        asked.add(quantityToInteger(name.slice(HUGE_PAGES_RESOURCE.length)));
      }
    }
  }
  const named = medium === HUGE_PAGES ? [...asked] : [quantityToInteger(medium.slice(HUGE_PAGES.length + 1))].filter((b) => asked.has(b));
  const [bytes] = named;
  if (bytes === undefined) return refused(`medium ${medium} is asked for, and no container requests huge pages of that size`);
  if (named.length > 1) return refused(`medium ${HUGE_PAGES} cannot be used where containers request huge pages of several sizes`);
  return built(bytes);
}
