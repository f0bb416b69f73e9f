/** The actor of the node's iptables chains, killed in each of its states. */
import type { VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/services/iptables';
const options = { iptables: true };
const kept = (h: VirtualNode) => h.state(path) === 'watching' && h.iptables.rules(4, 'mangle', 'KUBE-IPTABLES-HINT') !== null;
const reach = (h: VirtualNode, state: string) => h.until(`it is ${state}`, () => h.state(path) === state, 700_000);

export const IPTABLES_CASES: KillCase[] = [
  { options, covers: 'iptables watching', path, arrange: (h) => reach(h, 'watching'), rests: kept },
  {
    options: {
      ...options,
      before: (h) => {
        h.iptables.stuck = true;
      },
    },
    covers: 'iptables ensuring',
    path,
    arrange: (h) => reach(h, 'ensuring'),
    release: (h) => {
      h.iptables.stuck = false;
    },
    rests: kept,
  },
  {
    options,
    covers: 'iptables looking',
    path,
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.stuck = true;
      await reach(h, 'looking');
    },
    release: (h) => {
      h.iptables.stuck = false;
    },
    rests: kept,
  },
  {
    options,
    covers: 'iptables settling',
    path,
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.flush(4);
      await reach(h, 'settling');
    },
    rests: kept,
  },
  {
    options: {
      ...options,
      before: (h) => {
        h.iptables.families = new Set([4]);
      },
    },
    covers: 'iptables failed',
    path,
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.flush(4);
      await reach(h, 'settling');
      h.iptables.refused = 'KUBE-FIREWALL';
      await reach(h, 'failed');
    },
    release: (h) => {
      h.iptables.refused = '';
    },
    rests: kept,
  },
  {
    options: {
      ...options,
      before: (h) => {
        h.iptables.families = new Set();
      },
    },
    covers: 'iptables absent',
    path,
    arrange: (h) => reach(h, 'absent'),
    release: (h) => {
      h.iptables.families = new Set([4, 6]);
    },
    rests: kept,
    restsWithinMs: 700_000,
  },
];
