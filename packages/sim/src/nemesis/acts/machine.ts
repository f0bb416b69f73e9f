/** Faults of the machine around a daemon, and the end of the daemon itself. */
import { KERNEL_SETTINGS } from '@actorlet/kubelet/machines/host/kernelSettings.ts';
import { FAMILIES } from '@actorlet/kubelet/machines/services/iptables/families.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { FaultEntry } from '../faults.ts';
import { type Acts, hit, missed, type Stage } from './act.ts';

const NO_FILTER = 'this node keeps nothing in the packet filter';
const NO_DAEMON = 'no daemon';

type Kind = 'iptables' | 'iptables.flush' | 'sysctl' | 'pressure.memory' | 'watch.break' | 'clock.jump' | 'node.kill' | 'node.stop';

/** `halt`: what runs on the node ends, as at a power failure. */
export function machineActs({ active, windows, match, clock }: Stage, halt: (node: SimNode) => void): Acts<Kind> {
  const changeSetting = (f: FaultEntry, node: SimNode): void => {
    const chance = active.chanceOf(f);
    const setting = chance.pick(KERNEL_SETTINGS);
    if (setting !== undefined) node.kernelSettings.set(setting.path, setting.value + 1 + chance.int(100));
  };
  return {
    iptables(f, node) {
      if (!node.tuning.packetFilter) return missed(NO_FILTER);
      windows.open(f);
      return hit();
    },
    'iptables.flush'(f, node) {
      if (!node.tuning.packetFilter) return missed(NO_FILTER);
      node.iptables.flush(active.chanceOf(f).pick(FAMILIES) ?? 4);
      return hit();
    },
    sysctl(f, node) {
      if (node.tuning.kernel === null) return missed('this node relies on no kernel settings');
      if (f.action === 'changed') changeSetting(f, node);
      windows.open(f, () => mendSettings(node));
      return hit();
    },
    'pressure.memory'(f, node) {
      if (node.tuning.eviction === null) return missed('this node has no eviction threshold, and looks at no memory');
      windows.open(f);
      return hit();
    },
    'watch.break'(f, node) {
      const broken = node.disk.breakWatches('the watch was lost', (path) => match.any(f.select.paths, path));
      return broken === 0 ? missed() : hit('', broken);
    },
    'clock.jump'(f, node) {
      node.wallOffsetMs += f.byMs;
      return hit();
    },
    'node.kill'(f, node) {
      if (node.daemon === undefined) return missed(NO_DAEMON);
      node.kill(f.action);
      if (f.action === 'power') halt(node);
      clock.setTimeout(() => node.boot(), f.downMs);
      return hit(f.action);
    },
    'node.stop'(f, node) {
      if (node.daemon === undefined) return missed(NO_DAEMON);
      void node.stop().then(() => void clock.setTimeout(() => node.boot(), f.downMs));
      return hit();
    },
  };
}

/** As the administrator of a machine does whose node changes nothing by itself. */
export function mendSettings(node: SimNode): void {
  if (node.tuning.kernel?.protect === true) node.kernelSettings.restore();
}
