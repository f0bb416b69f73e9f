/** Nodes, pods and metrics of a running cluster, page by page: no more than a page of it is in memory. */

import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Twin } from '../../from/twin.ts';
import { ApiError, type Asking, NOT_FOUND } from '../../watches/asking.ts';
import { items } from '../api/lists.ts';

const EXPIRED = 410;
/** A cluster that forgets its history faster than it can be read is asked that often. */
const TRIES = 3;
const METRICS = '/apis/metrics.k8s.io/v1beta1';

/** Pages of one list belong together: where the API server has forgotten them in between, all begins anew. @throws ApiError */
export async function readCluster(make: () => Twin, o: Asking): Promise<Twin> {
  for (let left = TRIES; ; left -= 1) {
    const twin = make();
    try {
      await read(twin, o);
      return twin;
    } catch (error) {
      if (left === 1 || !(error instanceof ApiError) || error.code !== EXPIRED) throw error;
    }
  }
}

async function read(twin: Twin, o: Asking): Promise<void> {
  const from = o.kube.server;
  const add = (item: Record<string, unknown>, of: { apiVersion: string; kind: string }): void => twin.add({ ...item, ...of }, from);
  for await (const item of items({ path: '/api/v1/nodes' }, o)) add(item, { apiVersion: 'v1', kind: 'Node' });
  const namespaces = new Set<string>();
  // A user who may not list pods still gets the nodes, and one of a cluster without metrics the pods.
  await unless(twin, 'pods', async () => {
    for await (const item of items({ path: '/api/v1/pods' }, o)) {
      add(item, { apiVersion: 'v1', kind: 'Pod' });
      const { namespace } = isRecord(item.metadata) ? item.metadata : {};
      if (typeof namespace === 'string') namespaces.add(namespace);
    }
  });
  await unless(twin, 'usage of pods', async () => {
    // That API has no pages.
    for (const namespace of namespaces) {
      const path = `${METRICS}/namespaces/${encodeURIComponent(namespace)}/pods`;
      for await (const item of items({ path }, o)) add(item, { apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetrics' });
    }
  });
}

async function unless(twin: Twin, what: string, reading: () => Promise<void>): Promise<void> {
  try {
    await reading();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 0 || error.code === EXPIRED) throw error;
    twin.unreadable(what, error.code === NOT_FOUND ? 'the cluster has none' : messageOf(error));
  }
}
