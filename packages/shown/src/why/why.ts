/** Why a pod is as it is, as a chain a person can follow: what `actorctl why` prints. Pure. */

import { type Findable, findPod, recordMeant } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { eventMessage } from '@actorlet/kubelet/machines/foundation/eventLog.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import type { WaitingPod } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { isRefused, isWanted, LIFE_STATES, type PodRecord, podManagerAddr } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { manifestOf } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { criAddr } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { isUp } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { Explanation } from '../answers.ts';
import { kubectlPod } from '../pods/kubectlPod.ts';
import { podFacts } from '../pods/podFacts.ts';
import { workerWords } from '../workerWords.ts';
import { containerLines, explainedContainers } from './containers.ts';
import { claimLines } from './whyClaims.ts';
import { kubeletLines } from './whyKubelet.ts';
import { peersOfPod, peerText } from './whyPeers.ts';
import { absentLines, allErrors, errorLines, errorsOfPod, fileFits, isNamed, leftAloneLines, type WhyInput } from './whySources.ts';
import { topologyLines } from './whyTopology.ts';
import { volumeLines } from './whyVolumes.ts';

/** Events shown per pod. */
const EVENTS_MAX = 8;
/** Names offered when nothing fits. */
const NAMES_MAX = 10;

export function explainPod(i: WhyInput): Explanation {
  const found = findPod(i.query, i.pods?.records ?? new Map());
  const severalFit = (names: readonly string[]): Explanation => ({
    found: false,
    lines: [`${i.query} fits several pods, say which:`, ...names.map((n) => `  ${n}`)].map(printable),
  });
  switch (found.kind) {
    case 'one':
      return explained(found.uid, found.record, i);
    case 'many':
      return severalFit(found.names);
    case 'none': {
      const waiting = findPod(i.query, new Map([...(i.waiting ?? [])].map(([uid, w]) => [uid, { ...w, state: null }])));
      if (waiting.kind === 'one') return { found: true, lines: explainWaiting(waiting.uid, waiting.record, i).map(printable) };
      if (waiting.kind === 'many') return severalFit(waiting.names);
      const held = podOfManifest(i);
      return held === undefined ? explainAbsent(i) : explained(held.uid, held.record, i);
    }
  }
}

/** The pod of a manifest file that can be used; one that cannot is explained by what is wrong with it. */
function podOfManifest(i: WhyInput): { uid: string; record: PodRecord } | undefined {
  if (allErrors(i).some((e) => fileFits(e.where, i.query))) return undefined;
  const [path] = [...(i.manifests?.keys() ?? [])].filter((p) => fileFits(p, i.query));
  const pod = path === undefined ? undefined : i.manifests?.get(path);
  if (pod === undefined) return undefined;
  const found = findPod(`${pod.namespace}/${pod.name}`, i.pods?.records ?? new Map());
  return found.kind === 'one' ? found : undefined;
}

// ---- a pod the node knows ------------------------------------------------------------------------------------------

function explained(uid: string, record: PodRecord, i: WhyInput): Explanation {
  const runtime = runtimeLines(record.pod, i)
    .slice(1)
    .map((line) => line.trim());
  return { found: true, lines: explainRecord(uid, record, i).map(printable), pod: podFacts(uid, record, { ...i, runtime }) };
}

function explainRecord(uid: string, record: PodRecord, i: WhyInput): string[] {
  const { metadata } = record.pod;
  const status = i.statuses?.get(uid)?.status ?? record.pod.status;
  const lines = [
    `Pod ${metadata.namespace}/${metadata.name}  uid ${uid}`,
    `  from    ${origin(record, i)}, first seen ${ago(record.seenAtMs, i)}`,
    `  state   ${LIFE_STATES[record.state.is]}`,
  ];
  const waiting = i.waiting?.get(uid);
  if (waiting !== undefined) lines.push(`  next    ${admissionLine(waiting, i)}`);
  lines.push(`  phase   ${phaseLine(record, status)}`);
  if (isRefused(record)) lines.push(...rejection(status));
  lines.push(...leftAloneLines(record));
  lines.push(...containerLines(explainedContainers(record, status, { observed: i.observer !== undefined }), i.nowMs));
  if (!isRefused(record)) lines.push(...workerLines(uid, record, i));
  lines.push(...kubeletLines(uid, i));
  lines.push(...topologyLines(i.topology?.get(uid)?.decisions ?? []));
  lines.push(...claimLines(record.pod, i.claims, i.nowMs));
  lines.push(...volumeLines(i.volumes?.get(uid) ?? [], i.nowMs));
  lines.push(...runtimeLines(record.pod, i));
  lines.push(...peerLines(uid, lines, i));
  lines.push(...errorLines(errorsOfPod(record.pod, i), record));
  lines.push(...historyLines(status, i));
  lines.push(...causeLines(record));
  lines.push(
    ...eventLines(
      (i.events ?? []).filter((e) => e.pod?.uid === uid),
      i,
    ),
  );
  return lines;
}

