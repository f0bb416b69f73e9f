/**
 * The real Mounter port: mount(8), umount(8) and a small shell as helper processes with a deadline, since a system call
 * on a dead network file system never returns and cannot be taken back. A helper that even SIGKILL does not end (it sits
 * in the kernel) is left behind; the call fails all the same. A tmpfs needs no helper (tmpfs.ts).
 */

import type { ChildProcessByStdio } from 'node:child_process';
import { lchown, realpath } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { parseMountinfo } from '../../../machines/host/mountinfo.ts';
import { mayHang, serverOfSource, serversIn } from '../../../machines/host/unmounting.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { ifThere } from '../../../ports/ifThere.ts';
import type { MountCall, Mounter, PathKind } from '../../../ports/machine/mounter.ts';
import { bindSubPath } from '../subPath/bind.ts';
import { SubPathHelpers } from '../subPath/helper.ts';
import { GROW_SCRIPT } from './fileSystems.ts';
import { MountBatches } from './mountBatches.ts';
import { createMountCalls } from './mountCalls.ts';
import { MountError, mountErrorOf } from './mountError.ts';
import { ownMountTable } from './mountTable.ts';
import { createTmpfsCalls, TMPFS } from './tmpfs.ts';

/** A helper that takes its time says how many files it has done. */
const PROGRESS = /^(\d+)\n$/;
/** Helpers say at most a line or two beside that. */
const OUTPUT_CHARS_MAX = 4096;

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** Runs a program in a process group of its own. Rejects where it cannot be run, at the deadline, and when it is cancelled. */
function runToEnd(command: string, args: readonly string[], call: MountCall): Promise<Ended> {
  const what = [command, ...args].join(' ');
  return new Promise((resolve, reject) => {
    if (call.signal.aborted) return reject(new MountError('ECANCELED', `${command}: cancelled`));
    const cannotRun = (error: unknown) =>
      new MountError(codeOf(error) === 'ENOENT' ? 'ENOENT' : 'EIO', `${command} cannot be run: ${messageOf(error)}`);
    let child: ChildProcessByStdio<null, Readable, Readable>;
    try {
      const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C' };
      child = startProcess(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env, detached: true });
    } catch (error) {
      return reject(cannotRun(error));
    }
    let out = '';
    let err = '';
    const keep = (text: string, more: Buffer) => (text + more.toString('utf8')).slice(0, OUTPUT_CHARS_MAX);
    child.stdout.on('data', (d: Buffer) => {
      out = keep(out, d);
    });
    child.stderr.on('data', (d: Buffer) => {
      const files = PROGRESS.exec(d.toString());
      if (call.progress === undefined || files === null) err = keep(err, d);
      else {
        late.refresh();
        call.progress(Number(files[1]));
      }
    });
    const abandon = (code: string, message: string) => {
      finish();
      endGroup(child);
      child.unref();
      child.stdout.destroy();
      child.stderr.destroy();
      reject(new MountError(code, message));
    };
    const late = setTimeout(
      () => abandon('ETIMEDOUT', `${what}: no end within ${call.timeoutMs} ms; the helper was killed, what became of it is not known`),
      call.timeoutMs,
    );
    const cancel = () => abandon('ECANCELED', `${what}: cancelled`);
    call.signal.addEventListener('abort', cancel, { once: true });
    const finish = () => {
      clearTimeout(late);
      call.signal.removeEventListener('abort', cancel);
    };
    child.once('error', (error) => {
      finish();
      reject(cannotRun(error));
    });
    child.once('close', (code, signal) => {
      finish();
      resolve({ code, signal, out, err });
    });
  });
}
/** What it has started ends with it. */
function endGroup(child: { pid?: number | undefined; kill(signal: 'SIGKILL'): boolean }): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

/** Rejects unless the helper ends with 0 in time. */
export async function runHelper(command: string, args: readonly string[], call: MountCall): Promise<string> {
  const { code, signal, out, err } = await runToEnd(command, args, call).catch((error: unknown) => {
    // `ENOENT` is what a helper says of a path.
    throw codeOf(error) === 'ENOENT' ? new MountError('EIO', messageOf(error)) : error;
  });
  if (code === 0) return out;
  throw mountErrorOf(err.trim().replace(SHELL, '') || out.trim() || `ended with ${code ?? signal}`);
}

/** One word about "$1". A link that leads nowhere counts as absent, as it does for the reference. */
const KIND_SCRIPT = [
  'if [ -d "$1" ]; then echo dir',
  'elif [ -f "$1" ]; then echo file',
  'elif [ -S "$1" ]; then echo socket',
  'elif [ -c "$1" ]; then echo char',
  'elif [ -b "$1" ]; then echo block',
  'elif [ -e "$1" ]; then echo other',
  'else echo absent; fi',
].join('; ');
const KINDS: readonly PathKind[] = ['absent', 'dir', 'file', 'socket', 'char', 'block', 'other'];
/** New directories get the mode through the umask, parents included. */
const MKDIR_SCRIPT = 'umask "$2" && mkdir -p -- "$1"';
/** `set -C`: never a file that another program made meanwhile. The shell's own words for a folder that is missing name the shell. */
const MKFILE_SCRIPT = [
  'dir=$(dirname -- "$1")',
  '[ -d "$dir" ] || { echo "cannot make the file $1: $dir: No such file or directory" >&2; exit 1; }',
  'umask "$2" && set -C && : > "$1"',
].join('; ');
/** statfs(2) is never answered from a cache. Any answer in time, an error too, is the server's. */
const SEVER_SCRIPT = [
  'timeout -s KILL 5 stat -f -- "$1" >/dev/null 2>&1',
  '[ $? -eq 137 ] || { echo answers; exit 0; }',
  'file=/sys/fs/nfs/$2/shutdown',
  '[ -e "$file" ] || { echo "$file is not there: Linux 6.5 and later can give up a server" >&2; exit 1; }',
  'echo 1 > "$file" && echo severed',
].join('\n');
const GROUP_SCRIPT = 'stat -L -c %g -- "$1"';
const TELL_SCRIPT = 'printf %s "$2" > "$1"';
const NEVER = new AbortController().signal;
/** Before what a shell says of a line of a script. */
const SHELL = /^(?:\S*\/)?sh: \d+: /;

