/**
 * Namespaces of its own for a run: mounts, network, processes. So the folders that a kubelet cannot be told to leave are empty, a proxy of
 * services may write rules, volumes may be mounted from a pod, and everything ends with the first process, in whatever way that ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const INSIDE = 'ACTORLET_CONFORMANCE_DIR';
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

/** Runs this program once more, inside, and gives its exit code. Its folder is removed. */
export async function runInside(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'aconf-'));
  const flags = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn('unshare', [...flags, 'bash', '-c', FIRST, 'conformance', ...again], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: dir, TMPDIR: dir },
  });
  // Of a terminal all processes hear the interrupt; a signal to this one alone is passed on.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
