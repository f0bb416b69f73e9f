/** The memory manager, killed in each of its states. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/allocation/memory';
const options = {
  config: {
    memoryManagerPolicy: 'Static' as const,
    systemReserved: { memory: '412Mi' },
    evictionHard: { 'memory.available': '100Mi' },
    reservedMemory: [{ numaNode: 0, limits: { memory: '512Mi' } }],
  },
};
const amounts = { cpu: '100m', memory: '64Mi' };
const subject = pod('subject', { container: { resources: { requests: amounts, limits: amounts } } });

/** What the one before was about to rename may be what the next one wrote; that is written again. */
const HELD_UP = /the record of allocated memory cannot be written.*ENOENT/;

const is =
  (state: string) =>
  (h: VirtualNode): boolean =>
    h.tree.actorAt(path)?.getSnapshot()?.value === state;
const slowFile = (op: string) => (h: VirtualNode) => {
  h.fs.delayMs = (name, file) => (name === op && file.endsWith('memory_manager_state') ? 800 : 0);
};
const release = (h: VirtualNode) => {
  h.fs.delayMs = () => 0;
  h.fs.failing = () => undefined;
};
const rests = (h: VirtualNode) => h.running('subject')[0]?.resources?.cpusetMems === '0' && h.phase('subject') === 'Running';
const after = (hold: (h: VirtualNode) => void) => async (h: VirtualNode) => {
  hold(h);
  h.write('subject', subject);
};

export const MEMORY_CASES: KillCase[] = [
  {
    options,
    covers: 'memory loading',
    path,
    arrange: async (h) => {
      slowFile('readFile')(h);
      h.write('subject', subject);
      h.kill(path);
    },
    release,
    rests,
  },
  { options, covers: 'memory settled', path, at: is('settled'), arrange: after(() => {}), rests },
  { options, covers: 'memory saving', path, at: is('saving'), arrange: after(slowFile('rename')), release, rests, errors: HELD_UP },
  {
    options,
    covers: 'memory saveFailed',
    path,
    at: is('saveFailed'),
    arrange: after((h) => {
      h.fs.failing = (op, file) => (op === 'writeFile' && file.includes('memory_manager_state') ? 'EIO' : undefined);
    }),
    release,
    rests,
    errors: /the record of allocated memory cannot be written/,
  },
];
