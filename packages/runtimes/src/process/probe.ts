/** What isolation this user can have on this host: tried once at start, said in Status and in the log. */
import { execFile } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Isolation {
  /** `namespaces`: PID, mount, UTS and IPC namespaces. `plain`: process groups only. */
  kind: 'namespaces' | 'plain';
  /** Namespaces come with a user namespace of their own, because the runtime is not root. */
  userNamespace: boolean;
  /** Why it is `plain`; else how namespaces are made. One sentence. */
  reason: string;
  root: boolean;
  uid: number;
  gid: number;
  /** Root of a user namespace whose maker may set no groups: commands keep those of the runtime. */
  keepsGroups?: true;
  /** Absolute paths of the helpers; '' where the host lacks one. */
  sh: string;
  unshare: string;
  nsenter: string;
  setpriv: string;
  mkfifo: string;
  hostname: string;
  env: string;
  pageBytes: number;
}

/** Absolute path of a command as `execvp` would find it; '' when there is none. A name with a slash is tried as it is. */
export function findCommand(name: string, path: string, cwd = '/'): string {
  const candidates = name.includes('/')
    ? [name.startsWith('/') ? name : join(cwd, name)]
    : path.split(delimiter).map((dir) => join(dir || '.', name));
  for (const file of candidates) {
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return '';
}

function run(file: string, args: string[]): Promise<{ ok: boolean; out: string; error: string }> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: 5000 }, (error, stdout, stderr) => {
      resolve({ ok: error === null, out: stdout, error: stderr.trim() || (error?.message ?? '') });
    });
  });
}

/** What the kernel says of a user namespace that was made without rights. */
function setsNoGroups(): boolean {
  try {
    return readFileSync('/proc/self/setgroups', 'latin1').startsWith('deny');
  } catch {
    return false;
  }
}

/** `wanted: 'plain'` skips the trial. */
export async function probeIsolation(o: { path: string; wanted?: 'plain' | undefined }): Promise<Isolation> {
  const uid = process.geteuid?.() ?? 0;
  const base: Isolation = {
    kind: 'plain',
    userNamespace: false,
    reason: 'asked for',
    root: uid === 0,
    uid,
    gid: process.getegid?.() ?? 0,
    ...(setsNoGroups() ? { keepsGroups: true as const } : {}),
    sh: findCommand('sh', o.path) || '/bin/sh',
    unshare: findCommand('unshare', o.path),
    nsenter: findCommand('nsenter', o.path),
    setpriv: findCommand('setpriv', o.path),
    mkfifo: findCommand('mkfifo', o.path),
    hostname: findCommand('hostname', o.path),
    env: findCommand('env', o.path),
    pageBytes: 4096,
  };
  const page = await run('getconf', ['PAGESIZE']);
  const pageBytes = Number(page.out);
  if (page.ok && pageBytes > 0) base.pageBytes = pageBytes;
  if (o.wanted === 'plain') return base;
  if (base.unshare === '' || base.nsenter === '' || base.hostname === '') {
    return { ...base, reason: 'unshare, nsenter or hostname is not installed' };
  }
  // The very sequence the shim uses: a kernel or a container around us may permit one part and not the next.
  const trial = ['-c', '"$1" -c \'mount -t proc proc /proc && hostname actorlet-probe\' probe; exit $?', 'probe', base.sh];
  const user = base.root ? [] : ['--user', '--map-current-user', '--keep-caps'];
  const tried = await run(base.unshare, [...user, '--mount', '--pid', '--uts', '--ipc', '--', base.sh, ...trial]);
  if (!tried.ok) return { ...base, reason: `namespaces are not permitted here: ${tried.error.split('\n')[0] ?? ''}` };
  return { ...base, kind: 'namespaces', userNamespace: !base.root, reason: base.root ? 'as root' : 'in an unprivileged user namespace' };
}
