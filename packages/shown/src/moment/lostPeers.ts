/** What a node works with and cannot reach: the runtime, its network, the API server, the list of pods. Pure. */
import { apiAddr, apiView, DEAF_AFTER_MS } from '@actorlet/kubelet/machines/api/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { criAddr, criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

/** By the actor that has the link. */
export function lostPeers(m: Pick<Moment, 'read' | 'stateAt' | 'monoMs'>): ReadonlyMap<string, string> {
  const lost = new Map<string, string>();
  const cri = m.read(criView);
  const runtime = cri?.runtimeName || 'the container runtime';
  if (cri !== undefined && cri.state !== 'ready') lost.set(criAddr.path, `${runtime} does not answer: ${cri.reason}`);
  else if (cri?.runtimeReady === false) lost.set(criAddr.path, `${runtime} says that it is not ready: ${cri.reason}`);
  else if (cri?.networkReady === false) lost.set(criAddr.path, `the network of ${runtime} is not ready: ${cri.networkReason}`);
  const api = m.read(apiView.link);
  if (api !== undefined && api.state !== 'reachable') {
    lost.set(apiAddr.link.path, `the API server ${api.server} does not answer${api.reason === '' ? ' yet' : `: ${api.reason}`}`);
  }
  const heard = m.read(apiView.podsHeard);
  const source = m.stateAt(apiAddr.source.path);
  if (heard !== undefined && m.monoMs - heard.atMonoMs > DEAF_AFTER_MS && source?.reason !== 'Quiet') {
    const why = source?.message ?? '';
    const forText = shortDuration(m.monoMs - heard.atMonoMs);
    const tail = why === '' ? '' : `: ${why}`;
    lost.set(apiAddr.source.path, `nothing was heard about the pods of this node for ${forText}; new pods do not start${tail}`);
  }
  return lost;
}
