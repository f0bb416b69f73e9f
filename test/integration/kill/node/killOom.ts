/** The watch on the kernel's log, killed in each of its states. */
import type { KillCase } from '../killing.ts';

const path = 'node/runtime/oomWatcher';
const options = { kernelLog: true };

export const OOM_CASES: KillCase[] = [
  { options, covers: 'oomWatcher following', path },
  {
    options,
    covers: 'oomWatcher unreadable',
    path,
    arrange: async (h) => {
      h.kernelLog.readable = false;
      await h.until('it noticed', () => h.state(path) === 'unreadable');
    },
    release: (h) => {
      h.kernelLog.readable = true;
    },
    rests: (h) => h.state(path) === 'following',
  },
];
