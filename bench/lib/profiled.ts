/**
 * Imported before a daemon (`node --import`): takes a processor profile of it until it ends, into the file ACTORLET_PROFILE. Node's
 * `--cpu-prof` stops sampling as soon as the program handles SIGPROF.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const INTERVAL_US = 1_000;
/** By then the program handles its signals. */
const AFTER_MS = 1_000;

const file = process.env.ACTORLET_PROFILE;
if (file !== undefined) {
  const session = new Session();
  session.connect();
  setTimeout(() => {
    session.post('Profiler.enable');
    session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
    session.post('Profiler.start');
    process.once('exit', () => {
      session.post('Profiler.stop', (error, result) => {
        if (error === null) writeFileSync(file, JSON.stringify(result.profile));
      });
    });
  }, AFTER_MS).unref();
}
