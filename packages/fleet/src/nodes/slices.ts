/** ResourceSlices of a machine: its devices for dynamic allocation, published as their drivers do. */
import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { failureText, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import type { DevicesSpec } from '../spec/hardware/devices.ts';

const TIMEOUT_MS = 30_000;
const AGAIN_MS = 5_000;
const CONFLICT = 409;
const SLICES = '/apis/resource.k8s.io/v1/resourceslices';

export interface Published {
  name: string;
  devices: readonly DevicesSpec[];
  kube: KubeApi;
  clock: Clock;
  log: Logger;
}

/** Once for each node object that the API server shows. Until that is disposed of. */
export function publish(registry: Pick<Registry, 'watch'>, { name, devices, kube, clock, log }: Published): Disposable {
  const stop = new AbortController();
  let owner = '';
  let again: unknown;
  const written = async (request: KubeRequest): Promise<{ code: number; why: string } | null> => {
    const answer = await kube.request(request, { timeoutMs: TIMEOUT_MS, signal: stop.signal });
    return answer.ok ? null : { code: answer.failure.code, why: failureText(request, answer.failure) };
  };
  const write = async (uid: string): Promise<void> => {
    for (const slice of devices.map((of) => sliceOf(of, { name, uid }))) {
      const post = await written({ verb: 'POST', path: SLICES, body: slice });
      const path = `${SLICES}/${slice.metadata.name}`;
      const failed = post?.code === CONFLICT ? await written({ verb: 'PATCH', path, patchType: 'merge', body: slice }) : post;
      if (stop.signal.aborted) return;
      if (failed === null) continue;
      log.warn({ node: name, error: failed.why }, 'devices of a node are not published; they are written again in 5 s');
      again = clock.setTimeout(() => void write(uid), AGAIN_MS);
      return;
    }
  };
  const watching = registry.watch(apiView.nodeObject, ({ object }) => {
    const { uid } = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
    if (typeof uid !== 'string' || uid === owner || stop.signal.aborted) return;
    owner = uid;
    clock.clearTimeout(again);
    void write(uid);
  });
  return {
    [Symbol.dispose]() {
      watching[Symbol.dispose]();
      clock.clearTimeout(again);
      stop.abort();
    },
  };
}

function sliceOf({ driver, count, attributes, capacity }: DevicesSpec, { name, uid }: { name: string; uid: string }) {
  const amounts = Object.fromEntries(Object.entries(capacity).map(([of, value]) => [of, { value }]));
  const device = (i: number) => ({ name: `device-${i}`, attributes, capacity: amounts });
  return {
    ...{ apiVersion: 'resource.k8s.io/v1', kind: 'ResourceSlice' },
    metadata: { name: `${name}-${driver}`, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid, controller: true }] },
    spec: {
      ...{ driver, nodeName: name, pool: { name, generation: 1, resourceSliceCount: 1 } },
      devices: Array.from({ length: count }, (_, i) => device(i)),
    },
  };
}
