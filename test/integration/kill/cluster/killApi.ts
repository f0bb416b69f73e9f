/** For every state of the kubelet's API server: how a node is driven there. */
import { SERVING, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/edge/https';
const options = { servers: true };
const free = (h: VirtualNode) => {
  h.net.serve = () => Promise.resolve();
  h.fs.delayMs = () => 0;
};

export const API_CASES: KillCase[] = [
  { covers: 'server listening', path, options },
  {
    covers: 'server opening',
    path,
    options,
    arrange: async (h) => {
      h.net.serve = () => new Promise((done) => void h.time.clock.setTimeout(done, 500));
      h.kill(path);
    },
    release: free,
  },
  {
    covers: 'server blocked',
    path,
    options,
    arrange: async (h) => {
      h.net.serve = () => Promise.reject(new Error('address already in use'));
      h.kill(path);
    },
    release: free,
  },
  {
    covers: 'server refreshing',
    path,
    options,
    arrange: async (h) => {
      h.fs.delayMs = (_op, file) => (file === SERVING.certFile ? 500 : 0);
    },
    release: free,
  },
  {
    // A crash in the layer before stops the edge in order: its servers close.
    covers: 'server closing',
    path,
    options,
    arrange: async (h) => {
      h.net.closeMs = 1_000;
      h.kill('node/foundation');
    },
  },
];
