/** Whether this host has what the configuration asks for in the way of swap and memory of containers (resources 1.11, 1.12). */

import type { FeatureGates, KubeletConfiguration } from '../../../machines/config/config.ts';
import type { MemoryControlOfHost } from '../../../ports/ports.ts';
import { hostMemoryControl } from '../../dependencies/machine/memoryControl.ts';
import { type Problem, StartError } from '../../errors.ts';
import { need, type Step } from '../context.ts';

const SWAP = 'memorySwap.swapBehavior';

/** Reasons to refuse the start, and what is said while it goes on. Pure. */
export function judgeMemoryControl(
  { config: c, gates }: { config: KubeletConfiguration; gates: Pick<FeatureGates, 'enabled'> },
  there: MemoryControlOfHost,
): { refusals: Problem[]; lines: Problem[] } {
  const refusals: Problem[] = [];
  const lines: Problem[] = [];
  const old = there.cgroupVersion === 1;
  if (old && c.singleProcessOOMKill === false)
    refusals.push({
      where: 'singleProcessOOMKill',
      what: 'must not be false on cgroup v1, which ends single processes only; set it to true',
    });
  if (old && gates.enabled('MemoryQoS'))
    lines.push({
      where: 'featureGates.MemoryQoS',
      what: 'this host uses cgroup v1, which has neither floor nor throttle: containers get their limits alone',
    });
  if (old && c.memorySwap.swapBehavior === 'LimitedSwap')
    lines.push({ where: SWAP, what: 'this host uses cgroup v1, where swap cannot be shared out: it is as with NoSwap' });
  if (there.swapBytes > 0 && !there.swapController)
    lines.push({
      where: SWAP,
      what: 'swap is on and the kernel does not count it by cgroup: nothing keeps containers from it, whatever is set here',
    });
  return { refusals, lines };
}

export const checkMemoryControl: Step = {
  name: 'check what holds memory',
  async run(ctx) {
    const { refusals, lines } = judgeMemoryControl(need(ctx, 'nodeConfig'), hostMemoryControl());
    for (const { where, what } of lines) need(ctx, 'log').warn({ field: where }, `${where}: ${what}`);
    if (refusals.length > 0) throw new StartError('this host is not accepted', refusals);
    return undefined;
  },
};
