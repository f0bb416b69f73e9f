/** Extended resources of a machine: written into the status of its node, as administrators advertise them. */
import type { Registry } from '../actors/supervision/types.ts';
import { apiView } from '../machines/api/messages.ts';
import { isRecord } from '../machines/shape/conform.ts';
import type { KubeApi } from '../ports/kube.ts';

const TIMEOUT_MS = 30_000;

export interface Advertised {
  name: string;
  /** How many of each. */
  extended: Readonly<Record<string, number>>;
  kube: KubeApi;
}

/** Whenever the API server shows the node without them, which a registration does. Until that is disposed of. */
export function advertise(registry: Pick<Registry, 'watch'>, { name, extended, kube }: Advertised): Disposable {
  const stop = new AbortController();
  const amounts = Object.fromEntries(Object.entries(extended).map(([resource, count]) => [resource, String(count)]));
  let asking = false;
  const write = async (): Promise<void> => {
    asking = true;
    const body = { status: { capacity: amounts, allocatable: amounts } };
    const path = `/api/v1/nodes/${name}/status`;
    // What fails is asked for again with the next change of the node.
    await kube.request({ verb: 'PATCH', path, patchType: 'strategic', body }, { timeoutMs: TIMEOUT_MS, signal: stop.signal });
    asking = false;
  };
  const watching = registry.watch(apiView.nodeObject, ({ object }) => {
    const status = isRecord(object) && isRecord(object.status) ? object.status : undefined;
    const shown = isRecord(status?.capacity) ? status.capacity : undefined;
    if (shown === undefined || asking || stop.signal.aborted) return;
    if (Object.entries(amounts).some(([resource, amount]) => shown[resource] !== amount)) void write();
  });
  return {
    [Symbol.dispose]() {
      watching[Symbol.dispose]();
      stop.abort();
    },
  };
}
