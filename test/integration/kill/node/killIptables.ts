/** The actor of the node's iptables chains, killed in each of its states. */
import type { VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/services/iptables';
const kept = (h: VirtualNode) => h.state(path) === 'watching' && h.iptables.rules(4, 'mangle', 'KUBE-IPTABLES-HINT') !== null;
const reach = (h: VirtualNode, state: string) => h.until(`it is ${state}`, () => h.state(path) === state, 700_000);

export const IPTABLES_CASES = sharing({ path, options: { iptables: true }, rests: kept }, [
  { covers: 'iptables watching', arrange: (h) => reach(h, 'watching') },
  {
    options: {
      iptables: true,
      before: (h) => {
        h.iptables.stuck = true;
      },
    },
    covers: 'iptables ensuring',
    arrange: (h) => reach(h, 'ensuring'),
  },
  {
    covers: 'iptables looking',
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.stuck = true;
      await reach(h, 'looking');
    },
  },
  {
    covers: 'iptables settling',
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.flush(4);
      await reach(h, 'settling');
    },
  },
  {
    options: {
      iptables: true,
      before: (h) => {
        h.iptables.families = new Set([4]);
      },
    },
    covers: 'iptables failed',
    arrange: async (h) => {
      await reach(h, 'watching');
      h.iptables.flush(4);
      await reach(h, 'settling');
      h.iptables.refused = 'KUBE-FIREWALL';
      await reach(h, 'failed');
    },
  },
  {
    options: {
      iptables: true,
      before: (h) => {
        h.iptables.families = new Set();
      },
    },
    covers: 'iptables absent',
    arrange: (h) => reach(h, 'absent'),
    release: (h) => {
      h.iptables.families = new Set([4, 6]);
    },
    restsWithinMs: 700_000,
  },
]);
