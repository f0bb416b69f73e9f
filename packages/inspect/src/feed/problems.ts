/** What is wrong with a node, for the page. Pure. */

import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { deathsView } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { wrongWith } from '@actorlet/shown/src/moment/wrong.ts';
import type { ProblemsFrame } from './frames.ts';
import { kubeletProblems } from './kubelet.ts';

const LISTED_MAX = 40;
const MESSAGE_CHARS_MAX = 600;

export function problemsFrame(m: Moment): ProblemsFrame {
  const { lost, pressures, pods, manifests, actors } = wrongWith(m);
  const unwell = actors.filter((a) => !a.ok && !lost.has(a.path));
  const kubelet = kubeletProblems(m);
  const node = [...lost.values(), ...pressures.map((name) => `${name}: no new pods of the lowest class are admitted`)];
  return {
    t: 'problems',
    count: node.length + pods.length + (kubelet?.length ?? 0) + manifests.length + unwell.length,
    node,
    pods: { listed: pods.slice(0, LISTED_MAX).map((p) => ({ ...p, message: cut(p.message) })), more: more(pods) },
    ...(kubelet === null ? {} : { kubelet: { listed: kubelet.slice(0, LISTED_MAX), more: more(kubelet) } }),
    manifests: {
      listed: manifests.slice(0, LISTED_MAX).map(({ where, message }) => ({ where, message: cut(message) })),
      more: more(manifests),
    },
    actors: {
      listed: unwell.slice(0, LISTED_MAX).map(({ path, name, reason }) => ({ path, name, reason: cut(reason) })),
      more: more(unwell),
    },
    deaths: deathsOf(m),
  };
}

function deathsOf(m: Moment): ProblemsFrame['deaths'] {
  const kept = (m.read(deathsView) ?? []).toReversed();
  const records = m.read(podsView)?.records;
  return {
    listed: kept.slice(0, DEATHS_MAX).map(({ id, atMs, pod, container, title }) => ({
      ...{ id, atMs, title: cut(title) },
      uid: records?.has(pod.uid) === true ? pod.uid : '',
      name: `${pod.namespace}/${pod.name}${container === '' ? '' : ` ${container}`}`,
    })),
    more: Math.max(0, kept.length - DEATHS_MAX),
  };
}
const DEATHS_MAX = 10;

function more(all: readonly unknown[]): number {
  return Math.max(0, all.length - LISTED_MAX);
}
function cut(message: string): string {
  return message.slice(0, MESSAGE_CHARS_MAX);
}
