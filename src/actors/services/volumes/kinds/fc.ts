/** `fc`: a disk behind a Fibre Channel card, found and mounted once for all pods of the node. */

import type { Fc } from '../../../../machines/pod/volumes/kinds/fc.ts';
import { fcGlobal, fcRoot, fcUniqueName } from '../../../../machines/services/volumes/devices/fc.ts';
import { attachFc, detachFc } from '../devices/fc.ts';
import { sanActs } from '../devices/san.ts';
import type { InlineActs, PersistentActs } from '../kind.ts';

export const fc: { inline: InlineActs<Fc>; persistent: PersistentActs<Fc> } = sanActs<Fc>({
  root: fcRoot,
  uniqueName: ({ disk }) => fcUniqueName(disk),
  place: (o, { source, block }) => fcGlobal(o.facts().rootDir, source.disk, block),
  attach: (o, { source, global }, signal) => attachFc(o, { disk: source.disk, global }, signal),
  detach: detachFc,
});
