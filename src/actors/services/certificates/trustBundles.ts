/**
 * State held: the cluster's trust anchors, for projected volumes.
 * Lost on restart: nothing published.
 * Rebuilt from: one list. While the API server is away, what it showed last stays.
 */
import type { ApiFound } from '../../../machines/api/messages.ts';
import { kindOf } from '../../../machines/pod/volumes/kinds.ts';
import { podVolumes } from '../../../machines/pod/volumes/volumes.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { trustBundlesView } from '../../../machines/services/certificates/messages.ts';
import { toTrustBundle } from '../../../machines/services/certificates/trustBundles.ts';
import { volumesAddr } from '../../../machines/services/volumes/messages.ts';
import { listWatch, oncePerObject } from '../../api/client.ts';
import type { ActorSpec } from '../../supervision/types.ts';
import { certificatesClient, certificatesPath } from './client.ts';

export function trustBundlesSpec(o: { streams: boolean }): ActorSpec<ApiFound> {
  return {
    type: 'actor',
    id: 'trustBundles',
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => {
      const bundleOf = oncePerObject(toTrustBundle);
      return listWatch(ctx, {
        streams: o.streams,
        what: 'cluster trust bundles',
        path: certificatesPath.trustBundles,
        client: certificatesClient(ctx),
        deliver: (context) => {
          const first = ctx.registry.read(trustBundlesView) === undefined;
          if (context.changed.length === 0 && !first && context.heard) return;
          ctx.publish(trustBundlesView, [...context.items.values()].map(bundleOf));
          for (const { pod } of ctx.registry.read(podsView)?.value.records.values() ?? []) {
            const concerned = podVolumes(pod).volumes.some(({ source }) => kindOf(source).namesTrustAnchors?.(source));
            if (concerned) ctx.registry.send(volumesAddr, { type: 'volumes.refresh', uid: pod.metadata.uid, changed: true });
          }
        },
      });
    },
  };
}
