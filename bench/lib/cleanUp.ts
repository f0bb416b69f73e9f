/** How a benchmark leaves the machine: as it found it, also when it is cut short. */
import { say } from './report.ts';

/**
 * Runs `stop` once, by the first of two callers: the benchmark at its end, or SIGINT and SIGTERM, after which the process exits
 * with 130. `stop` returns what it could not remove, which is said.
 */
export function cleanUpOnce(stop: () => Promise<readonly string[]>): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const cleanUp = (): Promise<void> => {
    stopping ??= stop().then((left) => {
      if (left.length > 0) say(`left behind: ${left.join(', ')}`);
    });
    return stopping;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say(`${signal}: stopping and removing what was started`);
      void cleanUp().then(() => process.exit(130));
    });
  }
  return cleanUp;
}
