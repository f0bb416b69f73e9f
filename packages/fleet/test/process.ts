/** A program of a test, and all that it prints. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { COMPILED_ONCE } from '../../../test/compiled.ts';

const running = new Set<ChildProcess>();

export interface StartedProgram {
  child: ChildProcess;
  /** All that it printed. */
  text(): string;
  /** Its exit code; null: a signal ended it. */
  ended: Promise<number | null>;
}

export function startProgram(program: string, args: readonly string[], o: Pick<SpawnOptions, 'cwd' | 'env'> = {}): StartedProgram {
  const child = spawn(program, args, { env: { ...process.env, ...COMPILED_ONCE }, ...o, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, text: () => said, ended };
}

/** Those that a failed test left. */
export function endPrograms(): void {
  for (const child of running) child.kill('SIGKILL');
}
