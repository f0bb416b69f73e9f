/** Entry of the node daemon. It loads the daemon with Node's compile cache on. */
import { outliveSignals } from '../process/signals.ts';
import { useCompileCache } from './process/compileCache.ts';

const argv = process.argv.slice(2);
if (argv[0] === 'fleet') {
  const { runFleet } = await import('./fleet/command.ts');
  process.exit(await runFleet(argv.slice(1)));
}
if (argv.some((arg) => arg === '--check' || arg === '--check=true')) {
  // Without the cache: a check writes no file.
  const { runCheck } = await import('./check/check.ts');
  process.exit(await runCheck(argv));
}
outliveSignals();
useCompileCache(argv);
const { runDaemon } = await import('./daemon.ts');
process.exit(await runDaemon());
