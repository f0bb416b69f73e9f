/** Names of log directories, log files and the links that collectors follow; and what is read back from them. */
import { FILE_NAME_BYTES_MAX, type PathName, pathName } from '../pathName.ts';

export interface PodFolder {
  uid: PathName;
  name: PathName;
  namespace: PathName;
}

const LOG_SUFFIX = '.log';
/** Shorter texts after the last dash are not container ids. */
const ID_CHARS_MIN = 6;

/** @throws UnsafeName for a pod that was not checked where it came in. */
export function podFolder({ uid, name, namespace }: Readonly<Record<keyof PodFolder, string>>): PodFolder {
  return { uid: pathName(uid), name: pathName(name), namespace: pathName(namespace) };
}

export function podLogDir(podLogsDir: string, pod: PodFolder): string {
  return `${podLogsDir}/${pod.namespace}_${pod.name}_${pod.uid}`;
}

export function containerLogDir(podLogsDir: string, pod: PodFolder, container: PathName): string {
  return `${podLogDir(podLogsDir, pod)}/${container}`;
}

/** Relative to the sandbox's log directory: what CRI is told. */
export function containerLogPath(container: PathName, restartCount: number): string {
  return `${container}/${restartCount}${LOG_SUFFIX}`;
}

/** File name of the link to a container's log; cut so that the suffix always fits. */
export function containerLogLinkName(pod: PodFolder, container: PathName, id: PathName): string {
  return `${`${pod.name}_${pod.namespace}_${container}-${id}`.slice(0, FILE_NAME_BYTES_MAX - LOG_SUFFIX.length)}${LOG_SUFFIX}`;
}

export function containerLogLink(containerLogsDir: string, pod: PodFolder, of: { container: PathName; id: PathName }): string {
  return `${containerLogsDir}/${containerLogLinkName(pod, of.container, of.id)}`;
}

/** The container id in a link's name, or undefined for a name that holds none. */
export function containerIdOfLink(linkName: string): string | undefined {
  if (!linkName.endsWith(LOG_SUFFIX)) return undefined;
  const stem = linkName.slice(0, -LOG_SUFFIX.length);
  const id = stem.slice(stem.lastIndexOf('-') + 1);
  return stem.includes('-') && id.length >= ID_CHARS_MIN ? id : undefined;
}

/** The pod UID in a pod log directory's name, or undefined for a name of another form. */
export function podUidOfLogDir(dirName: string): string | undefined {
  const parts = dirName.split('_');
  const uid = parts.at(-1);
  return parts.length >= 3 && uid !== '' ? uid : undefined;
}

/** The restart count that a log file's name holds: `3.log`, `3.log.20240102-030405`, `3.log.….gz`. */
export function restartCountOfLogName(fileName: string): number | undefined {
  const match = /^(\d{1,9})\.log(?:\..*)?$/.exec(fileName);
  return match === null ? undefined : Number(match[1]);
}

/** Restart count for a container of which the runtime knows nothing: one more than the highest seen in its log directory, or 0. */
export function restartCountFromLogNames(fileNames: readonly string[]): number {
  let next = 0;
  for (const name of fileNames) {
    const count = restartCountOfLogName(name);
    if (count !== undefined) next = Math.max(next, count + 1);
  }
  return next;
}

/** The current and rotated log files of one instance, among the names in its container's log directory. */
export function logFilesOf(restartCount: number, fileNames: readonly string[]): string[] {
  return fileNames.filter((name) => restartCountOfLogName(name) === restartCount);
}
