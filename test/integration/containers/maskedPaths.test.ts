/** What of /proc and /sys containers do not see: of each CPU the folder that it has. */
import { expect, it } from 'vitest';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import { pod, virtualNode } from '../virtualNode.ts';

const CPUS = '/sys/devices/system/cpu';

it('containers do not see how hot the CPUs of the machine were', async () => {
  await using h = await virtualNode({
    before: ({ fs }) => {
      for (const folder of ['cpu0/thermal_throttle', 'cpu1', 'cpufreq/thermal_throttle']) fs.makeDir(`${CPUS}/${folder}`);
    },
    manifests: { web: pod('web') },
  });
  await h.until('web runs', () => h.running('web').length === 1);
  const [created] = h.calls.filter((c) => c.method === 'CreateContainer').map((c) => (c.req as { config: ContainerConfig }).config);
  const masked = created?.linux?.securityContext?.maskedPaths ?? [];
  expect(masked).toEqual(expect.arrayContaining(['/proc/interrupts', '/sys/devices/virtual/powercap']));
  expect(masked.filter((path) => path.startsWith(CPUS))).toEqual([`${CPUS}/cpu0/thermal_throttle`]);
});
