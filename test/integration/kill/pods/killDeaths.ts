/** The actor that keeps facts about deaths, killed in each of its states. */
import { deathsDir } from '../../../../src/machines/reclaim/deaths/messages.ts';
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/reclaim/deaths';
const DIR = deathsDir(ROOT);
const options = { flags: { deathsMax: 50 } };
const rests = (h: VirtualNode) => h.state(path) === 'idle' && h.running('crasher').length === 1;
/** A pod that crashes once. */
const crash = async (h: VirtualNode, state: string): Promise<void> => {
  h.write('crasher', pod('crasher', { life: 'run=1s,exit=1;run=forever' }));
  await h.until(`it is ${state}`, () => h.state(path) === state);
};

export const DEATHS_CASES = sharing({ path, options }, [
  { covers: 'deaths idle' },
  {
    covers: 'deaths reading',
    options: {
      ...options,
      before: (h) => {
        h.fs.makeDir(DIR);
        h.fs.delayMs = (op, at) => (op === 'readdir' && at === DIR ? 60_000 : 0);
      },
    },
    rests: (h) => h.state(path) === 'idle',
  },
  { covers: 'deaths settling', arrange: (h) => crash(h, 'settling'), rests },
  {
    covers: 'deaths keeping',
    arrange: async (h) => {
      h.fs.delayMs = (op, at) => (op === 'writeFile' && at.startsWith(DIR) ? 3_000 : 0);
      await crash(h, 'keeping');
    },
    rests,
  },
]);
