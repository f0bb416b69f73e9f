/** Commands beside a container's own, through `crun exec`. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import type { Layout, StoredContainer } from '../process/store/store.ts';
import type { Beside, BesideAsk } from '../process/types.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { noCgroups } from './container.ts';
import type { Programs } from './programs.ts';
import { inTerminal, resizeTerminal } from './terminal.ts';

type Files = [string, string, string, string];

const WORDS_CHARS_MAX = 1000;
/** Written to the terminal that the runtime passes on, once it is raw. */
const OPENS = '\u0006actorlet\u0006';

/** How often, and how many times, it is looked whether the command runs by now. */
const LOOK_MS = 20;
const LOOKS_MAX = 1_500;

export function beside(row: StoredContainer, ask: BesideAsk, o: { layout: Layout; programs: Programs }): Beside {
  const { cmd, tty, size } = ask;
  const { oci } = row.plan;
  if (oci === undefined) throw new RuntimeRefusal(CODE.internal, `container ${row.id} is none of an OCI image`);
  const dir = o.layout.containerDir(row.id);
  const consoleSize = size === null ? {} : { consoleSize: { width: size.columns, height: size.rows } };
  const name = `exec-${randomBytes(6).toString('hex')}`;
  const [spec, log, pid, terminal] = ['json', 'log', 'pid', 'terminal'].map((end) => join(dir, `${name}.${end}`)) as Files;
  writeFileSync(spec, JSON.stringify({ ...oci.process, args: cmd, terminal: tty, ...consoleSize }), { mode: 0o600 });
  const options = ['--root', join(dir, 'run'), '--log', log, ...noCgroups(o.programs, oci.cgroupsPath)];
  const run = [o.programs.runtime.path, ...options, 'exec', '--pid-file', pid, '--process', spec, row.id];
  const [file = '', ...args] = tty ? inTerminal(run, { name: terminal, size, opens: OPENS, errors: '' }) : run;
  let over = false;
  return {
    ...{ file, args, opens: tty ? OPENS : '' },
    async resize(to) {
      // Its terminal is made with the command, which may begin later than a client says its size.
      for (let looks = 0; readPid(pid) === null && !over && looks < LOOKS_MAX; looks++) await passed(LOOK_MS);
      if (!over) await resizeTerminal({ file: terminal, pid: readPid(pid) }, to);
    },
    ended() {
      over = true;
      // The runtime writes its pid once the command runs. Then the words are of how it ended, such as a terminal that went.
      const words = existsSync(pid) ? '' : readLog(log);
      for (const file of [spec, log, pid, terminal]) rmSync(file, { force: true });
      return words;
    },
  };
}

/** Null before the command runs. */
function readPid(file: string): number | null {
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'latin1'), 10) || null : null;
}

/** What the runtime itself has to say: that the command is not there, for instance. '' for a command that ran. */
function readLog(file: string): string {
  try {
    const [line = ''] = readFileSync(file, 'utf8').slice(0, WORDS_CHARS_MAX).split('\n');
    return line.replace(/^\d{4}-\S+ /, '').replace(/^.*?msg="(.*)".*$/, '$1');
  } catch {
    return '';
  }
}
