/**
 * State held: this node's requests for certificates of pods, as the API server last showed them.
 * Lost on restart: nothing published.
 * Rebuilt from: one list. While the API server is away, what it showed last stays.
 */
import type { ApiFound } from '../../../machines/api/messages.ts';
import { objectKey } from '../../../machines/kube/request.ts';
import { certificateRequestsView, certificatesAddr } from '../../../machines/services/certificates/messages.ts';
import { listWatch } from '../../api/client.ts';
import type { ActorSpec } from '../../supervision/types.ts';
import { certificatesClient, certificatesPath } from './client.ts';

export function certificateRequestsSpec(o: { nodeName: string; streams: boolean }): ActorSpec<ApiFound> {
  return {
    type: 'actor',
    id: 'certificateRequests',
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) =>
      listWatch(ctx, {
        streams: o.streams,
        what: `requests for certificates of pods on ${o.nodeName}`,
        path: certificatesPath.requests,
        // An API server lets a node see these alone.
        query: { fieldSelector: `spec.nodeName=${o.nodeName}` },
        client: certificatesClient(ctx),
        deliver: ({ items, changed }) => {
          ctx.publish(certificateRequestsView, items);
          const gone = changed.map(objectKey).filter((key) => !items.has(key));
          ctx.registry.send(certificatesAddr.podCertificates, { type: 'requests.changed', gone });
        },
      }),
  };
}
