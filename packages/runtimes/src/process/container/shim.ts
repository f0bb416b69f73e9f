/**
 * The shim: the one small `sh` per container that outlives the runtime. It runs the command in the foreground, writes
 * its exit code to a file, and waits to be told that the output was read. Only shell builtins appear outside `"$@"`:
 * the first process that the shim forks becomes PID 1 of the container's namespace, and after that one has ended
 * nothing more can be forked. What a shell itself says of the command's end ("Killed") is not the container's output.
 */
import type { Isolation } from '../probe.ts';

/** Set in every process of a container: how stragglers are found that left the container's session. */
export const MARK = 'ACTORLET_CONTAINER_ID';

/**
 * Traps are handlers, not "ignore": a handler is undone when the command is executed, an ignored signal would stay
 * ignored. The stop signal reaches the whole process group; the shim takes note and lets the command decide.
 * $1 exit file, $2 ready file ('' when the inner shell reports it), $3 acknowledgement FIFO, $4 stop signal.
 */
const OUTER = `# Runs one container of actorlet's embedded runtime; outlives the runtime.
x=$1 up=$2 ack=$3 s=
trap 's=1' HUP INT QUIT ALRM TERM USR1 USR2 $4
shift 4
if [ -n "$s" ]; then c=143; else
if [ -n "$up" ]; then echo up >"$up"; fi
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
c=$?
fi
echo $c >"$x"
while [ -p "$ack" ] && ! read -r _ <"$ack"; do :; done
exit $c
`;

/**
 * PID 1 inside the namespaces: sets them up, then runs the command as its child, so that the command keeps the default
 * action for signals (PID 1 itself would not die of TERM) and orphans are reaped.
 * $1 ready file, $2 host name, $3 proc|-, $4 working directory, $5 stop signal, then groups of `m SOURCE TARGET ro|rw`, then `--`.
 */
const INNER = `# First process of one container of actorlet's embedded runtime.
up=$1 h=$2 p=$3 d=$4 s=
trap 's=1' HUP INT QUIT ALRM TERM USR1 USR2 $5
shift 5
fail() { echo "container set-up failed: $1" >&2; exit 125; }
if [ "$p" = proc ]; then mount -t proc proc /proc || fail "mounting /proc"; fi
if [ -n "$h" ]; then hostname "$h" || fail "setting the host name to $h"; fi
while [ "$1" = m ]; do
mount --bind "$2" "$3" || fail "mounting $2 on $3"
if [ "$4" = ro ]; then mount -o remount,bind,ro "$3" || fail "making the mount on $3 read-only"; fi
shift 4
done
shift
cd "$d" || fail "changing to $d"
if [ -n "$s" ]; then exit 143; fi
echo up >"$up"
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
exit $?
`;

export interface BindMount {
  source: string;
  target: string;
  readonly: boolean;
}

/** User and rights that the command runs with; absent fields change nothing. */
export interface Credentials {
  uid?: number | undefined;
  gid?: number | undefined;
  groups?: number[] | undefined;
  noNewPrivs?: boolean | undefined;
  /** In setpriv's notation: `-all,+net_bind_service`. */
  boundingSet?: string | undefined;
}

export interface ShimSpec {
  /** First element an absolute path: a bare name could be a builtin of the shell. */
  argv: readonly string[];
  cwd: string;
  /** '' = the host's own. */
  hostname: string;
  /** Which namespaces this container gets; none of them = a plain process group. */
  namespaces: { pid: boolean; mount: boolean; uts: boolean; ipc: boolean };
  binds: readonly BindMount[];
  credentials: Credentials;
  /** Names a shell cannot hold as variables are set by `env` just before the command. */
  oddEnv: readonly string[];
  stopSignal: number;
  /** The command itself reports that it is up, in the ready file. */
  saysReady?: boolean;
}

/** The two scripts, for the runtime to put where {@link ShimPaths} says. */
export const SCRIPTS = { shim: OUTER, init: INNER } as const;

export interface ShimPaths {
  shim: string;
  init: string;
  exit: string;
  ready: string;
  ack: string;
}

