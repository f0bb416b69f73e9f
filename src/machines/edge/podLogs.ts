/** Where a container's log is, and which of its runs is meant. Pure. */
import type { ContainerStatus, PodStatus } from '../kube/types.ts';
import { pathName } from '../pod/pathName.ts';
import { containerLogPath, podFolder, podLogDir } from '../pod/runtime/logNames.ts';
import { isWanted, type PodRecord } from '../pods/manager/messages.ts';

export type LogFile =
  | {
      ok: true;
      /** UID of the pod: a follower asks for the pod again by it, since a name may pass to a successor. */
      uid: string;
      path: string;
      container: string;
      /** A follower may stop at the end of the file once this is false and no further run will come. */
      running: boolean;
      restartCount: number;
      /** The pod will not run this container again. */
      over: boolean;
    }
  | { ok: false; status: 400 | 404; reason: string };

/** `<podLogsDir>/<namespace>_<name>_<uid>/<container>/<restartCount>.log`, as CRI log paths are laid out. */
export function logFileOf(o: {
  record: PodRecord;
  status: PodStatus | undefined;
  /** '' means the only regular container. */
  container: string;
  previous: boolean;
  podLogsDir: string;
}): LogFile {
  const { metadata } = o.record.pod;
  const pod = `${metadata.namespace}/${metadata.name}`;
  const picked = pickContainer(o.record, o.container);
  if (!picked.ok) return picked;
  const { name } = picked;
  const status = containerStatus(o.status, name);
  const run = whichRun(status, o.previous);
  if (typeof run === 'string') return { ok: false, status: 400, reason: `container ${name} of pod ${pod} ${run}` };
  const phase = o.status?.phase;
  return {
    ok: true,
    uid: metadata.uid,
    container: name,
    restartCount: run,
    running: !o.previous && status?.state.running !== undefined,
    over: o.previous || phase === 'Succeeded' || phase === 'Failed' || !isWanted(o.record),
    path: `${podLogDir(o.podLogsDir.replace(/\/+$/, ''), podFolder(metadata))}/${containerLogPath(pathName(name), run)}`,
  };
}

export type Picked = { ok: true; name: string } | { ok: false; status: 400 | 404; reason: string };

/** The container that a person means: by name, or, for '', the only regular one. */
export function pickContainer(record: PodRecord, wanted: string): Picked {
  const { metadata, spec } = record.pod;
  const regular = spec.containers.map((c) => c.name);
  const all = [...(spec.initContainers ?? []).map((c) => c.name), ...regular, ...(spec.ephemeralContainers ?? []).map((c) => c.name)];
  const pod = `${metadata.namespace}/${metadata.name}`;
  const name = wanted === '' && regular.length === 1 ? (regular[0] ?? '') : wanted;
  if (name === '') return { ok: false, status: 400, reason: `pod ${pod} has several containers, say which: ${all.join(', ')}` };
  if (!all.includes(name)) return { ok: false, status: 404, reason: `container ${name} is not in pod ${pod}; it has: ${all.join(', ')}` };
  return { ok: true, name };
}

/** The status of a container of any kind. */
export function containerStatus(status: PodStatus | undefined, name: string): ContainerStatus | undefined {
  return [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].find((c) => c.name === name);
}

/** The number of the run, or why there is none. */
function whichRun(status: ContainerStatus | undefined, previous: boolean): number | string {
  if (status === undefined) return 'has no status yet';
  const { waiting } = status.state;
  if (previous) {
    if (waiting !== undefined && endedLast(status)) return status.restartCount;
    return status.restartCount > 0 ? status.restartCount - 1 : 'has not run before';
  }
  // While it waits for its next start, restartCount is still that of the run that ended.
  if (waiting !== undefined && status.lastState.terminated === undefined) {
    return `has not started: ${waiting.reason ?? 'waiting'}${waiting.message === undefined ? '' : ` (${waiting.message})`}`;
  }
  return status.restartCount;
}

/** A waiting container's newest instance is the one that ended, not one that was created since. */
function endedLast({ containerID, lastState: { terminated } }: ContainerStatus): boolean {
  if (terminated === undefined) return false;
  return !containerID || !terminated.containerID || terminated.containerID === containerID;
}
