/** For every state of the kubelet's API server: how a node is driven there. */
import { SERVING } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/edge/https';

export const API_CASES = sharing({ path, options: { servers: true } }, [
  { covers: 'server listening' },
  {
    covers: 'server opening',
    arrange: async (h) => {
      h.net.serve = () => new Promise((done) => void h.time.clock.setTimeout(done, 500));
      h.kill(path);
    },
  },
  {
    covers: 'server blocked',
    arrange: async (h) => {
      h.net.serve = () => Promise.reject(new Error('address already in use'));
      h.kill(path);
    },
  },
  {
    covers: 'server refreshing',
    arrange: async (h) => {
      h.fs.delayMs = (_op, file) => (file === SERVING.certFile ? 500 : 0);
    },
  },
  {
    // A crash in the layer before stops the edge in order: its servers close.
    covers: 'server closing',
    arrange: async (h) => {
      h.net.closeMs = 1_000;
      h.kill('node/foundation');
    },
  },
]);