/** A pod that a source names and that is neither let in nor refused yet. */
function explainWaiting(uid: string, waiting: WaitingPod, i: WhyInput): string[] {
  const { metadata } = waiting.pod;
  const events = (i.events ?? []).filter((e) => e.pod?.uid === uid);
  const lines = [
    `Pod ${metadata.namespace}/${metadata.name}  uid ${uid}`,
    `  from    ${origin({ ...waiting, state: null }, i)}`,
    `  state   ${admissionLine(waiting, i)}`,
    ...topologyLines(i.topology?.get(uid)?.decisions ?? []),
    ...runtimeLines(waiting.pod, i),
  ];
  return [...lines, ...peerLines(uid, lines, i), ...eventLines(events, i)];
}

/** Pods named in one line. */
const LEAVING_MAX = 5;
function admissionLine({ wait, refusal, asked, leaving, sinceMonoMs }: WaitingPod, i: WhyInput): string {
  const why = refusal ?? asked?.why ?? '';
  const told = why === '' ? '' : `: ${why}`;
  return `waiting to be admitted for ${shortDuration(i.monoMs - sinceMonoMs)}: ${WAITS[wait]}${told}${wait === 'room' ? leavingPods(leaving, i) : ''}`;
}
function leavingPods(leaving: WaitingPod['leaving'], i: WhyInput): string {
  if (leaving.size === 0) return '';
  const names = [...leaving.keys()].slice(0, LEAVING_MAX).map((uid) => fullNameOf(uid, i));
  const more = leaving.size - names.length;
  return `: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
function fullNameOf(uid: string, i: WhyInput): string {
  const metadata = i.pods?.records.get(uid)?.pod.metadata;
  return metadata === undefined ? uid : `${metadata.namespace}/${metadata.name}`;
}
const WAITS: Readonly<Record<WaitingPod['wait'], string>> = {
  later: 'the runtime or the node has to be read first',
  room: 'other pods have to end first, to make room for it',
  allocating: 'resources are being allocated to it',
  readmitting: 'it runs already, and its resources are being allocated anew',
  unallocated: 'it runs, without resources that are to be its own: they are asked for again, and what ended of it starts with them',
  unfit: 'it does not fit, and is refused once it is known whether its resources could be allocated',
  paced: 'it is refused in a moment, since its controller replaces it at once',
  held: 'it does not fail for it: its controller would replace it without end, or it ran here already',
};

function origin(record: Findable, i: WhyInput): string {
  if (record.source === 'runtime') return 'the runtime alone: no source wants it, it is being stopped';
  const file = manifestOf(i.manifests, record.pod.metadata);
  const where =
    record.source === 'file'
      ? file === undefined
        ? 'a manifest file'
        : `manifest ${file}`
      : record.source === 'http'
        ? 'the manifest URL'
        : 'the API server';
  return isWanted(record) ? where : `${where}, which no longer holds it: it is being stopped`;
}

function phaseLine(record: PodRecord, status: PodStatus | undefined): string {
  const phase = status?.phase ?? 'Pending (no status yet)';
  const { ready, containers } = kubectlPod({ spec: record.pod.spec, status: status ?? {}, deleted: false });
  const why = [status?.reason, status?.message].filter((s) => s !== undefined && s !== '').join(': ');
  return `${phase}, ${ready} of ${containers} containers ready${why === '' || isRefused(record) ? '' : `: ${why}`}`;
}

function rejection(status: PodStatus | undefined): string[] {
  const why = [status?.reason, status?.message].filter((s) => s !== undefined && s !== '').join(': ');
  return [
    'Refused',
    `  this node does not run it: ${why === '' ? 'the reason is in its events' : why}`,
    '  it is looked at again only when its specification changes',
  ];
}

function workerLines(uid: string, record: PodRecord, i: WhyInput): string[] {
  const actor = i.actorAt(`${workersAddr.path}/${uid}`);
  const lines: string[] = [];
  if (record.worker !== null) {
    const w = workerWords(uid, record.worker, i);
    const why = [w.reason, w.message].filter((s) => s !== '').join(': ');
    lines.push(
      `  ${w.state === '' ? record.worker.phase : w.state} for ${shortDuration(i.nowMs - w.sinceMs)}${why === '' ? '' : `: ${why}`}`,
    );
  } else {
    lines.push(`  none yet: ${noWorker(i)}`);
  }
  if (actor?.asleepMs !== undefined) {
    lines.push(`  asleep for ${shortDuration(actor.asleepMs)}: it has nothing to do, and what comes wakes it`);
  }
  if (actor !== undefined && !isUp(actor)) {
    const more = actor.lifecycle === 'quarantined' ? ', until its specification changes' : '';
    lines.push(`  ${actor.path} is ${actor.lifecycle}${more}${actor.lastError === undefined ? '' : `: ${actor.lastError}`}`);
  }
  if (actor !== undefined && actor.restarts > 0) {
    lines.push(
      `  it crashed and was restarted ${actor.restarts} times${actor.lastError === undefined ? '' : `, last with: ${actor.lastError}`}`,
    );
  }
  return ['Worker', ...lines];
}

function noWorker(i: WhyInput): string {
  for (const path of [podManagerAddr.path, workersAddr.path]) {
    const away = awayLine(i, path);
    if (away !== '') return away;
  }
  if (i.pods?.sourcesReady === false) return 'not every configured source has reported yet';
  return 'the pod manager has not started one';
}

function awayLine(i: Pick<WhyInput, 'actorAt'>, path: string): string {
  const actor = i.actorAt(path);
  if (actor === undefined) return `${path} is not started`;
  if (actor.lifecycle === 'running') return '';
  const why = actor.lastError ?? actor.reason;
  return `${path} is ${actor.lifecycle}${why === '' ? '' : `: ${why}`}`;
}

function runtimeLines(pod: Pod, i: WhyInput): string[] {
  const { cri } = i;
  const lines: string[] = [];
  if (cri === undefined) {
    lines.push(`  ${awayLine(i, criAddr.path) || 'no contact with the runtime yet'}`);
  } else if (cri.state !== 'ready') {
    const last =
      cri.lastGoodMonoMs === null ? 'it has never answered' : `it answered last ${shortDuration(i.monoMs - cri.lastGoodMonoMs)} ago`;
    lines.push(
      `  the link is ${cri.state}${cri.reason === '' ? '' : `: ${cri.reason}`}; ${last}; nothing can be started or stopped meanwhile`,
    );
  } else {
    if (!cri.runtimeReady) lines.push(`  ${cri.runtimeName} says that it is not ready${cri.reason === '' ? '' : `: ${cri.reason}`}`);
    if (!cri.networkReady && pod.spec.hostNetwork !== true) {
      lines.push(`  its network is not ready: ${cri.networkReason || 'no reason given'}; only host-network pods can start`);
    }
    if (cri.remark !== undefined && pod.spec.hostNetwork !== true) lines.push(`  ${cri.runtimeName} says: ${cri.remark}`);
  }
  return lines.length === 0 ? [] : ['Runtime', ...lines];
}

/** `said`: what is said of the pod above. */
function peerLines(uid: string, said: readonly string[], i: WhyInput): string[] {
  const found = peersOfPod(i.peers ?? [], { uid, said });
  return found.length === 0 ? [] : ['Lower layers', ...found.map((w) => `  ${peerText(w, i.nowMs)}`)];
}

/** A pod that is older than this daemon: what came before is not below. */
function historyLines(status: PodStatus | undefined, i: WhyInput): string[] {
  const { startedAtMs } = i;
  if (startedAtMs === undefined) return [];
  const begins = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap((c) =>
    [c.state, c.lastState].flatMap((s) => [s.running?.startedAt, s.terminated?.startedAt]),
  );
  if (![status?.startTime, ...begins].some((t) => typeof t === 'string' && Date.parse(t) < startedAtMs)) return [];
  return [
    `History begins ${ago(startedAtMs, i)} at ${clockTime(startedAtMs)}, when this daemon started: it keeps no causes and events of before`,
  ];
}

function causeLines(record: PodRecord): string[] {
  const causes = record.worker?.causes ?? [];
  return causes.length === 0 ? [] : ['Because (oldest first)', ...causes.map((c) => `  ${clockTime(c.atMs)}  ${c.what}  [${c.by}]`)];
}

function eventLines(events: readonly RecordedEvent[], i: WhyInput): string[] {
  if (events.length === 0) return [];
  const shown = events.slice(-EVENTS_MAX);
  const more = events.length > shown.length ? `, ${events.length - shown.length} older ones not shown` : '';
  const whose = i.observer === undefined ? '' : ' that this tree would have sent';
  return [`Events${whose} (oldest first${more})`, ...shown.map((e) => `  ${eventText(e, i)}`)];
}
function eventText(e: RecordedEvent, i: WhyInput): string {
  const times = e.count > 1 ? ` (${e.count} times since ${ago(e.firstAtMs ?? e.atMs, i)})` : '';
  return `${ago(e.atMs, i)}  ${e.type === 'Warning' ? 'Warning ' : ''}${e.reason}: ${eventMessage(e)}${times}`;
}

function ago(wallMs: number, i: Pick<WhyInput, 'nowMs'>): string {
  return `${shortDuration(i.nowMs - wallMs)} ago`;
}

// ---- manifests that cannot be used, pods that are gone -------------------------------------------------------------

function explainAbsent(i: WhyInput): Explanation {
  const q = i.query;
  const slash = q.indexOf('/');
  const [namespace, name] = slash > 0 ? [q.slice(0, slash), q.slice(slash + 1)] : [null, q];
  const errors = allErrors(i).filter((e) => fileFits(e.where, q) || isNamed(e.fullName ?? e.holds, namespace, name));
  const events = (i.events ?? []).filter(
    (e) => e.pod !== undefined && (e.pod.uid === q || (e.pod.name === name && (namespace === null || e.pod.namespace === namespace))),
  );
  if (errors.length > 0) {
    return { found: true, lines: [...errors.flatMap((e) => absentLines(e, i)), ...eventLines(events, i)].map(printable) };
  }
  if (events.length > 0) {
    return { found: true, lines: [`Pod ${q} is gone from this node; its last events remain.`, ...eventLines(events, i)].map(printable) };
  }
  return { found: false, lines: notFound(i).map(printable) };
}

function notFound(i: WhyInput): string[] {
  if (i.pods === undefined) {
    return [`No pod list yet: ${awayLine(i, podManagerAddr.path) || 'the pod manager has not published one'}.`, ...runtimeStart(i)];
  }
  const lines = [`No pod, manifest or event called ${i.query} on this node${recordMeant(i.query, i.pods.records)}.`];
  if (!i.pods.sourcesReady) lines.push('Not every configured source has reported yet: it may still come.');
  const names = [...i.pods.records.values()].map((r) => `${r.pod.metadata.namespace}/${r.pod.metadata.name}`).sort();
  if (names.length > 0) {
    const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : '';
    lines.push(`Known: ${names.slice(0, NAMES_MAX).join(', ')}${more}`);
  }
  const broken = allErrors(i);
  if (broken.length > 0) lines.push('Manifests that cannot be used:', ...broken.map((e) => `  ${e.where}: ${e.message}`));
  return lines;
}

function runtimeStart(i: WhyInput): string[] {
  if (i.cri === undefined || i.cri.state === 'ready') return [];
  return [`The runtime link is ${i.cri.state}${i.cri.reason === '' ? '' : `: ${i.cri.reason}`}.`];
}
