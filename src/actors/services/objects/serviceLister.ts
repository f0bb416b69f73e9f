/**
 * State held: the services of the cluster that have an address, for the environment of containers.
 * Lost on restart: nothing published.
 * Rebuilt from: one list. While the API server is away, what it showed last stays.
 */
import { kubePath } from '../../../machines/kube/request.ts';
import { toServiceEntry } from '../../../machines/pod/serviceEnv.ts';
import { type ServiceListerEvent, servicesView } from '../../../machines/services/objects/messages.ts';
import { listWatch, oncePerObject } from '../../api/client.ts';
import type { ActorSpec } from '../../supervision/types.ts';

export function serviceListerSpec(o: { streams: boolean }): ActorSpec<ServiceListerEvent> {
  return {
    type: 'actor',
    id: 'serviceLister',
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => {
      const entryOf = oncePerObject(toServiceEntry);
      return listWatch(ctx, {
        streams: o.streams,
        what: 'services',
        path: kubePath.services,
        deliver: (context) => {
          const first = ctx.registry.read(servicesView) === undefined;
          if (context.changed.length === 0 && !first && context.heard) return;
          ctx.publish(
            servicesView,
            [...context.items.values()].map(entryOf).filter((e) => e !== null),
          );
        },
      });
    },
  };
}
