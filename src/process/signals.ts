/** Signals that must not end a program of ours. */

/**
 * These end a Node process by default, or open its debugger. Programs in Go live on, save for SIGHUP, which a session that
 * ends sends to all it started.
 */
export const HARMLESS_SIGNALS = [
  'SIGHUP',
  'SIGUSR1',
  'SIGUSR2',
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
  for (const name of HARMLESS_SIGNALS) process.on(name, () => {});
}
