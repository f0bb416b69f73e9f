/** From CRI answers to the runtime status of one pod: newest first, whatever order the runtime listed in. */

import type { ContainerStatus, Pod } from '../../kube/types.ts';
import { CRI_ANNOTATIONS, CRI_LABELS, type CriContainerStatus, type Nanos, type PodSandboxStatus } from '../../wire/cri.ts';
import type { PodRuntimeStatus, RuntimeContainer, RuntimeSandbox } from './seen.ts';
import { apiSignal } from './stopSignal.ts';

const NANOS_PER_MS = 1_000_000n;

/** Nanoseconds of a CRI field; 0 for anything that is not an integer (an absent field of an old runtime). */
function nanosOf(value: Nanos | undefined): bigint {
  return value !== undefined && /^-?\d+$/.test(value) ? BigInt(value) : 0n;
}

/** Whole milliseconds since the epoch, or null for "never": 0, or negative (the zero time of Go runtimes). */
function nanosToMs(value: Nanos | undefined): number | null {
  const nanos = nanosOf(value);
  return nanos <= 0n ? null : Number(nanos / NANOS_PER_MS);
}

/** A non-negative decimal annotation; 0 when missing or not a number. */
function countOf(text: string | undefined): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

const STATES = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
} as const satisfies Record<CriContainerStatus['state'], RuntimeContainer['state']>;

/**
 * What containerd writes on a container whose start it broke off because the caller was gone (this node was killed) or
 * out of time: by its own account, or by what became of the shim or of runc, which it kills then, or of the line to the
 * shim. Exited, though its process never ran: such a start has an unknown outcome that is now known to be none.
 */
const START_BROKEN_OFF = /context (?:canceled|deadline exceeded)|signal: killed|did not terminate successfully|ttrpc: closed/;

/** An instance whose start was broken off counts as created: it was no run, also not the only one of a Never pod. */
function stateOf(from: CriContainerStatus): RuntimeContainer['state'] {
  return isStartBrokenOff(from) ? 'created' : (STATES[from.state] ?? 'unknown');
}

export function isStartBrokenOff(from: Pick<CriContainerStatus, 'state' | 'reason' | 'startedAt' | 'message'>): boolean {
  return (
    from.state === 'CONTAINER_EXITED' &&
    from.reason === 'StartError' &&
    nanosOf(from.startedAt) <= 0n &&
    START_BROKEN_OFF.test(from.message)
  );
}

export function toContainer(from: CriContainerStatus): RuntimeContainer {
  const annotations = from.annotations;
  const messagePath = annotations[CRI_ANNOTATIONS.terminationMessagePath] ?? '';
  const mount = messagePath === '' ? undefined : from.mounts.find((m) => m.containerPath === messagePath);
  return {
    id: from.id,
    name: from.labels[CRI_LABELS.containerName] ?? from.metadata?.name ?? '',
    state: stateOf(from),
    createdAtNs: nanosOf(from.createdAt),
    startedAtMs: nanosToMs(from.startedAt),
    finishedAtMs: nanosToMs(from.finishedAt),
    exitCode: from.exitCode,
    image: from.image?.image || from.image?.userSpecifiedImage || '',
    imageRef: from.imageRef,
    reason: from.reason,
    message: from.message,
    hash: (annotations[CRI_ANNOTATIONS.hash] ?? '').toLowerCase(),
    restartCount: countOf(annotations[CRI_ANNOTATIONS.restartCount]),
    terminationMessagePath: messagePath,
    terminationMessagePolicy: annotations[CRI_ANNOTATIONS.terminationMessagePolicy] ?? '',
    logPath: from.logPath,
    terminationMessageHostPath: mount?.hostPath ?? null,
    annotations,
    ...recursiveOf(from),
    ...userOf(from),
    ...signalOf(from),
    ...resourcesOf(from),
  };
}

function resourcesOf({ resources }: CriContainerStatus): Pick<RuntimeContainer, 'resources'> {
  const linux = resources?.linux;
  if (linux === undefined || linux === null) return {};
  const said = (['cpuShares', 'cpuQuota', 'cpuPeriod', 'memoryLimitInBytes'] as const).flatMap((key) => {
    const value = Number(linux[key] ?? 0);
    return value > 0 ? [[key, value] as const] : [];
  });
  return said.length === 0 ? {} : { resources: Object.fromEntries(said) };
}