const umaskFor = (mode: number): string => (0o777 & ~mode).toString(8).padStart(4, '0');

/** What is not there yet cannot be a link. */
async function realPath(dir: string): Promise<string> {
  return (await ifThere(realpath(dir))) ?? dir;
}

export interface MounterOptions {
  /** Default: `/proc/self/mountinfo`, and of one path the kernel's calls where it has them. */
  mountinfo?: string;
}

export function createMounter(o: MounterOptions = {}): Mounter {
  const table = ownMountTable(o.mountinfo);
  const calls = o.mountinfo === undefined ? createMountCalls() : null;
  const helpers = new SubPathHelpers(runHelper);
  const batches = new MountBatches();
  const tmpfs = createTmpfsCalls();
  // Never looked at: a path of a dead server must not be. A thousand stale mounts that go at once ask the same table.
  let known = { text: '', serverOf: serversIn([]) };
  const server = async (path: string): Promise<string> => {
    const text = await table();
    if (known.text !== text) known = { text, serverOf: serversIn(parseMountinfo(text)) };
    return known.serverOf(path);
  };
  return {
    async list(dir, at = dir) {
      const real = await realPath(dir);
      const inside = real === '/' ? real : `${real}/`;
      const wanted = `${real}${at.slice(dir.length)}`;
      return ((wanted === real ? null : calls?.at(wanted)) ?? parseMountinfo(await table(), wanted))
        .filter((e) => e.path === real || e.path.startsWith(inside))
        .map((e) => ({ ...e, path: `${dir}${e.path.slice(real.length)}` }));
    },
    async mount({ type, source, path, options }, call) {
      if (type === TMPFS && source === TMPFS && (await tmpfs.mount(path, options, call))) return;
      const args = [...(type === '' ? [] : ['-t', type]), ...(options.length === 0 ? [] : ['-o', options.join(',')]), '--', source, path];
      if (mayHang(type)) return batches.alone(['mount', ...args], serverOfSource(source), call);
      await batches.run(['mount', ...args], call);
    },
    async bindSubPath(request, call) {
      if (request.foreign) return helpers.bind(request, { ...call, server: await server(request.volume) });
      return bindSubPath(request, (command, args) => runHelper(command, args, call));
    },
    async unmount(path, type, call) {
      if (type === TMPFS && (await tmpfs.unmount(path, call))) return;
      if (mayHang(type)) return batches.unmount(['umount', '--', path], await server(path), call);
      await batches.run(['umount', '--', path], call);
    },
    // Neither the helper of the file system (-i) nor a look at the path (-c): both would ask the server.
    detach: async (path, way, call) =>
      batches.unmount(['umount', '-i', '-c', ...(way === 'forced' ? ['-f'] : []), '-l', '--', path], await server(path), call),
    sever: async (path, device, call) =>
      (await runHelper('/bin/sh', ['-c', SEVER_SCRIPT, 'sh', path, device], call)).trim() === 'severed' ? 'severed' : 'answers',
    async kindOf(path, call) {
      const word = (await runHelper('/bin/sh', ['-c', KIND_SCRIPT, 'sh', path], call)).trim();
      const kind = KINDS.find((k) => k === word);
      if (kind === undefined) throw new MountError('EIO', `the helper said ${JSON.stringify(word)} about ${path}`);
      return kind;
    },
    async makeDir(path, mode, call) {
      await runHelper('/bin/sh', ['-c', MKDIR_SCRIPT, 'sh', path, umaskFor(mode)], call);
    },
    async makeFile(path, mode, call) {
      try {
        await runHelper('/bin/sh', ['-c', MKFILE_SCRIPT, 'sh', path, umaskFor(mode)], call);
      } catch (error) {
        if (!(error instanceof MountError && error.code === 'EEXIST')) throw error;
      }
    },
    async giveToGroup(path, of, call) {
      return { left: await helpers.giveToGroup({ path, ...of }, { ...call, server: await server(path) }) };
    },
    async groupOf(path, call) {
      return Number(await runHelper('/bin/sh', ['-c', GROUP_SCRIPT, 'sh', path], call));
    },
    async tool(name, args, { timeoutMs }) {
      const { code, signal, out, err } = await runToEnd(name, args, { timeoutMs, signal: NEVER });
      if (code === null) throw new MountError('EIO', `${name} was ended by ${signal}`);
      return { code, out, err };
    },
    async tellKernel(path, text, call) {
      await runHelper('/bin/sh', ['-c', TELL_SCRIPT, 'sh', path, text], call);
    },
    async growFileSystem(device, path, call) {
      await runHelper('/bin/sh', ['-c', GROW_SCRIPT, 'sh', device, path], call);
    },
    // -1 leaves that id as it is.
    chown: (path, { uid, gid }) => lchown(path, uid ?? -1, gid ?? -1),
  };
}
