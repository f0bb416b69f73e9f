/** `startFleet`: options that are wrong are refused before anything is asked. */
import { describe, expect, it } from 'vitest';
import { type StartFleetOptions, startFleet } from '../src/index.ts';

const kubeconfig = '/nowhere/kubeconfig';

describe('startFleet', () => {
  it.each<[StartFleetOptions, string]>([
    [{ nodes: 0, kubeconfig }, 'startFleet: nodes must be a whole number from 1 to 20000, is 0'],
    [{ nodes: 1e9, kubeconfig }, 'startFleet: nodes must be a whole number from 1 to 20000, is 1000000000'],
    [{ nodes: 2, name: 'A B', kubeconfig }, 'startFleet: name "A B" must be lower-case letters'],
    [{ nodes: 2, prefix: '', seed: 1.5, kubeconfig }, 'startFleet: seed must be a whole number from 0 to 4294967295, is 1.5; prefix ""'],
    [{ nodes: 2, kubeconfig: '' }, 'startFleet: kubeconfig must be the path of a file'],
    [{ kubeconfig }, 'startFleet: give nodes or file'],
    [{ nodes: 2, kubeconfig }, `kubeconfig ${kubeconfig}: cannot be read`],
  ])('refuses %j', async (options, why) => {
    await expect(startFleet(options)).rejects.toThrow(why);
  });
});
