/** `startFleet`: options that are wrong are refused before anything is asked, and what a test does with a fleet of its own. */
import { existsSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type FleetExpectation, type StartFleetOptions, startFleet } from '../src/index.ts';

const kubeconfig = '/nowhere/kubeconfig';

describe('startFleet', () => {
  it.each<[StartFleetOptions, string]>([
    [{ nodes: 0, kubeconfig }, 'startFleet: nodes must be a whole number from 1 to 20000, is 0'],
    [{ nodes: 1e9, kubeconfig }, 'startFleet: nodes must be a whole number from 1 to 20000, is 1000000000'],
    [{ nodes: 2, name: 'A B', kubeconfig }, 'startFleet: name "A B" must be lower-case letters'],
    [{ nodes: 2, prefix: '', seed: 1.5, kubeconfig }, 'startFleet: seed must be a whole number from 0 to 4294967295, is 1.5; prefix ""'],
    [{ nodes: 2, kubeconfig: '' }, "startFleet: api must be 'embedded', 'local' or the path of a kubeconfig"],
    [{ nodes: 2 }, "startFleet: api must be 'embedded', 'local' or the path of a kubeconfig"],
    [{ nodes: 2, api: 'local', kubeconfig }, 'startFleet: api stands beside kubeconfig'],
    [{ nodes: 2, api: 'embedded', controlPlane: { port: 1 } }, "startFleet: controlPlane belongs to api: 'local'"],
    [{ kubeconfig }, 'startFleet: give nodes or file'],
    [{ nodes: 2, kubeconfig }, `kubeconfig ${kubeconfig}: cannot be read`],
    [{ nodes: 2, api: kubeconfig }, `kubeconfig ${kubeconfig}: cannot be read`],
  ])('refuses %j', async (options, why) => {
    await expect(startFleet(options)).rejects.toThrow(why);
  });
});

describe('a fleet of a test', () => {
  const pods = (count: number) => ({ objects: { kind: 'Pod', selector: 'app=web' }, condition: 'Ready', atLeast: count });
  const pod = (name: string): object => ({
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name, labels: { app: 'web' } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image: 'web' }] },
  });

  it('takes manifests and faults, and waits for what is expected', async () => {
    const fleet = await startFleet({ nodes: 3, api: 'embedded' });
    try {
      await fleet.ready();
      expect(statSync(fleet.kubeconfig).mode & 0o777).toBe(0o600);
      await fleet.apply([pod('a'), pod('b')]);
      await fleet.apply(JSON.stringify(pod('c')));
      expect(await fleet.expect(pods(3))).toBe(3);
      expect(await fleet.expect({ calls: 'POST nodes', atMost: 3 })).toBe(3);
      await fleet.inject({
        ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name: 'slow' } },
        spec: { faults: [{ kind: 'cri', action: 'delay', delay: '30s', select: { methods: ['StartContainer'] } }] },
      });
      await fleet.apply(pod('late'));
      await expect(fleet.expect({ ...pods(4), within: '500ms' })).rejects.toThrow(
        /^not met after 0\.\d s: at least 4 Pod app=web Ready=True; there is 3$/,
      );
      await fleet.switchOff(['fleet-0']);
      expect(await fleet.expect({ nodesReady: 2, atMost: 2 })).toBe(2);
      await fleet.switchOn(['fleet-0']);
      await fleet.expect({ nodesReady: 3 });
      await fleet.remove(pod('a'));
      await fleet.expect({ objects: { kind: 'Pod', name: 'a' }, atMost: 0 });
      expect((await fleet.objects({ kind: 'Pod' })).map((o) => o.metadata.name).sort()).toEqual(['b', 'c', 'late']);
    } finally {
      await fleet.stop();
    }
    expect(existsSync(fleet.kubeconfig)).toBe(false);
  });

  it('says what is wrong with what it is given', async () => {
    const fleet = await startFleet({ nodes: 1, api: 'embedded' });
    try {
      const wrong: [() => Promise<unknown>, string][] = [
        [() => fleet.apply('a: ['), 'the manifest is not valid YAML'],
        [() => fleet.apply({ kind: 'Pod' }), 'the manifest has an object without apiVersion, kind or metadata.name'],
        [() => fleet.apply({ ...pod('x'), apiVersion: 'example.com/v1', kind: 'Website' }), 'has no kind Website of example.com/v1'],
        [() => fleet.inject({ kind: 'FaultScenario' }), 'scenario:'],
        [() => fleet.inject({}, ['stranger']), 'this fleet has no node stranger'],
        [() => fleet.restart(['stranger']), 'this fleet has no node stranger'],
        [() => fleet.expect({} as FleetExpectation), 'expect: needs one of nodesReady'],
        [() => fleet.expect({ objects: { kind: 'Pod' } }), 'expect: needs atLeast or atMost'],
        [() => fleet.expect({ nodesReady: 1, within: 'soon' }), 'expect: within '],
        [
          () => fleet.expect({ objects: { apiVersion: 'a/v1', kind: 'X' }, atLeast: 1, within: '100ms' }),
          'it could not be seen (this API server has no kind X',
        ],
      ];
      for (const [act, why] of wrong) await expect(act()).rejects.toThrow(why);
    } finally {
      await fleet.stop();
    }
  });
});
