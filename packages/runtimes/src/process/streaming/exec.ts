/** Commands beside a container's own: ExecSync, and exec with streams. */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import { familyOf, scanProcesses, signal } from '../container/procfs.ts';
import { execCommand } from '../container/shim.ts';
import type { Supervised } from '../container/supervise.ts';
import { findCommand, type Isolation } from '../probe.ts';
import type { ExecAsk, Oci } from '../types.ts';
import type { RemoteStreams, Size } from './remote.ts';
import { afterOpening } from './terminalInput.ts';

/** Per stream, as CRI runtimes cap it. What goes beyond is dropped. */
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** Output still being written by a grandchild after the command's own end is waited for so long. */
const OUTPUT_LINGER_MS = 250;
/** Clients with a terminal say its size first of all; a command that began without it would miss it. */
const SIZE_WITHIN_MS = 100;

interface Spawned {
  child: ChildProcess;
  opens: string;
  /** Of its terminal. */
  resize(size: Size): Promise<void>;
  /** At its end: why the command could not be run, '' when it ran. */
  ended(): string;
}
interface How {
  isolation: Isolation;
  oci?: Oci | undefined;
}

function spawnBeside(c: Supervised, cmd: readonly string[], o: How & { stdin: boolean; tty: boolean; size: Size | null }): Spawned {
  const { shim, env } = c.row.plan;
  // The end of its input would be typed into a terminal.
  const stdio: StdioOptions = [o.stdin || o.tty ? 'pipe' : 'ignore', 'pipe', 'pipe'];
  if (c.row.plan.oci !== undefined && o.oci !== undefined) {
    const { file, args, ...more } = o.oci.beside(c.row, { cmd, tty: o.tty, size: o.size });
    return { child: startProcess(file, args, { cwd: '/', detached: true, stdio }), ...more };
  }
  const [name = '', ...rest] = cmd;
  const file = findCommand(name, env.PATH ?? '', shim.cwd);
  if (file === '') throw new RuntimeRefusal(CODE.unknown, `exec: ${JSON.stringify(name)}: executable file not found in $PATH`);
  const inner = c.innerPid();
  const wantsInner = Object.values(shim.namespaces).some(Boolean);
  if (wantsInner && inner === null) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.row.id} is ending`);
  const command = execCommand(shim, [file, ...rest], inner, o.isolation);
  const child = startProcess(command.file, command.args, { cwd: inner === null ? shim.cwd : '/', env, detached: true, stdio });
  return { child, opens: '', resize: () => Promise.resolve(), ended: () => '' };
}

function exitCodeOf(code: number | null, sig: NodeJS.Signals | null): number {
  return code ?? 128 + (sig === null ? 0 : constants.signals[sig]);
}
function killGroup(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  try {
    // What crun started in a container is in another session.
    const family = familyOf(pid, scanProcesses());
    signal(-pid, 'SIGKILL');
    for (const p of family) signal(p.pid, 'SIGKILL');
  } catch {
    // Not ours any more: it changed its user. Its container's end reaches it.
  }
}

/** Resolves at the command's end; a command that outlives `timeoutMs` (0 = none) is killed: DeadlineExceeded. */
export function execSync(
  c: Supervised,
  cmd: readonly string[],
  o: How & { timeoutMs: number; signal: AbortSignal },
): Promise<{ stdout: Buffer; stderr: Buffer; exitCode: number }> {
  const { child, ended } = spawnBeside(c, cmd, { ...o, stdin: false, tty: false, size: null });
  const collect = (from: NodeJS.ReadableStream | null) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    from?.on('data', (chunk: Buffer) => {
      const room = OUTPUT_BYTES_MAX - bytes;
      if (room > 0) chunks.push(chunk.subarray(0, room));
      bytes += Math.min(room, chunk.length);
    });
    return () => Buffer.concat(chunks);
  };
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const stop = (error: RuntimeRefusal): void => {
      done();
      killGroup(child);
      ended();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = (): void => stop(new RuntimeRefusal(CODE.cancelled, 'the call was cancelled; the command was killed'));
    const done = (): void => {
      clearTimeout(timer);
      o.signal.removeEventListener('abort', onAbort);
    };
    o.signal.addEventListener('abort', onAbort, { once: true });
    if (o.timeoutMs > 0) {
      timer = setTimeout(
        () => stop(new RuntimeRefusal(CODE.deadlineExceeded, `command timed out after ${o.timeoutMs} ms and was killed`)),
        o.timeoutMs,
      );
    }
    child.on('error', (error) => stop(new RuntimeRefusal(CODE.unknown, `exec failed: ${error.message}`)));
    child.on('exit', (code, sig) => {
      const finish = (): void => {
        clearTimeout(linger);
        done();
        const why = ended();
        if (why !== '' && code !== 0) reject(new RuntimeRefusal(CODE.unknown, `exec: ${why}`));
        else resolve({ stdout: stdout(), stderr: stderr(), exitCode: exitCodeOf(code, sig) });
      };
      const linger = afterLinger(finish);
      child.on('close', finish);
    });
  });
}

/** What lies in the pipes is read first: on a busy machine the time may be over before anybody looked. */
function afterLinger(finish: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(() => setImmediate(finish)), OUTPUT_LINGER_MS);
}

export async function serveExec(ask: ExecAsk, s: RemoteStreams, how: How): Promise<void> {
  const size = ask.tty ? await s.size(SIZE_WITHIN_MS) : null;
  let spawned: Spawned;
  try {
    spawned = spawnBeside(ask.container, ask.cmd, { ...how, stdin: ask.stdin, tty: ask.tty, size });
  } catch (error) {
    s.finish({ error: (error as Error).message });
    return;
  }
  const { child, ended, resize } = spawned;
  const { output, input } = afterOpening(child, spawned.opens);
  const forward = (from: NodeJS.ReadableStream | null, to: Writable | null): void => {
    if (to === null) from?.resume();
    else from?.pipe(to, { end: false });
  };
  let outputOver = false;
  output?.once('end', () => {
    outputOver = true;
  });
  forward(output, s.stdout);
  forward(child.stderr, s.stderr);
  // The command may end before its input does.
  child.stdin?.on('error', () => undefined);
  if (s.stdin !== null) s.stdin.pipe(input);
  s.onResize(resize);
  void s.closed.then(() => killGroup(child));
  child.on('error', (error) => s.finish({ error: error.message }));
  child.on('exit', (code, sig) => {
    const finish = (): void => {
      clearTimeout(linger);
      const why = ended();
      s.finish(why !== '' && code !== 0 ? { error: why } : { exitCode: exitCodeOf(code, sig) });
    };
    const linger = afterLinger(finish);
    // What reads the output after the child's own stream ends later than that.
    child.on('close', () => (output === null || outputOver ? finish() : output.once('end', finish)));
  });
}
