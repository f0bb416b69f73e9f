/** Huge pages of containers: the runtime is told of every size that the machine has. */
import { expect, it } from 'vitest';
import { cluster, created, createReady } from '../cluster/clusterPods.ts';

it('a container has the huge pages that it asked for, and none of those of its neighbour', async () => {
  const pages = '/sys/kernel/mm/hugepages/hugepages-2048kB';
  await using h = await cluster({
    before: ({ fs }) => {
      fs.makeDir(pages);
      fs.put(`${pages}/nr_hugepages`, '8');
    },
  });
  const amounts = { cpu: '100m', memory: '32Mi', 'hugepages-2Mi': '4Mi' };
  const containers = [
    { name: 'asks', image: 'busybox:1', resources: { requests: amounts, limits: amounts } },
    { name: 'does-not', image: 'busybox:1' },
  ];
  await createReady(h, 'web', { spec: { containers } });
  expect(created(h, 'web').map((c) => [c.metadata.name, c.linux?.resources?.hugepageLimits])).toEqual([
    ['asks', [{ pageSize: '2MB', limit: 4 * 2 ** 20 }]],
    ['does-not', [{ pageSize: '2MB', limit: 0 }]],
  ]);
});
