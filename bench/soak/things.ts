/** What a node may leave behind or gather, counted from outside: of the daemon's process and of the machine. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../../test/e2e/daemon.ts';
import { mountsUnder, processesInCgroups, processesOf } from '../../test/e2e/lab/cleanup.ts';
import type { Containerd } from '../../test/e2e/lab/containerd.ts';

const ANSWER_MS = 10_000;

/** By name. */
export type Things = Readonly<Record<string, number>>;

/** Of the machine: equal whenever the same pods run. */
export function left({ lab, daemon, group }: { lab: Containerd; daemon: Daemon; group: string }): Things {
  return {
    mounts: mountsUnder(lab.dir).length + mountsUnder(daemon.dir).length,
    cgroups: ['', ...list('/sys/fs/cgroup')].flatMap((controller) => folders(join('/sys/fs/cgroup', controller, group))).length,
    processes: processesInCgroups(group).length + processesOf(lab.dir).length,
    'folders of pods': folders(join(daemon.rootDir, 'pods')).length,
    'folders of logs': folders(daemon.podLogs).length + list(daemon.containerLogs).length,
    'network interfaces': list(`/sys/class/net/${lab.bridge}/brif`).length,
  };
}

/** Of the daemon's process. */
export async function ofDaemon(daemon: Daemon): Promise<Things> {
  const pid = daemon.pid;
  if (pid === undefined) throw new Error(`the daemon is gone:\n${daemon.log().slice(-4_000)}`);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  const answer = await fetch(`${daemon.readOnlyUrl}/metrics`, { signal: AbortSignal.timeout(ANSWER_MS) });
  const metrics = await answer.text();
  const sum = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].reduce((all, [, value]) => all + Number(value), 0);
  return {
    'resident memory': of('VmRSS') / 1024,
    'used heap': sum('nodejs_heap_size_used_bytes') / 2 ** 20,
    threads: of('Threads'),
    descriptors: list(`/proc/${pid}/fd`).length,
    actors: sum('actorlet_actors'),
    timers: Number(/^nodejs_active_resources\{type="Timeout"\} (\S+)$/m.exec(metrics)?.[1] ?? 0),
    'metric lines': metrics.split('\n').length,
    'helper processes': list('/proc').filter((name) => parentOf(name) === pid).length,
  };
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Below that folder, at any depth. */
function folders(dir: string): string[] {
  try {
    const below = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return below.flatMap((entry) => [join(dir, entry.name), ...folders(join(dir, entry.name))]);
  } catch {
    return [];
  }
}