function signalOf({ stopSignal }: CriContainerStatus): Pick<RuntimeContainer, 'stopSignal'> {
  const signal = apiSignal(stopSignal);
  return signal === null ? {} : { stopSignal: signal };
}

function recursiveOf({ mounts }: CriContainerStatus): Pick<RuntimeContainer, 'recursiveReadOnly'> {
  const paths = mounts.filter((m) => m.recursiveReadOnly === true).map((m) => m.containerPath);
  return paths.length === 0 ? {} : { recursiveReadOnly: paths };
}

function userOf({ user }: CriContainerStatus): Pick<RuntimeContainer, 'user'> {
  const linux = user?.linux;
  if (linux === undefined || linux === null) return {};
  return { user: { uid: Number(linux.uid), gid: Number(linux.gid), supplementalGroups: linux.supplementalGroups.map(Number) } };
}

export function toSandbox(from: PodSandboxStatus): RuntimeSandbox {
  const ready = from.state === 'SANDBOX_READY';
  const hostNetwork = from.linux?.namespaces?.options?.network === 'NODE';
  const ips = new Set<string>();
  if (ready && !hostNetwork && from.network !== null) {
    for (const ip of [from.network.ip, ...from.network.additionalIps.map((a) => a.ip)]) {
      if (ip !== '') ips.add(ip);
    }
  }
  const handler = from.runtimeHandler ? { handler: from.runtimeHandler } : {};
  const attempt = from.metadata?.attempt ?? 0;
  return { id: from.id, attempt, ready, createdAtNs: nanosOf(from.createdAt), ips: [...ips], hostNetwork, ...handler };
}

/** By time, newest first, then by id, so that the order is total. */
function newestFirst(a: { createdAtNs: bigint; id: string }, b: { createdAtNs: bigint; id: string }): number {
  if (a.createdAtNs !== b.createdAtNs) return a.createdAtNs > b.createdAtNs ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/**
 * Sorted copy, newest first. The node counts its sandboxes itself, each higher than all before: its count is better than the
 * runtime's time, which goes back when a clock is put right.
 */
export function sortSandboxes<T extends { createdAtNs: bigint; id: string; attempt: number }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => b.attempt - a.attempt || newestFirst(a, b));
}

interface Sortable {
  createdAtNs: bigint;
  id: string;
  name: string;
  /** UID of its pod, where there are several. */
  uid?: string;
  restartCount?: number;
  annotations?: Readonly<Record<string, string>>;
}

/** Sorted copy, newest first. Instances of one name are in the order of their restart counts, for the same reason. */
export function sortContainers<T extends Sortable>(list: readonly T[]): T[] {
  const byTime = [...list].sort(newestFirst);
  const names = Map.groupBy(byTime, keyOf);
  for (const instances of names.values()) instances.sort((a, b) => restartsOf(b) - restartsOf(a));
  return byTime.flatMap((c) => names.get(keyOf(c))?.shift() ?? []);
}
const keyOf = ({ uid = '', name }: Sortable): string => `${uid}/${name}`;
export function restartsOf({ restartCount, annotations }: Pick<Sortable, 'restartCount' | 'annotations'>): number {
  return restartCount ?? countOf(annotations?.[CRI_ANNOTATIONS.restartCount]);
}

/**
 * An instance that was created and never started stands behind one of its name that runs, however new it is: it comes of a
 * call whose answer was lost and which was done late. Nobody starts it, and what is decided is decided about the other.
 */
function runningBeforeCreated(newestFirst: readonly RuntimeContainer[]): RuntimeContainer[] {
  const up = new Set(newestFirst.filter((c) => c.state === 'running').map((c) => c.name));
  const late = (c: RuntimeContainer): boolean => c.state === 'created' && up.has(c.name);
  return [...newestFirst.filter((c) => !late(c)), ...newestFirst.filter(late)];
}

/**
 * What the runtime holds of one pod UID, newest first (but see above), with the addresses of the newest sandbox. The
 * termination message is not in CRI: see `terminationMessage.ts`.
 */
export function composeStatus(of: Omit<PodRuntimeStatus, 'ips'>): PodRuntimeStatus {
  const sandboxes = sortSandboxes(of.sandboxes);
  return { ...of, ips: [...(sandboxes[0]?.ips ?? [])], sandboxes, containers: runningBeforeCreated(sortContainers(of.containers)) };
}

