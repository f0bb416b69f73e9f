/** Tests that are given what they run on: `it('is restarted', async ({ h }) => ...)` makes `h` for the test, and disposes of it after. */
import { it } from 'vitest';
import { cluster } from './cluster/clusterPods.ts';
import { virtualNode } from './virtualNode.ts';

export const itWith = <T extends AsyncDisposable>(make: () => Promise<T>) =>
  it.extend<{ h: T }>({
    async h({ task: _ }, use) {
      await using made = await make();
      await use(made);
    },
  });
export const itOnNode = itWith(virtualNode);
export const itOnCluster = itWith(cluster);
