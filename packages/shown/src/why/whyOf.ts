/** What `actorctl why` says of a pod, a manifest or the node, at one moment. Pure. */
import { claimStepsView, claimsView } from '@actorlet/kubelet/machines/allocation/claims/messages.ts';
import { topologyView } from '@actorlet/kubelet/machines/allocation/coordinator/messages.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { waitingPodsView } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { manifestsView, sourceErrorsView } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { runtimePodsView } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';
import { volumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import type { Explanation } from '../answers.ts';
import { observerView } from '../observer/ledger.ts';
import { explainPod } from './why.ts';
import { explainNode } from './whyNode.ts';
import { peerWords } from './whyPeers.ts';

/** `query`: `node` or its name, else what {@link explainPod} takes. */
export function whyOf(m: Moment, query: string): Explanation {
  return query === 'node' || query === m.name ? explainNode(m) : whyPod(m, query);
}

/** `events` false: without them, for a page that has them beside it. */
export function whyPod(m: Moment, query: string, o: { events: boolean } = { events: true }): Explanation {
  return explainPod({
    query,
    nowMs: m.nowMs,
    monoMs: m.monoMs,
    pods: m.read(podsView),
    waiting: m.read(waitingPodsView),
    statuses: m.read(statusesView),
    events: o.events ? m.read(eventsView) : [],
    sourceErrors: m.read(sourceErrorsView),
    listed: m.read(runtimePodsView)?.pods,
    manifests: m.read(manifestsView),
    startedAtMs: m.startedAtMs,
    cri: m.read(criView),
    volumes: m.read(volumesView),
    topology: m.read(topologyView),
    claims: { records: m.read(claimsView), steps: m.read(claimStepsView) },
    peers: peerWords(m),
    observer: m.read(observerView),
    actorAt: (path) => m.stateAt(path),
  });
}
