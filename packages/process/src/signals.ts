/** Signals that must not end a program of ours. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** Programs in Go live on, save for SIGHUP, which a session that ends sends to all it started. People send these. */
export const TOLD_SIGNALS = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const satisfies readonly NodeJS.Signals[];
/** These end a Node process by default too. Profilers, timers and the kernel send them, a profiler thousands in a second. */
export const SILENT_SIGNALS = [
  'SIGALRM',
  'SIGVTALRM',
  'SIGPROF',
  'SIGIO',
  'SIGPWR',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGSTKFLT',
] as const satisfies readonly NodeJS.Signals[];

/** Called first in a program that runs long. A handler also takes SIGUSR1 from Node, should the flag be missing. */
export function outliveSignals(): void {
  for (const name of [...TOLD_SIGNALS, ...SILENT_SIGNALS]) if (!isTaken(name)) process.on(name, () => {});
}

/** V8's profiler (`node --cpu-prof`) has this process's SIGPROF: it would see nothing with a handler in its place. */
function isTaken(name: NodeJS.Signals): boolean {
  if (name !== 'SIGPROF') return false;
  try {
    const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
    return (BigInt(`0x${mask}`) & (1n << BigInt(constants.signals[name] - 1))) !== 0n;
  } catch {
    return false;
  }
}