/** The command with what must be changed last in front of it. */
function wrapCommand(spec: Pick<ShimSpec, 'argv' | 'credentials' | 'oddEnv'>, isolation: Isolation): string[] {
  const c = spec.credentials;
  const flags: string[] = [];
  if (c.uid !== undefined) flags.push(`--reuid=${c.uid}`);
  if (c.gid !== undefined) flags.push(`--regid=${c.gid}`);
  const changes = c.uid !== undefined || c.gid !== undefined;
  if (isolation.keepsGroups === true) flags.push(...(changes ? ['--keep-groups'] : []));
  else if (c.groups !== undefined && c.groups.length > 0) flags.push(`--groups=${c.groups.join(',')}`);
  else if (changes) flags.push('--clear-groups');
  if (c.boundingSet !== undefined) flags.push(`--inh-caps=${c.boundingSet}`, `--bounding-set=${c.boundingSet}`);
  else if (isolation.userNamespace && isolation.setpriv !== '') flags.push('--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all');
  if (c.noNewPrivs === true) flags.push('--no-new-privs');
  const odd = spec.oddEnv.length > 0 ? [isolation.env, ...spec.oddEnv] : [];
  return [...(flags.length > 0 ? [isolation.setpriv, ...flags, '--'] : []), ...odd, ...spec.argv];
}

/** What to spawn, detached (its own session and process group), with the log FIFOs as stdout and stderr. */
export function shimCommand(spec: ShimSpec, paths: ShimPaths, isolation: Isolation): { file: string; args: string[] } {
  const ns = spec.namespaces;
  const inner = ns.pid || ns.mount || ns.uts || ns.ipc;
  const stop = String(spec.stopSignal);
  const command = wrapCommand(spec, isolation);
  const outer = [paths.shim, paths.exit, inner || spec.saysReady === true ? '' : paths.ready, paths.ack, stop];
  if (!inner) return { file: isolation.sh, args: [...outer, ...command] };
  const binds = spec.binds.flatMap((b) => ['m', b.source, b.target, b.readonly ? 'ro' : 'rw']);
  const init = [
    isolation.sh,
    '-c',
    INNER,
    'actorlet-init',
    paths.ready,
    ns.uts ? spec.hostname : '',
    ns.pid ? 'proc' : '-',
    spec.cwd,
    stop,
  ];
  const flags = [
    ...(isolation.userNamespace ? ['--user', '--map-current-user', '--keep-caps'] : []),
    ...(ns.mount || ns.pid ? ['--mount'] : []),
    ...(ns.pid ? ['--pid'] : []),
    ...(ns.uts ? ['--uts'] : []),
    ...(ns.ipc ? ['--ipc'] : []),
  ];
  return { file: isolation.unshare, args: [...flags, '--', isolation.sh, ...outer, ...init, ...binds, '--', ...command] };
}

/** A command beside the container's own, inside the same namespaces. `innerPid` is the host pid of the namespace's PID 1. */
export function execCommand(
  spec: ShimSpec,
  argv: readonly string[],
  innerPid: number | null,
  isolation: Isolation,
): { file: string; args: string[] } {
  const command = wrapCommand({ ...spec, argv }, isolation);
  const [file = '', ...args] = command;
  if (innerPid === null) return { file, args };
  const ns = spec.namespaces;
  const flags = [
    ...(isolation.userNamespace ? ['--user', '--preserve-credentials'] : []),
    ...(ns.mount || ns.pid ? ['--mount'] : []),
    ...(ns.pid ? ['--pid'] : []),
    ...(ns.uts ? ['--uts'] : []),
    ...(ns.ipc ? ['--ipc'] : []),
  ];
  // nsenter leaves the working directory behind; the inner cd finds it again.
  const enter = [`--target=${innerPid}`, ...flags, '--', isolation.sh, '-c', 'cd "$1" && shift && exec "$@"', 'actorlet-exec', spec.cwd];
  return { file: isolation.nsenter, args: [...enter, ...command] };
}
