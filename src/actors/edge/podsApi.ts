/**
 * State held: an open socket, how many calls were made just now.
 * Lost on restart: calls in progress, watches.
 * Rebuilt from: nothing needed; answers come from published views.
 */

import type { ServerEvent } from '../../machines/edge/messages.ts';
import { callBucket } from '../../machines/edge/podResources.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import type { PodNow, PodsApiAnswers } from '../../ports/sockets/podsApi.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { specOfAgentServer } from './socketFolder.ts';

export interface PodsApiOptions {
  rootDir: string;
}

/** Below the root directory; names of the reference. */
const FOLDER = 'pods-api';
const SOCKET = 'pods-api.sock';

/** The pods API (gate `PodsAPI`): `pods-api/pods-api.sock`. Only root may open it. */
export function podsApiSpec(o: PodsApiOptions): ActorSpec<ServerEvent> {
  return specOfAgentServer({ id: 'podsApi', folder: `${o.rootDir}/${FOLDER}`, socket: SOCKET }, (ctx, path) => {
    const { podsApi } = ctx.ports;
    if (podsApi === undefined) throw new Error('this node cannot serve the pods API');
    return podsApi.serve(path, answersOf(ctx));
  });
}

function answersOf({ registry, ports }: ActorCtx<ServerEvent>): PodsApiAnswers {
  // Always 0: a caller that reads slowly misses no pod.
  ports.metrics.counter('kubelet_pod_watch_events_dropped_total', 'Cumulative number of pod watch events dropped.').inc({}, 0);
  const bucket = callBucket();
  const now = (uid: string): PodNow | null => {
    const record = registry.read(podsView)?.value.records.get(uid);
    // What the runtime alone knows is no pod of a source.
    if (record === undefined || record.source === 'runtime') return null;
    return { pod: record.pod, status: registry.read(statusesView)?.value.get(uid)?.status ?? record.pod.status };
  };
  return {
    admit: () => bucket.take(ports.clock.monoMs()),
    list: () => [...(registry.read(podsView)?.value.records.keys() ?? [])].sort().flatMap((uid) => now(uid) ?? []),
    get: now,
    watch(changed) {
      const both = [registry.watch(podsView, changed), registry.watch(statusesView, changed)];
      return { [Symbol.dispose]: () => both.forEach((one) => void one[Symbol.dispose]()) };
    },
  };
}
