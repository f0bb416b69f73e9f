/** The node shutdown manager, killed in its states. The bystanders are in the group that ends last, and each shutdown is cancelled before. */
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/reclaim/nodeShutdown';
const STATE = `${ROOT}/graceful_node_shutdown_state`;
const options = {
  config: {
    shutdownGracePeriodByPodPriority: [
      { priority: -10, shutdownGracePeriodSeconds: 60 },
      { priority: 0, shutdownGracePeriodSeconds: 10 },
    ],
  },
};

const inState = (state: string) => (h: VirtualNode) => new RegExp(`[(,]${state}[),]`).test(h.state(path));
const watching = (h: VirtualNode) => h.until('logind is watched', () => inState('logind.watching')(h));
/** A pod of the first group that ignores TERM runs, and the machine begins to go down. */
async function goesDown(h: VirtualNode): Promise<void> {
  await h.run('subject', pod('subject', { life: 'run=forever,term=ignore', spec: { priority: -10, terminationGracePeriodSeconds: 20 } }));
  await watching(h);
  h.logind.shutDown();
}
const slowDisk = (h: VirtualNode): void => {
  h.fs.delayMs = (op, at) => (at.startsWith(STATE) && (op === 'writeFile' || op === 'readFile') ? 3_000 : 0);
};
const restored = (h: VirtualNode): boolean => inState('pods.waiting')(h) && inState('logind.watching')(h) && h.logind.held;
const rests = (h: VirtualNode): boolean => restored(h) && h.phase('subject') === 'Running' && h.running('subject').length === 1;

export const NODE_SHUTDOWN_CASES = sharing({ path, options }, [
  { covers: 'nodeShutdown logind.watching', at: inState('logind.watching'), rests: restored },
  { covers: 'nodeShutdown pods.waiting', at: inState('pods.waiting'), rests: restored },
  {
    covers: 'nodeShutdown logind.opening',
    arrange: async (h) => {
      await watching(h);
      h.logind.callMs = 2_000;
      h.logind.restart();
    },
    at: inState('logind.opening'),
    rests: restored,
  },
  {
    covers: 'nodeShutdown logind.backingOff',
    arrange: async (h) => {
      await watching(h);
      h.logind.reachable = false;
    },
    at: inState('logind.backingOff'),
    rests: restored,
  },
  {
    covers: 'nodeShutdown pods.loading',
    arrange: async (h) => {
      slowDisk(h);
      h.kill(path);
    },
    at: inState('pods.loading'),
    rests: restored,
  },
  {
    covers: 'nodeShutdown pods.shutdown.recording',
    arrange: async (h) => {
      slowDisk(h);
      await goesDown(h);
    },
    at: inState('pods.shutdown.recording'),
    release: (h) => void h.time.clock.setTimeout(() => h.logind.cancel(), 8_000),
    rests,
  },
  {
    covers: 'nodeShutdown pods.shutdown.ending',
    arrange: async (h) => {
      await goesDown(h);
      await h.until('the subject is asked to end', () => h.calls.some((c) => c.method === 'StopContainer'));
    },
    at: inState('pods.shutdown.ending'),
    release: (h) => void h.time.clock.setTimeout(() => h.logind.cancel(), 2_000),
    rests,
  },
  {
    covers: 'nodeShutdown pods.shutdown.restoring',
    arrange: async (h) => {
      await goesDown(h);
      await h.until('the subject is asked to end', () => h.calls.some((c) => c.method === 'StopContainer'));
      slowDisk(h);
      h.logind.cancel();
    },
    at: inState('pods.shutdown.restoring'),
    release: (h) => h.logind.cancel(),
    rests,
  },
  {
    covers: 'nodeShutdown pods.reviving',
    arrange: async (h) => {
      await goesDown(h);
      await h.until('the subject is asked to end', () => h.calls.some((c) => c.method === 'StopContainer'));
      h.logind.cancel();
      await h.until('it is asked to begin again', () => inState('pods.reviving')(h));
    },
    at: inState('pods.reviving'),
    rests,
  },
]);
