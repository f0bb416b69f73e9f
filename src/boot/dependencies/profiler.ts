/** The real Profiler port: V8's own samplers, through an inspector session of this process that opens no port. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Profiler } from '../../ports/ports.ts';

/** V8's default is 100 us: a node agent that is looked at while it works should not feel it. */
const CPU_INTERVAL_US = 1_000;
/** Mean bytes between two samples of allocations; V8's own default. */
const HEAP_INTERVAL_BYTES = 32 * 1024;

export function createProfiler(): Profiler {
  let busy = false;
  const alone = async (look: (post: Post) => Promise<object>): Promise<string> => {
    if (busy) throw Object.assign(new Error('another profile is being taken'), { code: 'EBUSY' });
    busy = true;
    try {
      // Loaded when it is wanted: few daemons are ever profiled.
      const { Session } = await import('node:inspector/promises');
      const session = new Session();
      session.connect();
      try {
        return JSON.stringify(await look((method, params) => session.post(method, params)));
      } finally {
        session.disconnect();
      }
    } finally {
      busy = false;
    }
  };
  return {
    cpu: (ms, signal) =>
      alone(async (post) => {
        await post('Profiler.enable');
        await post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL_US });
        await post('Profiler.start');
        try {
          await wait(ms, undefined, { signal });
        } catch (error) {
          await post('Profiler.stop');
          throw error;
        }
        return profileOf(await post('Profiler.stop'));
      }),
    heap: (ms, signal) =>
      alone(async (post) => {
        await post('HeapProfiler.startSampling', { samplingInterval: HEAP_INTERVAL_BYTES });
        try {
          await wait(ms, undefined, { signal });
        } catch (error) {
          await post('HeapProfiler.stopSampling');
          throw error;
        }
        return profileOf(await post('HeapProfiler.stopSampling'));
      }),
  };
}

type Post = (method: string, params?: object) => Promise<unknown>;

function profileOf(answer: unknown): object {
  if (
    typeof answer === 'object' &&
    answer !== null &&
    'profile' in answer &&
    typeof answer.profile === 'object' &&
    answer.profile !== null
  ) {
    return answer.profile;
  }
  throw new Error('the sampler gave no profile');
}
