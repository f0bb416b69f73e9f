/** Operations on cgroups were not measured, although every dashboard of a kubelet asks for them. */
import { expect, it } from 'vitest';
import { measuredCgroups } from '../../../src/actors/allocation/cgroups/measured.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import type { Cgroups } from '../../../src/ports/machine/cgroups.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';

it('counts creations, updates and removals, also those that fail, and passes all else on', async () => {
  const [metrics, { clock }] = [createMetrics(), fakePorts()];
  class Port {
    #root = '/r';
    create = async () => {};
    apply = async () => {};
    async remove(): Promise<void> {
      throw new Error(`busy ${this.#root}`);
    }
    async list(path: string): Promise<string[]> {
      return [`${this.#root}${path}`];
    }
  }
  const port = measuredCgroups(new Port() as unknown as Cgroups, { metrics, clock });
  await port.create('/a');
  await port.apply('/a', []);
  await expect(port.remove('/a')).rejects.toThrow('busy /r');
  expect(await port.list('/a')).toEqual(['/r/a']);
  const counts = (await metrics.render()).match(/^kubelet_cgroup_manager_duration_seconds_count.*$/gm);
  expect(counts?.sort()).toEqual(
    ['create', 'destroy', 'update'].map((o) => `kubelet_cgroup_manager_duration_seconds_count{operation_type="${o}"} 1`),
  );
});
