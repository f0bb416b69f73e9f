/** The watch on the kernel's log, killed in each of its states. */
import { sharing } from '../killing.ts';

const path = 'node/runtime/oomWatcher';

export const OOM_CASES = sharing({ path, options: { kernelLog: true } }, [
  { covers: 'oomWatcher following' },
  {
    covers: 'oomWatcher unreadable',
    arrange: async (h) => {
      h.kernelLog.readable = false;
      await h.until('it noticed', () => h.state(path) === 'unreadable');
    },
    release: (h) => {
      h.kernelLog.readable = true;
    },
    rests: (h) => h.state(path) === 'following',
  },
]);
