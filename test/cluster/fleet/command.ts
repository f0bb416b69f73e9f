/** `actorlet fleet` as a process of a cluster test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

const running = new Set<ChildProcess>();

export interface FleetProcess {
  child: ChildProcess;
  /** All that it printed. */
  text(): string;
  /** Its exit code; null: a signal ended it. */
  ended: Promise<number | null>;
}

export function startFleetProcess(...args: string[]): FleetProcess {
  const child = spawn('scripts/node', ['src/boot/main.ts', 'fleet', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
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
export function endFleetProcesses(): void {
  for (const child of running) child.kill('SIGKILL');
}

export const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
