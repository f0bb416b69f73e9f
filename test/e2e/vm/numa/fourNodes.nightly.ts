/** A container that needs two of four NUMA nodes, on two that are near to each other; and a node that has memory alone. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NumaMachine } from './numaMachine.ts';

const machine = new NumaMachine({
  numa: ['0/640', '1/640', '2/640', '3/640', '-/256'],
  // 0 and 1 are near, and so are 2 and 3; memory alone is far from all.
  distances: ['0,1,12', '0,2,21', '0,3,21', '1,2,21', '1,3,21', '2,3,12', '0,4,28', '1,4,28', '2,4,28', '3,4,28'],
});

beforeAll(async () => {
  await machine.boot();
  await machine.start({
    topologyManagerPolicy: 'restricted',
    topologyManagerScope: 'pod',
    topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': 'true' },
  });
}, 900_000);
afterAll(() => machine.dispose());

it('gives CPUs of two near nodes, with memory of both', async () => {
  expect((await machine.nodes()).split('\n').at(-1)).toBe('4 cpus  distance 28 28 28 28 10');
  await machine.put('one', { cpu: '1', memory: '32Mi' });
  await machine.running('one');
  await machine.put('wide', { cpu: '2', memory: '700Mi' });
  await machine.running('wide');
  expect([await machine.place('one'), await machine.place('wide')]).toMatchObject([
    { cpus: '1', mems: '1', process: '1 1' },
    { cpus: '2-3', mems: '2-3', process: '2-3 2-3' },
  ]);
}, 900_000);
