/** `topologyManagerPolicyOptions`, in the kubelet's words: what an option may be, and on which machine a policy can be. */
import { describe, expect, it } from 'vitest';
import { topologyPlan } from '../../../src/machines/allocation/coordinator/topologyPolicy.ts';
import type { NumaNode } from '../../../src/machines/allocation/numaNode.ts';
import type { KubeletConfiguration, NodeConfig } from '../../../src/machines/config/config.ts';

const machine = (count: number, distances: NumaNode['distances'] = [10]): NumaNode[] =>
  Array.from({ length: count }, (_, id) => ({ id, memoryBytes: 2 ** 30, hugePages: [], distances }));
function plan(options: Record<string, string>, nodes = machine(2), more: Partial<KubeletConfiguration> = {}) {
  const config = { topologyManagerPolicy: 'restricted', topologyManagerScope: 'pod', topologyManagerPolicyOptions: options, ...more };
  return topologyPlan({ config } as unknown as NodeConfig, nodes);
}
const CLOSEST = 'prefer-closest-numa-nodes';
const MAX = 'max-allowable-numa-nodes';

describe('options of the topology manager', () => {
  it.each([
    [{ near: 'true' }, 'unknown Topology Manager Policy option: "near"'],
    [{ [CLOSEST]: 'yes' }, `bad value for option "${CLOSEST}": strconv.ParseBool: parsing "yes": invalid syntax`],
    [{ [MAX]: 'many' }, `unable to convert policy option to integer "${MAX}": strconv.Atoi: parsing "many": invalid syntax`],
    [{ [MAX]: '7' }, `the minimum value of "${MAX}" should not be less than 8`],
  ])('%j end the start', (options, why) => {
    expect(() => plan(options)).toThrow(`topologyManagerPolicyOptions: ${why}`);
  });

  it('let a policy be on a machine of more than 8 NUMA nodes, which none is without', () => {
    expect(plan({}, machine(8))?.map.nodes).toHaveLength(8);
    expect(() => plan({}, machine(9))).toThrow('topologyManagerPolicy: unsupported on machines with more than 8 NUMA Nodes');
    expect(plan({ [MAX]: '9' }, machine(9))?.map.nodes).toHaveLength(9);
  });

  it('need distances to prefer near nodes, and nothing under policy none', () => {
    expect(plan({ [CLOSEST]: 'true' }, machine(2, [10, 21]))?.map.distances).toEqual(
      new Map([
        [0, [10, 21]],
        [1, [10, 21]],
      ]),
    );
    expect(() => plan({ [CLOSEST]: '1' }, machine(2, null))).toThrow('error getting NUMA distances from cadvisor');
    expect(plan({ [CLOSEST]: 'false' }, machine(2, null))?.map.distances).toBeNull();
    expect(plan({ near: 'x' }, machine(9, null), { topologyManagerPolicy: 'none' })).toBeNull();
  });
});
