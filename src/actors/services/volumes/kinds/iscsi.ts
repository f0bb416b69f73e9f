/** `iscsi`: a disk of a SAN, logged in to and mounted once for all pods of the node. */

import type { Pod } from '../../../../machines/kube/types.ts';
import type { Iscsi } from '../../../../machines/pod/volumes/kinds/iscsi.ts';
import { iscsiGlobal, iscsiRoot, iscsiUniqueName, targetOf } from '../../../../machines/services/volumes/devices/iscsi.ts';
import { attachIscsi, detachIscsi } from '../devices/iscsi.ts';
import { sanActs } from '../devices/san.ts';
import type { InlineActs, PersistentActs, VolumeTools } from '../kind.ts';

export const iscsi: { inline: InlineActs<Iscsi>; persistent: PersistentActs<Iscsi> } = sanActs<Iscsi>({
  root: iscsiRoot,
  uniqueName: iscsiUniqueName,
  place: (o, { source, name, block }) => iscsiGlobal(o.facts().rootDir, targetOf(source, name), block),
  attach: async (o, { source, name, pod, global }, signal) => {
    const { chapDiscovery: discovery, chapSession: session } = source;
    const secret = discovery || session ? await secretOf(o, source, pod, signal) : {};
    return attachIscsi(o, { target: targetOf(source, name), global, chap: { discovery, session, secret } }, signal);
  },
  detach: detachIscsi,
});

async function secretOf(o: VolumeTools, { secret }: Iscsi, pod: Pod, signal: AbortSignal): Promise<Record<string, string>> {
  if (secret === null) return {};
  const { api } = o.csi;
  if (api === null) throw new Error('this node has no API to ask for the secret of an iSCSI disk');
  return api.secret({ name: secret.name, namespace: secret.namespace || pod.metadata.namespace }, signal);
}
