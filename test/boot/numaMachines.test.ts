/**
 * Machines with several NUMA nodes, as their kernel tells of them below /sys/devices/system (`numaMachines.json`): kept from the
 * machines of `test/e2e/vm/numa`, where the nightly run asks the kernel itself where containers run. Here a node in virtual time.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readCpus, readNumaNodes } from '../../src/boot/dependencies/machine/cpuTopology.ts';
import type { KubeletConfiguration } from '../../src/machines/config/config.ts';
import { cluster, create, created, inApi, isReady } from '../integration/cluster/clusterPods.ts';
import { tempDir } from './helpers.ts';

type Machines = Record<'twoNodes' | 'fourNodes', Record<string, string>>;
const MACHINES = JSON.parse(readFileSync(new URL('./numaMachines.json', import.meta.url), 'utf8')) as Machines;

function kept(name: keyof Machines) {
  using dir = tempDir();
  for (const [path, text] of Object.entries(MACHINES[name])) dir.write(path, `${text}\n`);
  return { cpus: readCpus(dir.path), numaNodes: readNumaNodes(dir.path) };
}
const STATIC: Partial<KubeletConfiguration> = {
  cpuManagerPolicy: 'static',
  reservedSystemCPUs: '0',
  memoryManagerPolicy: 'Static',
  systemReserved: { memory: '200Mi' },
  reservedMemory: [{ numaNode: 0, limits: { memory: '200Mi' } }],
  evictionHard: { 'memory.available': '0%' },
};

const SMALL = 2 * 2 ** 20;
const PAGES = '/sys/kernel/mm/hugepages/hugepages-2048kB';

/** CPUs and NUMA nodes of each pod; the reason of one that is refused. */
async function places(name: keyof Machines, config: Partial<KubeletConfiguration>, pods: Record<string, Record<string, string>>) {
  const machine = kept(name);
  const pages = machine.numaNodes
    .flatMap((node) => node.hugePages)
    .reduce((sum, { pageBytes, count }) => (pageBytes === SMALL ? sum + count : sum), 0);
  await using h = await cluster({
    ...machine,
    config: { ...STATIC, ...config },
    before: ({ fs }) => {
      fs.makeDir(PAGES);
      fs.put(`${PAGES}/nr_hugepages`, String(pages));
    },
  });
  const found: Record<string, unknown> = {};
  for (const [pod, amounts] of Object.entries(pods)) {
    create(h, pod, { container: { resources: { requests: amounts, limits: amounts } } });
    await h.until(`${pod} is Ready or refused`, () => isReady(h, pod) || inApi(h, pod)?.status.phase === 'Failed');
    const { cpusetCpus, cpusetMems } = created(h, pod).at(-1)?.linux?.resources ?? {};
    found[pod] = inApi(h, pod)?.status.reason ?? [cpusetCpus, cpusetMems];
  }
  return found;
}

it('two nodes of two CPUs: a container has CPUs, memory and huge pages of one', async () => {
  expect(kept('twoNodes').numaNodes).toMatchObject([{ distances: [10, 21] }, { distances: [21, 10] }]);
  const pages = (amount: string) => ({ memory: '32Mi', 'hugepages-2Mi': amount });
  const pods = { wide: { cpu: '100m', ...pages('40Mi') }, one: { cpu: '1', ...pages('8Mi') }, two: { cpu: '2', ...pages('8Mi') } };
  expect(await places('twoNodes', { topologyManagerPolicy: 'single-numa-node' }, pods)).toEqual({
    wide: 'TopologyAffinityError',
    one: ['1', '0'],
    two: ['2-3', '1'],
  });
});

it('four nodes of one CPU and one of memory alone: a pod that needs two nodes has near ones', async () => {
  const { cpus, numaNodes } = kept('fourNodes');
  expect(cpus.map((c) => c.node)).toEqual([0, 1, 2, 3]);
  expect(numaNodes[4]).toMatchObject({ id: 4, distances: [28, 28, 28, 28, 10] });
  const config: Partial<KubeletConfiguration> = {
    topologyManagerPolicy: 'restricted',
    topologyManagerScope: 'pod',
    topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': 'true' },
  };
  const pods = { one: { cpu: '1', memory: '32Mi' }, wide: { cpu: '2', memory: '700Mi' } };
  expect(await places('fourNodes', config, pods)).toEqual({ one: ['1', '1'], wide: ['2-3', '2-3'] });
});
