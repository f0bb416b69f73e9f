/** Commands beside a container's own, through `crun exec`. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout, StoredContainer } from '../process/store/store.ts';
import type { Beside } from '../process/types.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { noCgroups } from './container.ts';
import type { Programs } from './programs.ts';

const WORDS_CHARS_MAX = 1000;

export function beside(row: StoredContainer, cmd: readonly string[], o: { tty: boolean; layout: Layout; programs: Programs }): Beside {
  const { oci } = row.plan;
  if (oci === undefined) throw new RuntimeRefusal(CODE.internal, `container ${row.id} is none of an OCI image`);
  const dir = o.layout.containerDir(row.id);
  const name = `exec-${randomBytes(6).toString('hex')}`;
  const [spec, log] = [join(dir, `${name}.json`), join(dir, `${name}.log`)];
  writeFileSync(spec, JSON.stringify({ ...oci.process, args: cmd, terminal: o.tty }), { mode: 0o600 });
  const options = ['--root', join(dir, 'run'), '--log', log, ...noCgroups(o.programs, oci.cgroupsPath)];
  const run = [o.programs.runtime.path, ...options, 'exec', '--process', spec, row.id];
  // A terminal for crun to pass on: it has none itself.
  const quoted = run.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return {
    ...(o.tty ? { file: 'script', args: ['-q', '-e', '-f', '-c', quoted, '/dev/null'] } : { file: run[0] ?? '', args: run.slice(1) }),
    ended() {
      const words = readLog(log);
      rmSync(spec, { force: true });
      rmSync(log, { force: true });
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
