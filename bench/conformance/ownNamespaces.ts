/**
 * Namespaces of its own for a run: mounts, network, processes, control groups. So the folders that a kubelet cannot be told to leave are
 * empty, `kubepods` stands at the root of the hierarchies, a proxy of services may write rules, volumes may be mounted from a pod, and
 * everything ends with the first process, in whatever way that ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { removeCgroups } from '../../test/e2e/lab/cleanup.ts';

const INSIDE = 'ACTORLET_CONFORMANCE_DIR';
/** Of the CSI hostpath driver. */
const DRIVER_DATA = '/var/lib/csi-hostpath-data';
/** Where drivers of the specs describe devices. */
export const DEVICES = '/var/run/cdi';
/** Where every kubelet keeps something, whatever its root directory is, and what drivers write outside of it. */
const FOLDERS = ['/var/lib/kubelet', '/var/log/pods', '/var/log/containers', DRIVER_DATA, DEVICES];

/** Each hierarchy of control groups: where it is mounted, its type, its options. */
const HIERARCHIES = `hierarchies() { awk '$5 ~ "^/sys/fs/cgroup" && / - cgroup2? / { print $5, $(NF - 2), $NF }' /proc/self/mountinfo; }`;

/** A group of the run in each hierarchy is the root of its control groups. Its processes are one level deeper, as version 2 wants it. */
const ENTER = `set -e
${HIERARCHIES}
group=$1; shift
made() { mkdir $1/$2; for file in cpuset.cpus cpuset.mems; do [ ! -e $1/$2/$file ] || [ -n "$(cat $1/$2/$file)" ] || cat $1/$file >$1/$2/$file; done; }
while read -r at _; do
  made $at $group; made $at/$group run
  echo $$ >$at/$group/cgroup.procs
done < <(hierarchies)
export group
exec unshare --cgroup bash -c '${HIERARCHIES.replaceAll("'", `'\\''`)}
while read -r at _; do echo $$ >$at/$group/run/cgroup.procs; done < <(hierarchies)
exec unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private "$@"' enter "$@"`;

/** The first process: it waits for all that lose their parents, as shims of containers do. */
const FIRST = `set -e
${HIERARCHIES}
while read -r at type options; do
  umount $at
  mount -t $type -o "\${options#rw,}" none $at
done < <(hierarchies)
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
# Loop devices are of the whole machine: those of the specs' files would stay.
{
  for file in /tmp/local-volume-test-*/file; do losetup -n -O NAME -j $file; rm -r \${file%/*}; done
  losetup -n -O NAME,BACK-MAJ:MIN | awk -v own="$(findmnt -n -o MAJ:MIN ${DRIVER_DATA})" '$2 == own { print $1 }'
} 2>/dev/null | xargs -r losetup -d
exit $code`;

/** The folder of this run, in its namespaces; undefined: this process is not inside. */
export function ownFolder(): string | undefined {
  return process.env[INSIDE];
}

/** Runs this program once more, inside, and gives its exit code. Its folder is removed. */
export async function runInside(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'aconf-'));
  // Users of other user namespaces pass.
  chmodSync(dir, 0o755);
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const group = basename(dir);
  const child = spawn('bash', ['-c', ENTER, 'enter', group, 'bash', '-c', FIRST, 'conformance', ...again], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: dir, TMPDIR: dir },
  });
  // A signal to `unshare` itself would kill all that is inside, and nothing would be cleaned up: the first process gets it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => signalFirst(child.pid, signal));
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    // All its processes are gone, so these are empty.
    removeCgroups(group);
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
