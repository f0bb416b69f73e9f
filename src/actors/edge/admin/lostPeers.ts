/** What a node works with and cannot reach: the runtime, its network, the API server, the list of pods. */
import { apiAddr, apiView, isDeaf } from '../../../machines/api/messages.ts';
import { criAddr, criView } from '../../../machines/runtime/cri/messages.ts';
import { shortDuration } from '../../../machines/text/duration.ts';
import type { Registry } from '../../supervision/types.ts';
import type { Inspect } from '../server.ts';

/** What the node needs outside itself and cannot reach, by the actor that has the link. */
export function lostPeers(registry: Registry, { stateAt }: Pick<Inspect, 'stateAt'>, nowMonoMs: number): ReadonlyMap<string, string> {
  const lost = new Map<string, string>();
  const cri = registry.read(criView)?.value;
  const runtime = cri?.runtimeName || 'the container runtime';
  if (cri !== undefined && cri.state !== 'ready') lost.set(criAddr.path, `${runtime} does not answer: ${cri.reason}`);
  else if (cri?.runtimeReady === false) lost.set(criAddr.path, `${runtime} says that it is not ready: ${cri.reason}`);
  else if (cri?.networkReady === false) lost.set(criAddr.path, `the network of ${runtime} is not ready: ${cri.networkReason}`);
  const api = registry.read(apiView.link)?.value;
  if (api !== undefined && api.state !== 'reachable') {
    lost.set(apiAddr.link.path, `the API server ${api.server} does not answer${api.reason === '' ? ' yet' : `: ${api.reason}`}`);
  }
  const heard = registry.read(apiView.podsHeard)?.value;
  if (isDeaf(heard, nowMonoMs)) {
    const why = stateAt(apiAddr.source.path)?.message ?? '';
    const forText = shortDuration(nowMonoMs - heard.atMonoMs);
    const tail = why === '' ? '' : `: ${why}`;
    lost.set(apiAddr.source.path, `nothing was heard about the pods of this node for ${forText}; new pods do not start${tail}`);
  }
  return lost;
}
