/** Commands beside a container's own, through `crun exec`. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout, StoredContainer } from '../process/store/store.ts';
import type { Beside } from '../process/types.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { noCgroups } from './container.ts';
import type { Programs } from './programs.ts';

const WORDS_CHARS_MAX = 1000;
/** Written to the terminal that the runtime passes on, once it is raw. */
const OPENS = '\u0006actorlet\u0006';

export function beside(row: StoredContainer, cmd: readonly string[], o: { tty: boolean; layout: Layout; programs: Programs }): Beside {
  const { oci } = row.plan;
  if (oci === undefined) throw new RuntimeRefusal(CODE.internal, `container ${row.id} is none of an OCI image`);
  const dir = o.layout.containerDir(row.id);
  const name = `exec-${randomBytes(6).toString('hex')}`;
  const [spec, log, pid] = [join(dir, `${name}.json`), join(dir, `${name}.log`), join(dir, `${name}.pid`)];
  writeFileSync(spec, JSON.stringify({ ...oci.process, args: cmd, terminal: o.tty }), { mode: 0o600 });
  const options = ['--root', join(dir, 'run'), '--log', log, ...noCgroups(o.programs, oci.cgroupsPath)];
  const run = [o.programs.runtime.path, ...options, 'exec', '--pid-file', pid, '--process', spec, row.id];
  // A terminal for the runtime to pass on: it has none itself. Not raw yet, it would echo, and take Ctrl-C for its own.
  const quoted = run.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return {
    ...(o.tty
      ? { file: 'script', args: ['-q', '-e', '-f', '-c', `stty raw -echo; printf '${OPENS}'; exec ${quoted}`, '/dev/null'] }
      : { file: run[0] ?? '', args: run.slice(1) }),
    opens: o.tty ? OPENS : '',
    ended() {
      // The runtime writes its pid once the command runs. Then the words are of how it ended, such as a terminal that went.
      const words = existsSync(pid) ? '' : readLog(log);
      for (const file of [spec, log, pid]) rmSync(file, { force: true });
      return words;
    },
  };
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
