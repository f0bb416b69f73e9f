/** Entry of the node daemon. It loads the daemon with Node's compile cache on. */
import { useCompileCache } from './process/compileCache.ts';

useCompileCache(process.argv.slice(2));
const { runDaemon } = await import('./daemon.ts');
process.exit(await runDaemon());
