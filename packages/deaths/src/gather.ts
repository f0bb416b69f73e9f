/** Gathers what the node knows of one death. What cannot be had is left out: a bundle with less is better than none. */

import { FOUND_ANYWHERE_MIN, KnownSecrets } from '@actorlet/kubelet/machines/data/knownSecrets.ts';
import type { UsageLog } from '@actorlet/kubelet/machines/edge/stats/usageLog.ts';
import { shownImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { pathName } from '@actorlet/kubelet/machines/pod/pathName.ts';
import { containerLogPath, podFolder, podLogDir } from '@actorlet/kubelet/machines/pod/runtime/logNames.ts';
import { type PodRecord, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { type Death, deathId } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { MASKED } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import { ifThere } from '@actorlet/kubelet/ports/ifThere.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { DeathFacts, GroupRead, NodeThen } from '@actorlet/shown/src/deaths/bundle.ts';
import {
  containerOf,
  eventsOf,
  GROUP_FILES,
  groupRead,
  kernelLines,
  nodeThen,
  probesOf,
  programsOf,
  secretsOfPod,
  wasOutOfMemory,
} from '@actorlet/shown/src/deaths/gathered.ts';
import { LOG_BYTES_MAX, logTail } from '@actorlet/shown/src/deaths/logTail.ts';
import { redacted } from '@actorlet/shown/src/deaths/redact.ts';
import { whyPod } from '@actorlet/shown/src/why/whyOf.ts';
import { judged, stopSaid } from './judge.ts';
import { withoutWords } from './words.ts';

export interface GatherOptions {
  podLogsDir: string;
  /** Lines of a container's log; 0 = none. */
  logLines: number;
  /** File of `--actorlet-record`; '' = none. */
  recording: string;
  /** Path of the group of one pod; undefined: it has none. */
  podGroup(pod: Pod): string | undefined;
  /** Of the running node at this moment. */
  moment(): Moment;
  secrets: { of(uid: string): readonly string[]; hidden(text: string): string };
  usage: UsageLog | undefined;
}

const USAGE_MS = 120_000;
const DEFAULT_GRACE_S = 30;

/** Null: it was no death after all. */
export async function gather(
  ports: Ports,
  o: GatherOptions,
  { death: seen, nth }: { death: Death; nth: number },
): Promise<DeathFacts | null> {
  const m = o.moment();
  const { uid } = seen.pod;
  const record = m.read(podsView)?.records.get(uid);
  const events = eventsOf(m, uid);
  const death = judged(seen, { events, record, outOfMemory: wasOutOfMemory(m, seen) });
  if (death === null) return null;
  const container = containerOf(record?.pod, death.container);
  const { hidden, said } = hiding([...o.secrets.of(uid), ...secretsOfPod(record?.pod)], {
    secrets: o.secrets,
    programs: programsOf(record?.pod),
    names: [death.pod.name, death.pod.namespace, death.container],
  });
  const history = m.timeline(uid);
  return {
    // As the pod names it, where a status has its digest alone.
    death: { ...death, image: container?.image ?? death.image },
    id: deathId(death.atMs, ports.entropy.sha256Hex(death.key)),
    nth,
    nowMs: m.nowMs,
    limits: textsOf(container?.resources?.limits),
    stopSaid: stopSaid(death, events)?.message ?? '',
    why: whyPod(m, uid, { events: false }).lines,
    causes: record?.worker?.causes ?? [],
    history: history ?? { steps: [], calls: [], containers: [], left: 0 },
    worker: `${workersAddr.path}/${uid}`,
    probes: probesOf(m, death, container),
    usage: o.usage?.of(uid, death.atMs - USAGE_MS) ?? [],
    group: await groupOf(ports, o, record),
    kernel: kernelLines(m, death),
    log: await logOf(ports, o, { death, hidden: said }),
    events,
    graceSeconds: record?.pod.metadata.deletionGracePeriodSeconds ?? record?.pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_S,
    nextStartAtMs: record?.worker?.containers.find((c) => c.name === death.container)?.nextStartAtMs ?? null,
    node: nodeThen(m, { kernel: ports.host.identity?.().kernelVersion ?? '', memory: memoryOf(ports) }),
    replay: { recording: o.recording, inputs: ports.inputRecorder?.now()?.file ?? '' },
    ...{ hidden, said },
    image: (text) => hidden(shownImage(text)),
  };
}

/**
 * Known secrets of this pod in every way of writing, those of all pods as they are, and what looks like one. Names of programs stay,
 * although they are words of commands: without them nobody knows which one was not found. `said` is for what the container may have
 * said. There, words of any length are secrets; the node's own texts keep those of up to three characters.
 */
function hiding(
  own: readonly string[],
  { secrets, programs, names }: { secrets: GatherOptions['secrets']; programs: readonly string[]; names: readonly string[] },
): Pick<DeathFacts, 'hidden' | 'said'> {
  const known = new KnownSecrets();
  for (const [i, program] of programs.entries()) known.add(program, `${KEPT_BEGIN}${i}${KEPT_END}`);
  // A log may hold one line of a value that has several.
  for (const word of own.flatMap((text) => (text.includes('\n') ? [text, ...text.split('\n')] : [text])))
    if (word !== '' && known.of(word) === null) known.add(word, MASKED);
  const stays = new Set(['', ...programs, ...names]);
  const words = own.map((word) => word.trim()).filter((word) => word.length < FOUND_ANYWHERE_MIN && !stays.has(word));
  const hider = (min: number): ((text: string) => string) => {
    const short = new Set(words.filter((word) => word.length >= min));
    return (text) => {
      const long = secrets.hidden(withoutTorn(known.without(text), own));
      return redacted(withoutWords(long, short)).replace(KEPT, (_, i: string) => programs[Number(i)] ?? '');
    };
  };
  return { hidden: hider(NODE_WORD_MIN), said: hider(1) };
}
const NODE_WORD_MIN = 4;

/** A text that was cut before may end in the first half of a secret. */
function withoutTorn(text: string, secrets: readonly string[]): string {
  if (!text.endsWith('…')) return text;
  const body = text.slice(0, -1);
  const torn = secrets.reduce((most, secret) => Math.max(most, tornOf(body, secret)), 0);
  return torn === 0 ? text : `${body.slice(0, -torn)}${MASKED}`;
}
const TORN_MIN = 4;
/** How much of the end of a text is the beginning of a secret: the prefix function of both, which is linear (Knuth, Morris, Pratt). */
function tornOf(text: string, secret: string): number {
  const both = `${secret}\ue002${text.slice(-secret.length)}`;
  const borders = new Uint32Array(both.length);
  for (let i = 1; i < both.length; i++) {
    let length = borders[i - 1] ?? 0;
    while (length > 0 && both[i] !== both[length]) length = borders[length - 1] ?? 0;
    borders[i] = both[i] === both[length] ? length + 1 : 0;
  }
  const torn = borders.at(-1) ?? 0;
  return torn >= TORN_MIN ? torn : 0;
}

/** Stand for the name of a program while all else is hidden. */
const KEPT_BEGIN = '\ue000';
const KEPT_END = '\ue001';
const KEPT = /\ue000(\d{1,3})\ue001/g;

function textsOf(of: object | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(of ?? {}).map(([name, amount]) => [name, String(amount)]));
}

function memoryOf({ host }: Ports): NodeThen['memory'] {
  try {
    return host.memory?.() ?? null;
  } catch {
    // This kernel does not tell.
    return null;
  }
}

async function groupOf({ cgroups }: Ports, { podGroup }: GatherOptions, record: PodRecord | undefined): Promise<GroupRead | null> {
  const path = record === undefined ? undefined : podGroup(record.pod);
  if (path === undefined || cgroups === undefined) return null;
  try {
    return groupRead(await cgroups.read(path, GROUP_FILES));
  } catch {
    // The group went with its pod.
    return null;
  }
}

/** Of the run that ended; of one that was never started there is none. */
async function logOf(
  { fs }: Ports,
  o: GatherOptions,
  { death, hidden }: { death: Death; hidden(text: string): string },
): Promise<DeathFacts['log']> {
  if (death.container === '' || death.end === undefined) return { lines: [], note: '' };
  if (o.logLines === 0) return { lines: [], note: 'left out: --actorlet-deaths-log-lines=0' };
  const root = o.podLogsDir.replace(/\/+$/, '');
  const path = `${podLogDir(root, podFolder(death.pod))}/${containerLogPath(pathName(death.container), death.restartCount)}`;
  try {
    const info = await ifThere(fs.stat(path));
    if (info === null) return { lines: [], note: 'its log is gone' };
    const tail = await fs.readTail(path, { bytesMax: LOG_BYTES_MAX, within: [root] });
    return logTail(tail, { whole: info.size <= tail.length, linesMax: o.logLines, hidden });
  } catch (error) {
    return { lines: [], note: `its log could not be read: ${messageOf(error)}` };
  }
}
