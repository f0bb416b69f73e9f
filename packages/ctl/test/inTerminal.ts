/** A command in a pseudo terminal of its own, by `script` of util-linux; `stty` looks at the terminal from outside. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { expect } from 'vitest';
import { until } from '../../../test/edge/harness.ts';

export interface InTerminal {
  text(): string;
  type(keys: string): void;
  /** The terminal's settings, as `stty -a` prints them. */
  settings(): string;
  resize(rows: number, cols: number): void;
  child: ChildProcess;
  /** Process id of the command. */
  pid(): number;
}

/** `command`: for a shell, without single quotes. After it the terminal's settings and the exit code are printed. */
export async function inTerminal(command: string): Promise<InTerminal> {
  // The shell itself outlives Ctrl-C.
  const shell = `trap : INT; stty rows 24 cols 80; echo tty=$(tty); sh -c 'echo pid=$$; exec ${command}'; echo code=$?; stty -a; echo over=1`;
  const child = spawn('script', ['-qfec', shell, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, SHELL: '/bin/sh' },
  });
  let text = '';
  child.stdout.on('data', (d: Buffer) => {
    text += d.toString();
  });
  const found = (name: string): string => new RegExp(`${name}=(\\S+)\\r?\\n`).exec(text)?.[1] ?? '';
  await until(() => found('tty') !== '' && found('pid') !== '');
  const stty = (...o: string[]): string => execFileSync('stty', ['-F', found('tty'), ...o]).toString();
  return {
    ...{ text: () => text, child, pid: () => Number(found('pid')) },
    type: (keys) => void child.stdin.write(keys),
    settings: () => stty('-a'),
    resize: (rows, cols) => void stty('rows', String(rows), 'cols', String(cols)),
  };
}

export const over = (t: InTerminal): Promise<void> => until(() => /over=1/.test(t.text()), 20_000);

/** What the shell found after the command: its exit code, and a terminal as before. */
export function expectRestored(t: InTerminal, code: number): void {
  expect(t.text()).toContain(`code=${code}\r\n`);
  const after = t.text().slice(t.text().lastIndexOf('code='));
  expect(after).toMatch(/[^-]icanon/);
  expect(after).toMatch(/[^-]isig/);
  expect(after).toMatch(/[^-]echo\b/);
}
