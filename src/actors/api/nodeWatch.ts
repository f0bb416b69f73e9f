/**
 * Follows this node's own object: reports compare with it and need not ask, and what others change is seen at once.
 *
 * State held: the object as the API server last showed it, and the version the watch stands at.
 * Lost on restart: both; until the next list, reports ask for the object.
 * Rebuilt from: one list.
 */

import { type ApiFound, apiAddr, apiView } from '../../machines/api/messages.ts';
import { sameData } from '../../machines/data/sameData.ts';
import { isExtendedResource } from '../../machines/kube/names.ts';
import { type KubeObject, kubePath } from '../../machines/kube/request.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import type { ActorSpec } from '../supervision/types.ts';
import { listWatch } from './client.ts';

export function nodeWatchSpec(o: { nodeName: string; streams: boolean }): ActorSpec<ApiFound> {
  return {
    type: 'actor',
    id: 'nodeWatch',
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => {
      let seen: KubeObject | null = null;
      return listWatch(ctx, {
        streams: o.streams,
        what: `node ${o.nodeName}`,
        path: kubePath.nodes,
        query: { fieldSelector: `metadata.name=${o.nodeName}` },
        deliver: ({ items }) => {
          const [object = null] = items.values();
          ctx.publish(apiView.nodeObject, { object, heardAtMonoMs: ctx.ports.clock.monoMs() });
          const before = seen;
          seen = object;
          // Its own reports change the object too: they are no reason to look again.
          if (before !== null && (object === null || !sameData(ofOthers(before), ofOthers(object))))
            ctx.registry.send(apiAddr.nodeStatus, { type: 'node.changed' });
        },
      });
    },
  };
}

/** Fields of a node that other programs decide, and this one acts on. */
function ofOthers({ metadata, spec, status }: KubeObject): unknown {
  const { uid, deletionTimestamp, labels, annotations } = metadata;
  const { volumesAttached: attached, capacity = {} } = isRecord(status) ? status : {};
  // Resources of device plugins are among them, and are looked at once more.
  const extended = Object.entries(isRecord(capacity) ? capacity : {}).filter(([name]) => isExtendedResource(name));
  return { uid, deletionTimestamp, labels, annotations, spec, attached, extended };
}
