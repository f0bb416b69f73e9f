/** Why a node is as it is: what `actorctl why node` prints. Pure. */
import { AWAITING_REASONS } from '@actorlet/kubelet/machines/api/messages.ts';
import { waitingPodsView } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { plegAddr } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';
import { volumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { Explanation } from '../answers.ts';
import { wrongWith } from '../moment/wrong.ts';
import { nodePage } from '../nodePage.ts';
import { disagreementText, notYet, observerView, standing } from '../observer/ledger.ts';
import { peerText, peerWords, unsaid } from './whyPeers.ts';
import { stuckVolumes } from './whyVolumes.ts';

/** Actors and pods named at most. */
const NAMED_MAX = 12;

export function explainNode(m: Moment): Explanation {
  const { nowMs } = m;
  const { runtime, api, pods, startedAtMs } = nodePage(m);
  const wrong = wrongWith(m);
  const unwell = wrong.actors.filter((h) => !h.ok);
  const waits = awaiting(m.state());
  const count = (phase: string) => pods.filter((p) => p.phase === phase).length;
  const ready = runtime.ready && runtime.networkReady;
  const away = runtime.ready ? `the network of ${runtime.name} is not ready` : 'the runtime does not answer or is not ready';
  const notReady = ready ? [] : [`${away}${runtime.reason === '' ? '' : `: ${runtime.reason}`}`];
  const sources = wrong.manifests.map((e) => `${e.source} ${e.where}: ${e.message}`);
  const stuck = stuckVolumes(m.read(volumesView) ?? new Map(), nowMs, podNameOf(m));
  const troubled = wrong.pods.map((p) => `${p.name}: ${p.status}${p.message === '' ? '' : `: ${p.message}`} (actorctl why ${p.name})`);
  const peers = unsaid(peerWords(m), [...stuck, ...troubled]).map((w) => peerText(w, nowMs, podNameOf(m)));
  const observer = m.read(observerView);
  // What is expected and late is both.
  const kubelet = new Set([
    ...notYet(observer, nowMs, { uid: '' }),
    ...standing(observer).map((d) => `${d.pod === '' ? '' : `${d.pod}: `}${disagreementText(d, nowMs)}`),
  ]);
  const lines = [
    observer === undefined
      ? `Node ${m.name}  ${m.version}, up ${shortDuration(nowMs - startedAtMs)}`
      : `Node ${m.name}  observed by ${m.version} for ${shortDuration(nowMs - startedAtMs)}`,
    `  ready    ${ready ? 'yes' : `no: ${notReady.join()}`}`,
    `  runtime  ${runtime.name === '' ? 'not reached yet' : `${runtime.name} ${runtime.version}`}${ready && runtime.reason !== '' ? `: ${runtime.reason}` : ''}`,
    `  API      ${api === null ? 'none: a standalone node' : `${api.server} ${api.state} for ${shortDuration(nowMs - api.sinceMs)}${api.reason === '' ? '' : `: ${api.reason}`}`}`,
    `  pressure ${wrong.pressures.length === 0 ? 'none' : `${wrong.pressures.join(', ')}: no new pods of the lowest class are admitted`}`,
    `  pods     ${pods.length}, ${count('Pending')} Pending, ${count('Failed')} Failed`,
    ...named('Pods that are not ready', troubled),
    ...named('Volumes', stuck),
    ...named('Kubelet', [...kubelet]),
    ...named('Lower layers', peers),
    ...named('Sources', sources),
    ...named('Waiting for the API server', waits),
    ...named(
      'Not well',
      unwell.map((h) => `${h.name}: ${h.reason}`),
    ),
  ];
  const node = {
    name: m.name,
    ready,
    problems: [...notReady, ...wrong.lost.values(), ...sources, ...waits, ...peers, ...kubelet],
    pressures: [...wrong.pressures],
    pods: wrong.pods.map((p) => p.name),
    unwell,
  };
  return { found: true, lines: lines.map(printable), node };
}

/** `namespace/name` of the pod with that UID. */
function podNameOf(m: Moment): (uid: string) => string {
  const [records, awaited] = [m.read(podsView)?.records, m.read(waitingPodsView)];
  return (uid) => {
    const metadata = (records?.get(uid) ?? awaited?.get(uid))?.pod.metadata;
    return metadata === undefined ? uid : `${metadata.namespace}/${metadata.name}`;
  };
}

/** Actors that have asked the API server for all objects of their kind, and do not have them yet. */
function awaiting(actor: ActorView): string[] {
  // The runtime's pods are listed, too.
  const own = AWAITING_REASONS.includes(actor.reason) && actor.path !== plegAddr.path ? [`${actor.path}: ${actor.message}`] : [];
  return [...own, ...actor.children.flatMap(awaiting)];
}

function named(title: string, items: readonly string[]): string[] {
  if (items.length === 0) return [];
  const more = items.length - NAMED_MAX;
  return [title, ...items.slice(0, NAMED_MAX).map((item) => `  ${item}`), ...(more > 0 ? [`  and ${more} more`] : [])];
}
