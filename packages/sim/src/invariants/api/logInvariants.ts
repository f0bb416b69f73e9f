/** Invariants about logs of containers that grow. */
import { restartCountOfLogName } from '@actorlet/kubelet/machines/pod/runtime/logNames.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { Checker } from '../checker.ts';

/** From a log that has become too large to another. */
const ROTATED_WITHIN_MS = 30_000;
const dirOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));

/** Log files of one instance, whole or on the way to be compressed. */
function filesOf(node: SimNode, path: string): Set<string> {
  const own = restartCountOfLogName(path.slice(path.lastIndexOf('/') + 1));
  const names = node.disk.namesIn(dirOf(path)).filter((name) => restartCountOfLogName(name) === own);
  return new Set(names.map((name) => name.replace(/(\.gz)?(\.tmp)?$/, '')));
}

/** What a container that runs writes is in a file that is there, and it has no more files than it may have. */
export function logsAreKept(): Checker {
  return {
    name: 'logs-are-kept',
    removing({ node }, path) {
      const { logs } = node.beside;
      if (logs === undefined) return undefined;
      for (const [id, { file }] of logs.writing())
        if (file.isAt(path)) return `${node.name}: ${path} is removed while container ${id} writes it`;
      return undefined;
    },
    beat({ node }) {
      const { logs: tuning } = node.tuning.beside;
      for (const [id, { path, file }] of node.beside.logs?.writing() ?? []) {
        const files = filesOf(node, path);
        if (tuning !== null && files.size > tuning.filesMax)
          return `${node.name}: container ${id} has ${files.size} logs, ${tuning.filesMax} may be: ${[...files].join(', ')}`;
        if (![...files].some((name) => file.isAt(`${dirOf(path)}/${name}`)))
          return `${node.name}: what container ${id} writes is in no file any more, its log is ${path}`;
      }
      return undefined;
    },
  };
}

/** In fair weather a log is under its name, and not much larger than it may be. */
export function logsUnsettled(node: SimNode): string[] {
  const { logs: tuning } = node.tuning.beside;
  if (tuning === null) return [];
  const bytesMax = tuning.maxBytes + (tuning.growthBytes * (tuning.everyMs + ROTATED_WITHIN_MS)) / 1_000;
  return [...(node.beside.logs?.writing() ?? [])].flatMap(([id, { path, file }]) => {
    if (!file.isAt(path)) return [`container ${id} does not write its log ${path}`];
    return file.size() > bytesMax ? [`${path} has ${file.size()} bytes, and is not rotated`] : [];
  });
}
