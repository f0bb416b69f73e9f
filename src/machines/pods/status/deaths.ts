/** What went badly between two statuses of a pod: ends and failed starts of containers, and an end of the pod as a whole. Pure. */
import type { ContainerStatus, Pod, PodStatus } from '../../kube/types.ts';
import { hasProbes } from '../../pod/probes/probes.ts';
import { type ContainerEnd, type Death, type DeathKind, deathOf } from '../../reclaim/deaths/messages.ts';
import { type EndSeen, eachContainer, newEnds } from './terminations.ts';

/** An end that is older was seen by an earlier daemon, or by nobody. */
const OLD_MS = 600_000;
/** A message of a container may have 12 KiB; a bundle begins with a sentence of it. */
const MESSAGE_CHARS_MAX = 4096;
const SIGKILL = 9;
/** Exit codes above it are a signal: as shells and runtimes say it. */
const SIGNALLED = 128;
const SIGNAL_MAX = 64;

const IMAGE_REASONS: ReadonlySet<string> = new Set([
  ...['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError', 'RegistryUnavailable'],
  'SignatureValidationFailed',
]);
const START_REASONS: ReadonlySet<string> = new Set([
  ...['CreateContainerError', 'CreateContainerConfigError', 'RunContainerError', 'PostStartHookError', 'StartError'],
  'ContainerCannotRun',
]);

interface About {
  pod: Pod;
  nowMs: number;
  /** The pod is being ended: what its containers come to is what was asked of them. */
  ending: boolean;
}

export function deathsBetween(before: PodStatus | undefined, now: PodStatus, about: About): Death[] {
  const failed = endOfPod(before, now, about);
  // What the node ends takes its containers with it.
  if (failed !== null) return [failed];
  const ends = newEnds(before, now).flatMap((seen) => endOf(seen, about));
  const waits = about.ending ? [] : eachContainer(before, now).flatMap((c) => waitOf(c, about));
  return [...ends, ...waits];
}

function endOfPod(before: PodStatus | undefined, now: PodStatus, { pod, nowMs }: About): Death | null {
  const { reason = '', message = '', phase } = now;
  if (phase !== 'Failed' || reason === '' || (before?.phase === 'Failed' && before.reason === reason)) return null;
  if (before === undefined && isOld(Date.parse(now.startTime ?? ''), nowMs)) return null;
  const ran = (now.containerStatuses ?? []).some(
    ({ state, lastState }) => state.terminated !== undefined || lastState.terminated !== undefined,
  );
  const kind = reason === 'Evicted' || ran || before?.phase === 'Running' ? 'evicted' : 'refused';
  return { ...deathOf(pod, kind, nowMs), key: `${pod.metadata.uid} ${reason}`, reason, message: cut(message) };
}

function endOf({ type, status, end }: EndSeen, { pod, nowMs, ending }: About): Death[] {
  const told = endFacts(end);
  const { exitCode, signal, reason } = told;
  const isOom = reason === 'OOMKilled';
  if (isOld(told.finishedAtMs, nowMs) || (ending && !isOom)) return [];
  const doubtful = exitCode === 0 && signal === 0 && !isOom;
  if (doubtful && !hasProbes(pod)) return [];
  const bySignal = signal > 0 || (exitCode > SIGNALLED && exitCode <= SIGNALLED + SIGNAL_MAX);
  const kind = isOom ? 'oom' : START_REASONS.has(reason) ? 'start' : bySignal ? 'signal' : 'exit';
  const { name, image } = status;
  const restartCount = runOf(status, end);
  return [
    {
      ...deathOf(pod, kind, told.finishedAtMs > 0 ? told.finishedAtMs : nowMs),
      ...{ container: name, init: type === 'init_container', restartCount, image, end: told, reason, message: told.message },
      key: `${pod.metadata.uid} ${name} ${told.containerId || told.finishedAtMs}`,
      ...(doubtful ? { doubtful } : {}),
    },
  ];
}

/** Restarts before the run that ended: a status may show the next one already. */
function runOf({ restartCount, containerID }: ContainerStatus, end: EndSeen['end']): number {
  const isNext = containerID !== undefined && end.containerID !== undefined && containerID !== end.containerID;
  return isNext ? Math.max(0, restartCount - 1) : restartCount;
}

function waitOf({ type, before, status }: Omit<EndSeen, 'end'>, { pod, nowMs }: About): Death[] {
  const kind = waitKind(status);
  if (kind === null || (before !== undefined && waitKind(before) === kind)) return [];
  const { name, restartCount, image } = status;
  const { reason = '', message = '' } = status.state.waiting ?? {};
  return [
    {
      ...deathOf(pod, kind, nowMs),
      ...{ container: name, init: type === 'init_container', restartCount, image, reason, message: cut(message) },
      // It may wait anew for the same, when an attempt is under way in between.
      key: `${pod.metadata.uid} ${name} ${kind} ${restartCount}`,
    },
  ];
}
function waitKind({ state: { waiting } }: ContainerStatus): DeathKind | null {
  const reason = waiting?.reason ?? '';
  return IMAGE_REASONS.has(reason) ? 'image' : START_REASONS.has(reason) ? 'start' : null;
}

function endFacts(end: EndSeen['end']): ContainerEnd {
  const code = end.exitCode;
  const signal = end.signal ?? (code > SIGNALLED && code <= SIGNALLED + SIGNAL_MAX ? code - SIGNALLED : 0);
  return {
    exitCode: code,
    signal: end.reason === 'OOMKilled' ? SIGKILL : signal,
    reason: end.reason ?? '',
    message: cut(end.message ?? ''),
    startedAtMs: timeOf(end.startedAt),
    finishedAtMs: timeOf(end.finishedAt),
    containerId: (end.containerID ?? '').replace(/^[^/]*:\/\//, ''),
  };
}
function cut(text: string): string {
  return text.length > MESSAGE_CHARS_MAX ? `${text.slice(0, MESSAGE_CHARS_MAX - 1)}…` : text;
}
function timeOf(text: string | null | undefined): number {
  const ms = Date.parse(text ?? '');
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}
function isOld(atMs: number, nowMs: number): boolean {
  return atMs > 0 && nowMs - atMs > OLD_MS;
}
