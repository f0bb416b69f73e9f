/** Terminals of commands beside a container's own, with a real `script` in place of crun's. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { beside } from '../../src/oci/exec.ts';
import { inTerminal } from '../../src/oci/terminal.ts';
import { serveExec } from '../../src/process/streaming/exec.ts';
import { eventually } from '../conformance.ts';

function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'oci-terminal-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
const row = { id: 'c', plan: { env: {}, shim: {}, oci: { process: {}, cgroupsPath: null } } } as never;

it('a size that comes before the command runs is set once it runs', async () => {
  const dir = tempDir();
  const o = { layout: { containerDir: () => dir }, programs: { runtime: { name: 'crun', path: 'crun' } } } as never;
  const command = beside(row, { cmd: ['sh'], tty: true, size: null }, o);
  const resized = command.resize({ columns: 91, rows: 33 });
  const pidFile = /--pid-file' '([^']+)'/.exec(command.args.join(' '))?.[1] ?? '';
  const inside = spawn('script', ['-q', '-c', `echo $$ >'${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec cat`, '/dev/null']);
  onTestFinished(() => void inside.kill());
  await resized;
  await eventually('the command runs', () => existsSync(pidFile) || undefined);
  const terminal = `/proc/${readFileSync(pidFile, 'latin1').trim()}/fd/0`;
  expect(execFileSync('stty', ['-F', terminal, 'size'], { encoding: 'latin1' })).toBe('33 91\n');
});

it('nothing is typed into a terminal without input', async () => {
  const name = join(tempDir(), 'terminal');
  const [file = '', ...args] = inTerminal(['sh', '-c', 'timeout --foreground 0.5 cat -v; echo over'], {
    name,
    size: null,
    opens: '',
    errors: '',
  });
  const stdout = new PassThrough();
  const said = text(stdout);
  const container = { row } as never;
  const streams = {
    stdin: null,
    stdout,
    stderr: null,
    size: async () => null,
    onResize: () => undefined,
    closed: new Promise(() => undefined),
  };
  const oci = { beside: () => ({ file, args, opens: '', resize: async () => undefined, ended: () => '' }) } as never;
  const ask = { container, cmd: [], tty: true, stdin: false } as never;
  await new Promise((finish) => void serveExec(ask, { ...streams, finish } as never, { isolation: null as never, oci }));
  stdout.end();
  expect(await said).toBe('over\n');
});
