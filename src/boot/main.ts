/** Entry of the node daemon. It loads the daemon with Node's compile cache on. */
import { outliveSignals } from '@actorlet/process/src/signals.ts';
import { useCompileCache } from './process/compileCache.ts';

const argv = process.argv.slice(2);
// A script that gives Node its libraries: what starts Node again goes through it, too.
if (process.env.ACTORLET_EXEC_PATH !== undefined) process.execPath = process.env.ACTORLET_EXEC_PATH;
if (argv.some((arg) => arg === '--check' || arg === '--check=true')) {
  // Without the cache: a check writes no file.
  const { runCheck } = await import('@actorlet/check/src/check.ts');
  process.exit(await runCheck(argv));
}
if (argv[0] === 'observe' && argv.some((arg) => arg === '--show-kubelet' || arg === '--show-kubelet=true')) {
  const { showKubelet } = await import('@actorlet/observe/src/show.ts');
  process.exit(await showKubelet(argv));
}
outliveSignals();
if (argv[0] === 'observe') {
  const { observe } = await import('@actorlet/observe/src/observe.ts');
  process.exit(await observe(argv));
}
useCompileCache(argv);
const { runDaemon } = await import('./daemon.ts');
process.exit(await runDaemon());
