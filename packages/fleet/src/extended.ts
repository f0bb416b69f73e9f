/** Extended resources of a machine: written into the status of its node, as administrators advertise them. */
import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { failureText, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';

const TIMEOUT_MS = 30_000;
const AGAIN_MS = 5_000;

export interface Advertised {
  name: string;
  /** How many of each. */
  extended: Readonly<Record<string, number>>;
  kube: KubeApi;
  clock: Clock;
  log: Logger;
}

/** Whenever the API server shows the node without them, which a registration does. Until that is disposed of. */
export function advertise(registry: Pick<Registry, 'watch'>, { name, extended, kube, clock, log }: Advertised): Disposable {
  const stop = new AbortController();
  const amounts = Object.fromEntries(Object.entries(extended).map(([resource, count]) => [resource, String(count)]));
  let asking = false;
  let again: unknown;
  const write = async (): Promise<void> => {
    asking = true;
    const body = { status: { capacity: amounts, allocatable: amounts } };
    const path = `/api/v1/nodes/${name}/status`;
    const request: KubeRequest = { verb: 'PATCH', path, patchType: 'strategic', body };
    const answer = await kube.request(request, { timeoutMs: TIMEOUT_MS, signal: stop.signal });
    asking = !answer.ok && !stop.signal.aborted;
    if (answer.ok || stop.signal.aborted) return;
    log.warn(
      { node: name, error: failureText(request, answer.failure) },
      'extended resources of a node are not shown; they are written again in 5 s',
    );
    again = clock.setTimeout(() => void write(), AGAIN_MS);
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
      clock.clearTimeout(again);
      stop.abort();
    },
  };
}
