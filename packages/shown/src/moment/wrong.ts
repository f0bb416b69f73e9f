/** What is wrong with a node now: what the page begins with, `why node` lists and `healthz` goes by. Pure. */

import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { sourceErrorsView } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { podStatus, podTone, podTrouble, type Tone } from '../pods/podStatus.ts';
import { type PodSummary, summarizePods } from '../pods/podSummary.ts';
import { type ActorHealth, treeHealth } from '../treeHealth.ts';
import { lostPeers } from './lostPeers.ts';

export interface PodTrouble {
  uid: string;
  /** `namespace/name`. */
  name: string;
  tone: Tone;
  status: string;
  message: string;
}
export interface Wrong {
  /** What the node needs outside itself and cannot reach, by the actor that has the link. */
  lost: ReadonlyMap<string, string>;
  pressures: readonly string[];
  /** Pods that are not ready, or not for long; the worst first. */
  pods: readonly PodTrouble[];
  /** Manifests that no pod came of. */
  manifests: readonly { source: string; where: string; message: string }[];
  /** Every actor, and whether it is well; `lost` included. */
  actors: readonly NamedHealth[];
}
interface NamedHealth extends ActorHealth {
  /** Its path, with names of pods in place of their UIDs. */
  name: string;
}

export function wrongWith(m: Moment): Wrong {
  const lost = lostPeers(m);
  return {
    lost,
    pressures: m.read(pressureView)?.pressures ?? [],
    pods: troubledPods(m),
    manifests: unusableManifests(m),
    actors: actorsOf(m, lost),
  };
}

export function podLines(m: Moment): PodSummary[] {
  const pods = m.read(podsView);
  if (pods === undefined) return [];
  return summarizePods(pods, { statuses: m.read(statusesView), nowMs: m.nowMs, actorAt: (path) => m.stateAt(path) });
}

/** A pod that should be ready and is not. One that was just seen is given its time. */
function isTrouble(tone: Tone, p: PodSummary): boolean {
  return tone === 'bad' || tone === 'warn' || (tone === 'busy' && !p.removed && p.ageMs > START_MS);
}
const START_MS = 20_000;
const WORST_FIRST: readonly Tone[] = ['bad', 'warn', 'busy'];

function troubledPods(m: Moment): PodTrouble[] {
  const all = podLines(m).flatMap((p) => {
    const tone = podTone(p, m.nowMs);
    if (!isTrouble(tone, p)) return [];
    const [status, message] = [podStatus(p), podTrouble(p, m.nowMs)];
    return [{ uid: p.uid, name: `${p.namespace}/${p.name}`, tone, status, message: message === status ? '' : message }];
  });
  return all.sort((a, b) => WORST_FIRST.indexOf(a.tone) - WORST_FIRST.indexOf(b.tone));
}

export function unusableManifests(m: Moment): { source: string; where: string; message: string }[] {
  return [...(m.read(sourceErrorsView) ?? [])].flatMap(([source, errors]) =>
    errors.flatMap(({ where, message, note }) => (note === true ? [] : [{ source, where, message }])),
  );
}

function actorsOf(m: Moment, lost: ReadonlyMap<string, string>): NamedHealth[] {
  const name = nameActors(m);
  return treeHealth(m.state(), lost).map((h) => ({ ...h, name: name(h.path) }));
}

/** The path of an actor, with names of pods in place of their UIDs. */
export function nameActors(m: Moment): (path: string) => string {
  const records = m.read(podsView)?.records;
  return (path) =>
    path
      .split('/')
      .map((part) => records?.get(part)?.pod.metadata.name ?? part)
      .join('/');
}
