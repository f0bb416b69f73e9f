/** `persistentVolumeClaim`, and `ephemeral`, whose claim the cluster makes for the pod. What is behind a claim is a kind of its own. */

import { built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { textOf } from '../../../shape/lenient.ts';
import { honouredOfApi } from '../../fieldRule.ts';
import type { InlineKind } from '../kind.ts';

export interface Claim {
  kind: 'claim';
  /** Null: the one that was made for this volume of this pod. */
  claim: string | null;
  readOnly: boolean;
  /** Containers are given the device itself. */
  block: boolean;
  /** It stands in the pod itself, as the volume of an old plugin. */
  inTree?: { field: string; content: Record<string, unknown> };
}

/** The plugin of every claim in the pod's own records. On disk its volume goes by the plugin behind it (`Stand`). */
export const LOCAL_VOLUME = 'kubernetes.io~local-volume';

export const claim: { inline: InlineKind<Claim> } = {
  inline: {
    kind: 'claim',
    plugin: LOCAL_VOLUME,
    // The volume of a claim has one name here, whatever is behind it.
    shown: 'persistentVolumeClaim',
    fields: {
      persistentVolumeClaim: (content) => {
        const name = textOf(content.claimName);
        if (name === '') return refused('persistentVolumeClaim.claimName must be set');
        return built({ kind: 'claim', claim: name, readOnly: content.readOnly === true, block: false });
      },
      ephemeral: () => built({ kind: 'claim', claim: null, readOnly: false, block: false }),
    },
    // The cluster makes a claim of `ephemeral` before the pod is bound to a node.
    rules: honouredOfApi('persistentVolumeClaim.claimName', 'persistentVolumeClaim.readOnly', 'ephemeral.volumeClaimTemplate'),
    stands: 'here',
    foreign: true,
    refreshes: false,
    fromApi: true,
    mounted: ({ readOnly }, dir) => ({ hostPath: dir, readOnly, managed: !readOnly }),
    device: { is: ({ block }) => block, of: (source) => ({ ...source, block: true }) },
    grows: ({ readOnly, inTree }) => !readOnly && inTree === undefined,
    claimName: (volume, { metadata: { name } }) => {
      const { persistentVolumeClaim, ephemeral } = volume;
      const named = isRecord(persistentVolumeClaim) ? textOf(persistentVolumeClaim.claimName) : '';
      if (named !== '') return named;
      return ephemeral === undefined ? null : `${name}-${volume.name}`;
    },
  },
};