/**
 * Restart count of the next instance of that name: more than that of any that ran. One that never started was no run: who
 * takes its place has its count. Never less than what was shown of this pod (`shown`), since the count must not fall when
 * somebody took the instances away; one more if what was shown had ended. What is shown to have ended before was the first
 * one at least: a hook that failed hides the end of its container. Null: nothing is known here.
 */
export function nextRestartCount(status: PodRuntimeStatus, name: string, shown: ContainerStatus | undefined): number | null {
  const counts = status.containers.filter((c) => c.name === name).map((c) => (c.state === 'created' ? c.restartCount : c.restartCount + 1));
  const gone = counts.length === 0;
  const afterEnd = shown !== undefined && gone && shown.state.terminated !== undefined ? shown.restartCount + 1 : 0;
  const afterFirst = shown?.lastState.terminated === undefined ? 0 : 1;
  const next = Math.max(...counts, shown?.restartCount ?? 0, afterEnd, afterFirst);
  return gone && next === 0 ? null : next;
}

/** The instance of that container name that counts ("first status"): the newest, in any state. */
export function firstStatus(status: PodRuntimeStatus, name: string): RuntimeContainer | undefined {
  return status.containers.find((c) => c.name === name);
}

/**
 * The exit that the crash back-off of the next start looks at (trap 17): the newest one. If this worker stopped that
 * instance itself to replace it, the one before, whatever ended it: the first replacement comes at once, a container that
 * its probe ends again and again is slowed down. Null: no reason to wait, also when what was stopped had long been healthy.
 */
export function exitForBackoff(
  status: PodRuntimeStatus,
  name: string,
  of: { replaced: ReplacedInstances; healthyMs: number },
): RuntimeContainer | null {
  const last = newestExited(status, name);
  const before = last === undefined ? null : of.replaced.get(last.id);
  if (last === undefined || before === undefined) return last ?? null;
  const ranMs = (last.finishedAtMs ?? 0) - (last.startedAtMs ?? 0);
  return ranMs > of.healthyMs ? null : before;
}

/**
 * Instances that a worker stopped in order to replace them, each with the exit that came before it. That exit is
 * remembered: it may be collected while its successor's successor waits.
 */
export type ReplacedInstances = ReadonlyMap<string, RuntimeContainer | null>;

/** With those that are about to be stopped, all of which are kept. The oldest beyond `max` are forgotten. */
export function withReplaced(
  replaced: ReplacedInstances,
  kills: readonly { id: string; name: string }[],
  at: { status: PodRuntimeStatus; max: number },
): ReplacedInstances {
  const added = kills.map(
    ({ id, name }) => [id, replaced.has(id) ? (replaced.get(id) ?? null) : (newestExited(at.status, name) ?? null)] as const,
  );
  return new Map([...replaced, ...added].slice(-Math.max(at.max, added.length)));
}

/** With a mark on instances that are to be replaced. */
export function markReplaced(status: PodRuntimeStatus, replaced: ReplacedInstances): PodRuntimeStatus {
  if (!status.containers.some((c) => replaced.has(c.id))) return status;
  return { ...status, containers: status.containers.map((c) => (replaced.has(c.id) ? { ...c, replaced: true } : c)) };
}

function newestExited(status: PodRuntimeStatus, name: string): RuntimeContainer | undefined {
  return status.containers.find((c) => c.name === name && c.state === 'exited');
}

export interface SandboxCheck {
  /** A new sandbox is needed. */
  changed: boolean;
  attempt: number;
  /** '' when there is none, or the pod moved to or from the host's network. */
  sandboxId: string;
}

/** Whether the pod's newest sandbox can be used. Sandboxes are newest first. */
export function checkSandbox(pod: Pod, status: PodRuntimeStatus): SandboxCheck {
  const newest = status.sandboxes[0];
  if (newest === undefined) return { changed: true, attempt: 0, sandboxId: '' };
  // The newest need not have the highest number: a call that a crash cut off may make one after its successor, and clocks go back.
  const attempt = 1 + status.sandboxes.reduce((highest, s) => Math.max(highest, s.attempt), 0);
  const replaced = { changed: true, attempt, sandboxId: newest.id };
  const hostNetwork = pod.spec.hostNetwork === true;
  if (status.sandboxes.filter((s) => s.ready).length > 1 || !newest.ready) return replaced;
  if (newest.hostNetwork !== hostNetwork) return { ...replaced, sandboxId: '' };
  if (!hostNetwork && newest.ips.length === 0) return replaced;
  return { changed: false, attempt: newest.attempt, sandboxId: newest.id };
}
