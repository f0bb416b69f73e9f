/**
 * Imported before a daemon (`node --import`): takes a processor profile of it until it ends, into the file ACTORLET_PROFILE. Node's
 * `--cpu-prof` stops sampling as soon as the program handles SIGPROF. And what it allocated and holds when it is told to end, into
 * the file ACTORLET_HEAP_PROFILE.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const INTERVAL_US = 1_000;
const INTERVAL_BYTES = 4_096;
/** By then the program handles its signals. */
const AFTER_MS = 1_000;
/** By then it has started, and holds what it holds without pods. */
const STARTED_MS = 5_000;

const [file, heapFile] = [process.env.ACTORLET_PROFILE, process.env.ACTORLET_HEAP_PROFILE];
const session = new Session();
if (file !== undefined || heapFile !== undefined) session.connect();
if (file !== undefined) {
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
if (heapFile !== undefined) {
  setTimeout(() => {
    session.post('HeapProfiler.startSampling', { samplingInterval: INTERVAL_BYTES });
    process.prependOnceListener('SIGTERM', () => {
      session.post('HeapProfiler.collectGarbage');
      session.post('HeapProfiler.stopSampling', (error, result) => {
        if (error === null) writeFileSync(heapFile, JSON.stringify(result.profile));
      });
    });
  }, STARTED_MS).unref();
}
