/**
 * CPUs, memory and huge pages of containers on a machine of two NUMA nodes, as the kernel says. Emulated by qemu: `npm run nightly`
 * runs it.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NumaMachine } from './numaMachine.ts';

const machine = new NumaMachine({ numa: ['0-1/1024', '2-3/1024'], distances: ['0,1,21'], hugePages: 16 });
const ALIGNED = { topologyManagerPolicy: 'single-numa-node' };

beforeAll(async () => {
  await machine.boot();
  await machine.start(ALIGNED);
}, 900_000);
afterAll(() => machine.dispose());

it('puts CPUs, memory and huge pages of a container on one node, and says what no node has', async () => {
  expect(await machine.nodes()).toBe('0 cpus 0-1 distance 10 21\n1 cpus 2-3 distance 21 10');
  await machine.put('wide', { cpu: '100m', memory: '32Mi', 'hugepages-2Mi': '40Mi' });
  const { reason, message } = (await machine.refused('wide')).status;
  expect(reason).toBe('TopologyAffinityError');
  expect(message).toMatch(
    /^Pod was rejected: Resources cannot be allocated with Topology locality \(container main: memory \(memory\): NUMA 0\+1/,
  );
  expect(await machine.why('wide')).toContain('Resources cannot be allocated with Topology locality');
  await machine.put('one', { cpu: '1', memory: '32Mi', 'hugepages-2Mi': '8Mi' });
  await machine.running('one');
  await machine.put('two', { cpu: '2', memory: '32Mi', 'hugepages-2Mi': '8Mi' });
  await machine.running('two');
  const hugePages = String(8 * 2 ** 20);
  expect(await machine.place('one')).toEqual({ cpus: '1', mems: '0', process: '1 0', hugePages });
  expect(await machine.place('two')).toEqual({ cpus: '2-3', mems: '1', process: '2-3 1', hugePages });
}, 900_000);

it('keeps them over kill -9, and the same file serves the next start', async () => {
  const before = await machine.state();
  expect(before.cpus).toEqual([[1], [2, 3]]);
  await machine.vm.end('SIGKILL');
  await machine.start(ALIGNED);
  for (const name of ['one', 'two']) expect((await machine.running(name)).status.containerStatuses?.[0]?.restartCount).toBe(0);
  expect(await machine.state()).toEqual(before);
  expect((await machine.place('two')).process).toBe('2-3 1');
}, 900_000);
