/**
 * Terminals and standard input of OCI containers. `script` holds a terminal, which crun passes on. Standard input is a FIFO,
 * which a sleeping process keeps open, so that it outlives its clients and the runtime.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { hasEnv, signal } from '../process/container/procfs.ts';
import { MARK } from '../process/container/shim.ts';
import type { Layout, StoredContainer } from '../process/store/store.ts';
import type { Size } from '../process/streaming/remote.ts';
import type { ContainerInput } from '../process/types.ts';
import { runProgram } from './run.ts';

const WORD_BYTES_MAX = 64;
const TERMINAL = /^\/dev\/(?:pts\/\d+|console)$/;

/**
 * `$1` the FIFO, then the command. It is opened both ways first: neither end waits for the other. The sleeping process is no
 * child of the command, and the container's end ends it, by its mark.
 */
export const WITH_INPUT = `exec 3<>"$1" 4>"$1" <"$1" 3<&-
(sleep infinity </dev/null >/dev/null 2>&1 & echo $! >"$1.pid")
shift
exec "$@" 4>&-`;

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** A command in a terminal that is raw: one that is not would echo, and take Ctrl-C for its own. */
export function inTerminal(command: readonly string[], o: { name: string; size: Size | null; opens: string; errors: string }): string[] {
  const size = o.size === null ? '' : ` rows ${o.size.rows} columns ${o.size.columns}`;
  const say = o.opens === '' ? '' : `printf ${quoted(o.opens)}; `;
  const errors = o.errors === '' ? '' : ` 2>${quoted(o.errors)}`;
  const script = `tty >${quoted(o.name)}; stty raw -echo${size}; ${say}exec ${command.map(quoted).join(' ')}${errors}`;
  return ['env', 'SHELL=/bin/sh', 'script', '-q', '-e', '-f', '-c', script, '/dev/null'];
}

/** Where {@link inTerminal} writes the name of a container's terminal. */
export const terminalFile = (dir: string): string => join(dir, 'terminal');

/**
 * `file`: of {@link inTerminal}. `pid`: of the process inside, which has the terminal that the container runtime made: crun
 * 1.8 does not pass a new size on to that one, so it is set too.
 */
export async function resizeTerminal({ file, pid }: { file: string; pid: number | null }, { columns, rows }: Size): Promise<void> {
  const inside = [0, 1, 2]
    .map((fd) => `/proc/${pid}/fd/${fd}`)
    .find((path) => pid !== null && TERMINAL.test(attempt(() => readlinkSync(path))));
  for (const name of [attempt(() => readFileSync(file, 'latin1').trim()), inside ?? '']) {
    // It may have just gone.
    if (name !== '') await runProgram('stty', ['-F', name, 'rows', String(rows), 'columns', String(columns)]).catch(() => undefined);
  }
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

export function inputOf(row: StoredContainer, o: { layout: Layout; innerPid(): number | null }): ContainerInput | null {
  const input = row.plan.oci?.input;
  if (input === undefined) return null;
  const file = o.layout.container(row.id, 'in');
  return {
    ...{ file, ...input },
    resize: (size) => resizeTerminal({ file: terminalFile(o.layout.containerDir(row.id)), pid: o.innerPid() }, size),
    end() {
      const pid = Number(readRegularSync(`${file}.pid`, { own: true, bytesMax: WORD_BYTES_MAX }).toString('latin1'));
      if (pid > 0 && hasEnv(pid, `${MARK}=${row.id}`)) signal(pid, 'SIGKILL');
    },
  };
}
