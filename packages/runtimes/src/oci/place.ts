/**
 * Where containers of this runtime live. For root: a mount namespace of the runtime's own. For another user: a user
 * namespace too, in which the user is root and has the ids of /etc/subuid. So one code serves both, and mounts vanish with
 * the namespaces. A sleeping process, the holder, keeps them while the runtime is restarted.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { bootId, isAlive, type ProcId, readStat, signal } from '../process/container/procfs.ts';
import { type Layout, replaceText } from '../process/store/store.ts';
import type { Programs } from './programs.ts';

const run = promisify(execFile);
/** Set in the process that runs inside: the holder's pid. */
const INSIDE = 'ACTORLET_OCI_HOLDER';
const HOLDER_BYTES_MAX = 4096;
const MAP_WITHIN_MS = 10_000;
const HYBRID = '/sys/fs/cgroup/unified/cgroup.controllers';
/** crun refuses a machine with both versions of cgroups; containers have none there, so it need not see them. */
const HOLD = `echo made; read -r _ || exit 1
if [ -e ${HYBRID} ]; then mount -t tmpfs -o ro none /sys/fs/cgroup/unified || exit 1; fi
echo in; exec sleep infinity`;

/** Pid of the holder; 0 when this process is not inside. */
export const holderPid = (): number => Number(process.env[INSIDE] ?? 0);

/** Becomes the same program inside; returns only when it is inside already. @throws with what to do where it cannot be. */
export async function enter(l: Layout, programs: Programs): Promise<void> {
  if (holderPid() !== 0) return;
  const holder = liveHolder(l) ?? (await makeHolder(programs));
  const user = programs.ids === null ? [] : ['--user', '--preserve-credentials'];
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const args = ['nsenter', `--target=${holder}`, ...user, '--mount', '--', ...self];
  if (process.execve === undefined) throw new Error('this Node cannot replace itself (process.execve): use Node 22.19 or newer');
  process.execve(programs.nsenter, args, { ...process.env, [INSIDE]: String(holder) });
}

/** Called by the runtime that serves: later ones come to the same place. Gives the holder before this one if it has ended, else null. */
export function keepHolder(l: Layout): number | null {
  const pid = holderPid();
  const stat = readStat(pid);
  if (stat === null) throw new Error('the process that holds the namespaces has ended');
  const id: ProcId = { pid, startTicks: stat.startTicks, bootId: bootId() };
  const before = storedHolder(l);
  replaceText(l.holder, JSON.stringify(id));
  return before === null || before.pid === pid || before.bootId !== id.bootId ? null : before.pid;
}

/** Ends the holder unless it is the one that a runtime serves from: of a starter that lost, or with the last pod. */
export function dropHolder(l: Layout, o: { unless: 'kept' | 'never' }): void {
  const pid = holderPid();
  if (pid !== 0 && (o.unless === 'never' || liveHolder(l) !== pid)) signal(pid, 'SIGKILL');
}

/** Makes such a place and lets it go. @throws with what to do where it cannot be had. */
export async function tryPlace(programs: Programs): Promise<void> {
  signal(await makeHolder(programs), 'SIGKILL');
}

function liveHolder(l: Layout): number | null {
  const id = storedHolder(l);
  return id !== null && isAlive(id, bootId()) ? id.pid : null;
}

function storedHolder(l: Layout): ProcId | null {
  try {
    return JSON.parse(readRegularSync(l.holder, { own: true, bytesMax: HOLDER_BYTES_MAX }).toString('utf8')) as ProcId;
  } catch {
    return null;
  }
}

async function makeHolder(programs: Programs): Promise<number> {
  const { ids } = programs;
  const flags = [...(ids === null ? [] : ['--user']), '--mount', '--propagation', 'slave'];
  const child = startProcess(programs.unshare, [...flags, '--', 'sh', '-c', HOLD], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString('utf8')));
  child.stdin.on('error', () => undefined);
  const ended = new Promise<never>((_resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(words.trim() || `unshare ended with ${code}`)));
    setTimeout(() => reject(new Error(`no namespaces within ${MAP_WITHIN_MS} ms`)), MAP_WITHIN_MS).unref();
  });
  ended.catch(() => undefined);
  const { pid } = child;
  try {
    if (pid === undefined) return await ended;
    const said = () => Promise.race([ended, new Promise((line) => child.stdout.once('data', line))]);
    await said();
    if (ids !== null) {
      const map = (own: number, r: { start: number; count: number }) => [pid, 0, own, 1, 1, r.start, r.count].map(String);
      await run(ids.newuidmap, map(process.geteuid?.() ?? 0, ids.uids));
      await run(ids.newgidmap, map(process.getegid?.() ?? 0, ids.gids));
    }
    child.stdin.write('\n');
    await said();
    child.unref();
    return pid;
  } catch (error) {
    child.kill('SIGKILL');
    const why = (error as Error).message.trim();
    if (ids === null) throw new Error(`no mount namespace can be made here: ${why}`);
    throw new Error(
      `OCI images need a user namespace, which this user cannot have here: ${why}. Allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), run as root, or use embedded://process`,
    );
  }
}
