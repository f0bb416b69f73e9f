/**
 * State held: an open socket, how many calls were made just now.
 * Lost on restart: calls in progress.
 * Rebuilt from: nothing needed; answers come from published views.
 */

import type { ServerEvent } from '../../machines/edge/messages.ts';
import {
  allocatableResources,
  callBucket,
  listPodResources,
  type PodResourcesFacts,
  podResourcesByName,
} from '../../machines/edge/podResources.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import type { Ports } from '../../ports/ports.ts';
import type { PodResourcesAnswers } from '../../ports/sockets/podResources.ts';
import { heldResources } from '../allocation/client.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { specOfAgentServer } from './socketFolder.ts';

export interface PodResourcesOptions {
  rootDir: string;
  /** Pods that have ended are not listed. */
  activeOnly: boolean;
  /** One pod can be asked for by its name. */
  get: boolean;
}

/** Below the root directory. */
const FOLDER = 'pod-resources';
const SOCKET = 'kubelet.sock';
/** A half list after a restart would tell that devices are free. Without its API server the node answers with what it knows after this. */
const WHOLE_LIST_MS = 30_000;

/** The pod resources API: `pod-resources/kubelet.sock`. Only root may open it. */
export function podResourcesSpec(o: PodResourcesOptions): ActorSpec<ServerEvent> {
  return specOfAgentServer({ id: 'podResources', folder: `${o.rootDir}/${FOLDER}`, socket: SOCKET }, (ctx, path) => {
    const { podResources } = ctx.ports;
    if (podResources === undefined) throw new Error('this node cannot serve the pod resources API');
    return podResources.serve(path, answersOf(ctx, o));
  });
}

function answersOf(ctx: ActorCtx<ServerEvent>, o: PodResourcesOptions): PodResourcesAnswers {
  const { registry, ports } = ctx;
  const counts = metricsOf(ports.metrics);
  const bucket = callBucket();
  const openedMs = ports.clock.monoMs();
  const isWhole = (): boolean => registry.read(podsView)?.value.sourcesReady === true || ports.clock.monoMs() - openedMs >= WHOLE_LIST_MS;
  const facts = (): PodResourcesFacts => ({
    records: registry.read(podsView)?.value.records ?? new Map(),
    statuses: registry.read(statusesView)?.value,
    held: heldResources(registry),
  });
  return {
    admit: () => bucket.take(ports.clock.monoMs()),
    list(api) {
      counts.asked('list', api);
      if (!isWhole()) {
        counts.failed('list', api);
        throw new Error('this node has just started, and does not know all of its pods yet: ask again');
      }
      return listPodResources(facts(), { active: o.activeOnly });
    },
    allocatable() {
      counts.asked('get_allocatable', 'v1');
      return allocatableResources(facts());
    },
    get(pod) {
      counts.asked('get', 'v1');
      const found = o.get ? podResourcesByName(facts(), pod) : null;
      if (found !== null) return found;
      counts.failed('get', 'v1');
      throw new Error(o.get ? `pod ${pod.name} in namespace ${pod.namespace} not found` : 'PodResources API Get method disabled');
    },
  };
}

/** The reference's names. */
function metricsOf(metrics: Ports['metrics']) {
  const labels = ['server_api_version'];
  const one = (name: string, of: string) =>
    metrics.counter(
      `kubelet_pod_resources_endpoint_${name}`,
      `Number of ${of} the PodResource endpoint. Broken down by server api version.`,
      labels,
    );
  const total = one('requests_total', 'requests to');
  const requests = {
    list: one('requests_list', 'requests to List of'),
    get: one('requests_get', 'requests to Get of'),
    get_allocatable: one('requests_get_allocatable', 'requests to GetAllocatableResources of'),
  };
  const errors = {
    list: one('errors_list', 'List requests that failed at'),
    get: one('errors_get', 'Get requests that failed at'),
    get_allocatable: one('errors_get_allocatable', 'GetAllocatableResources requests that failed at'),
  };
  return {
    asked(what: keyof typeof requests, server_api_version: string) {
      total.inc({ server_api_version });
      requests[what].inc({ server_api_version });
    },
    failed: (what: keyof typeof errors, server_api_version: string) => errors[what].inc({ server_api_version }),
  };
}
