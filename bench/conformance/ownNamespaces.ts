/**
 * Namespaces of its own for a run: mounts, network, processes. So the folders that a kubelet cannot be told to leave are empty, a proxy of
 * services may write rules, volumes may be mounted from a pod, and everything ends with the first process, in whatever way that ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeCgroups } from '../../test/e2e/lab/cleanup.ts';

const INSIDE = 'ACTORLET_CONFORMANCE_DIR';
const CGROUP = 'cgroup';
/** Where every kubelet keeps something, whatever its root directory is. */
const FOLDERS = ['/var/lib/kubelet', '/var/log/pods', '/var/log/containers'];

/** The first process: it waits for all that lose their parents, as shims of containers do. */
const FIRST = `set -e
mount --make-rshared /
ip link set lo up
for dir in ${FOLDERS.join(' ')}; do mkdir -p $dir; mount -t tmpfs none $dir; done
mount --make-rshared /
"$@" &
child=$!
trap 'kill -TERM $child' TERM INT
set +e
wait $child
code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
exit $code`;

/** The folder of this run, in its namespaces; undefined: this process is not inside. */
export function ownFolder(): string | undefined {
  return process.env[INSIDE];
}

/** The cgroup of a run that its own end may not remove, in every hierarchy. */
export function noteCgroup(dir: string, name: string): void {
  writeFileSync(join(dir, CGROUP), name);
}

/** Runs this program once more, inside, and gives its exit code. Its folder is removed. */
export async function runInside(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'aconf-'));
  const flags = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn('unshare', [...flags, 'bash', '-c', FIRST, 'conformance', ...again], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: dir, TMPDIR: dir },
  });
  // A signal to `unshare` itself would kill all that is inside, and nothing would be cleaned up: the first process gets it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => signalFirst(child.pid, signal));
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    // Where it was killed: all its processes are gone, so these are empty.
    if (existsSync(join(dir, CGROUP))) removeCgroups(readFileSync(join(dir, CGROUP), 'utf8'));
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** The only child of `unshare`. */
function signalFirst(unshare: number | undefined, signal: NodeJS.Signals): void {
  const children = `/proc/${unshare}/task/${unshare}/children`;
  const first = existsSync(children) ? Number(readFileSync(children, 'utf8').trim()) : 0;
  // Nobody is there where it has ended meanwhile.
  if (first > 0 && existsSync(`/proc/${first}`)) process.kill(first, signal);
}
