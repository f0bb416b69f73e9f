/** Where a replay stops: `PATH state=STATE`. */
import { inspect } from 'node:util';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { ReplayInput, Stop } from '@actorlet/replay/src/player/replay.ts';

const WORKERS = 'node/pods/workers/';
const DEPTH = 6;

/** The path as `actorctl tree` prints it, with or without `node/`; a worker also by the name of its pod. */
export function stopAt(text: string): NonNullable<ReplayInput['stopAt']> {
  const [, path, state] = /^(?:node\/)?(\S+)\s+state=(\S+)$/.exec(text.trim()) ?? [];
  if (path === undefined || state === undefined)
    throw new CtlError(EXIT.usage, `--until ${JSON.stringify(text)}: say it like 'pods/workers/web-1 state=syncing.settled'.`);
  const full = `node/${path}`;
  return (step, node) => {
    if (step.to !== state && !step.to.startsWith(`${state}.`)) return false;
    if (step.path === full) return true;
    if (!full.startsWith(WORKERS) || !step.path.startsWith(WORKERS)) return false;
    const pod = node.tree.registry.read(podsView)?.value.records.get(step.path.slice(WORKERS.length))?.pod.metadata;
    return pod?.name === full.slice(WORKERS.length);
  };
}

/** The actor that it stopped at, with its context. */
export function stopLines({ path, to, node, wallMs }: Stop): string[] {
  const lines = [`  STOPPED at ${new Date(wallMs).toISOString()}: ${path} is in ${to}`];
  const ref = 'actorAt' in node.tree ? (node.tree.actorAt as (path: string) => { getSnapshot(): unknown } | null)(path) : null;
  const snapshot = ref?.getSnapshot();
  if (typeof snapshot === 'object' && snapshot !== null && 'context' in snapshot) {
    lines.push(
      '  Its context',
      ...inspect(snapshot.context, { depth: DEPTH, maxArrayLength: 20, maxStringLength: 500 })
        .split('\n')
        .map((line) => `    ${line}`),
    );
  }
  return lines;
}
