/** What `why` says of what a source holds: what cannot be used of it, and which fields of a pod are left alone. Pure. */

import type { TopologyDecisions } from '@actorlet/kubelet/machines/allocation/coordinator/messages.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { PeerWord } from '@actorlet/kubelet/machines/pod/peers/peers.ts';
import type { RuntimePodsView, SourceName } from '@actorlet/kubelet/machines/pod/runtime/seen.ts';
import type { WaitingPods } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { podFields } from '@actorlet/kubelet/machines/pods/admission/supported.ts';
import { isWanted, type PodRecord, type PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { keptPods, keptText } from '@actorlet/kubelet/machines/pods/podConfig/kept.ts';
import type { ManifestsView, SourceError } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import type { StatusView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { CriView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import type { VolumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { ClaimsKnown } from './whyClaims.ts';

export interface Located extends SourceError {
  source: SourceName;
}

function located(i: WhyInput): Located[] {
  return [...(i.sourceErrors ?? [])].flatMap(([source, errors]) => errors.map((e) => ({ ...e, source })));
}
export function allErrors(i: WhyInput): Located[] {
  return located(i).filter((e) => e.note !== true);
}
function allNotes(i: WhyInput): Located[] {
  return located(i).filter((e) => e.note === true);
}
function keptLines(e: Located, i: WhyInput): string[] {
  const unknown = [...(i.listed?.values() ?? [])].filter(({ uid }) => i.pods?.records.has(uid) !== true);
  const kept = keptPods(unknown, e.source, [e]);
  return kept.length === 0 ? [] : [`  ${keptText(kept)}`];
}
/** `fullName` may be written `name_namespace` (the kubelet's form) or `namespace/name`. */
export function isNamed(fullName: string | undefined, namespace: string | null, name: string): boolean {
  if (fullName === undefined) return false;
  const [a = '', b = ''] = fullName.split(/[_/]/, 2);
  const [podName, podNamespace] = fullName.includes('/') ? [b, a] : [a, b];
  const nameFits = podName === name || (namespace === null && podName.startsWith(`${name}-`));
  return nameFits && (namespace === null || namespace === podNamespace);
}
export function errorsOfPod(pod: Pod, i: WhyInput): Located[] {
  return [...allErrors(i), ...allNotes(i)].filter((e) => isNamed(e.fullName, pod.metadata.namespace, pod.metadata.name));
}
export function fileFits(where: string, query: string): boolean {
  const base = where.slice(where.lastIndexOf('/') + 1);
  return (
    where === query || where.endsWith(`/${query.replace(/^(\.?\/)+/, '')}`) || base === query || base.replace(/\.[^.]+$/, '') === query
  );
}

/** Lines about a pod that the node knows. */
export function errorLines(of: readonly Located[], record: Pick<PodRecord, 'state' | 'source'>): string[] {
  const errors = of.filter((e) => e.note !== true);
  const notes = of.filter((e) => e.note === true).map((e) => `  ${e.where}: ${e.message}`);
  if (errors.length === 0) return notes.length === 0 ? [] : ['Manifest', ...notes];
  const used = errors.map((e) => `  ${e.where} cannot be used: ${e.message}`);
  if (record.source === 'api') {
    return ['API server', ...used, '  what runs of it goes on as it was; the pod is read again when it changes'];
  }
  const next = isWanted(record)
    ? 'the pod is kept until the next listing; if it still cannot be read then, the pod is stopped'
    : 'so the pod is being stopped; it comes back once the manifest can be read';
  return ['Manifest', ...used, `  ${next}`, ...notes];
}

/** Lines about a pod that the node does not know. */
export function absentLines(e: Located, i: WhyInput): string[] {
  if (e.source === 'api')
    return [`API server: ${e.where} cannot be used: ${e.message}`, '  it is not run; it is read again when it changes'];
  return [
    `Manifest ${e.where} (${e.source} source) cannot be used: ${e.message}`,
    e.fullName === undefined
      ? '  it never held a usable pod; correct it and the pod starts at the next look'
      : `  it held pod ${e.fullName}, which was therefore removed; correct it and the pod starts again`,
    ...keptLines(e, i),
  ];
}

/** Fields that the pod runs without. */
export function leftAloneOf({ pod, source, leftAlone }: Pick<PodRecord, 'pod' | 'source' | 'leftAlone'>): readonly string[] {
  return leftAlone ?? podFields(pod, { api: source === 'api' }).leftAlone;
}
export function leftAloneLines(record: Pick<PodRecord, 'pod' | 'source' | 'leftAlone'>): string[] {
  const leftAlone = leftAloneOf(record);
  return leftAlone.length === 0 ? [] : ['Left alone (no effect on this node)', ...leftAlone.map((field) => `  ${field}`)];
}

export interface WhyInput {
  /** A name, `namespace/name`, UID (or its start), or the path or name of a manifest file. */
  query: string;
  nowMs: number;
  monoMs: number;
  pods: PodsView | undefined;
  /** Absent before the first pod waited. */
  waiting?: WaitingPods | undefined;
  statuses: StatusView | undefined;
  events: readonly RecordedEvent[] | undefined;
  sourceErrors: ReadonlyMap<SourceName, readonly SourceError[]> | undefined;
  /** Absent where no file source is configured. */
  manifests?: ManifestsView | undefined;
  /** What the runtime holds. Absent: it was not listed yet. */
  listed?: RuntimePodsView['pods'] | undefined;
  cri: CriView | undefined;
  /** Absent before the disk was looked at. */
  volumes?: VolumesView | undefined;
  /** Absent under topology manager policy none. */
  topology?: TopologyDecisions | undefined;
  /** What lower layers answered last, and have not answered. */
  peers?: readonly PeerWord[];
  /** Absent where this program is the kubelet. */
  observer?: ObserverLedger | undefined;
  /** Absent on a node without dynamic resources. */
  claims?: ClaimsKnown | undefined;
  /** State of one actor of the tree. */
  actorAt(path: string): ActorView | undefined;
  /** Wall ms at which this daemon began: causes and events of before are not kept. Absent: nobody knows. */
  startedAtMs?: number | undefined;
}
