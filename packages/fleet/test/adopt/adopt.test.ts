/** Nodes that an autoscaler makes: they get kubelets of the fleet, or do not, as its file says. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { describe, expect, it } from 'vitest';
import { Adoption, type AdoptionOptions } from '../../src/adopt/adoption.ts';
import { Adopters } from '../../src/adopt/choice.ts';
import { decodeFleet } from '../../src/file.ts';
import { type RunningFleet, startFleet } from '../../src/index.ts';
import { NODES_MAX } from '../../src/spec/table.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: cloud }\nspec:\n';
const TYPE = 'node.kubernetes.io/instance-type';
const FILE = `${HEAD}
  groups:
    - { name: m5.large, count: 0, capacity: { cpu: 2, memory: 8Gi, pods: 29 }, allocatable: { cpu: 1930m } }
    - { name: own, count: 1 }
  adopt:
    - name: karpenter
      nodes: { selector: karpenter.sh/nodepool, providerIDs: ['kwok://**'] }
      registration: 20ms
      refuse:
        - { order: 2, as: dead }
        - { order: [3], as: noCapacity }
`;
const node = (name: string, o: { type?: string; status?: object; labels?: object } = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Node' },
  metadata: { name, labels: { 'karpenter.sh/nodepool': 'a', [TYPE]: o.type ?? 'm5.large', ...o.labels } },
  spec: { providerID: `kwok://${name}`, taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] },
  ...(o.status === undefined ? {} : { status: o.status }),
});
type Status = { capacity?: Record<string, string>; allocatable?: Record<string, string>; nodeInfo?: { machineID: string } };
const statusOf = (of: KubeObject | undefined): Status => of?.status ?? {};
const namesOf = (fleet: RunningFleet) => async () => (await fleet.objects({ kind: 'Node' })).map((n) => n.metadata.name).sort();
const ready = async (fleet: RunningFleet, name: string): Promise<KubeObject | undefined> => {
  await fleet.expect({ objects: { kind: 'Node', name }, condition: 'Ready', atLeast: 1 });
  return (await fleet.objects({ kind: 'Node', name }))[0];
};

describe('nodes that an autoscaler makes', { timeout: 60_000 }, () => {
  it('get a kubelet of their shape, keep what they were made with, and take it away when they are deleted', async () => {
    const fleet = await startFleet({ file: FILE, api: 'embedded' });
    try {
      await fleet.apply(node('a'));
      const there = await ready(fleet, 'a');
      expect(statusOf(there)).toMatchObject({ capacity: { cpu: '2', memory: '8Gi', pods: '29' }, allocatable: { cpu: '1930m' } });
      expect(there).toMatchObject({
        spec: { providerID: 'kwok://a', taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] },
      });
      expect(fleet.nodes().map(({ name, group }) => `${group}/${name}`)).toEqual(['own/own-0', 'karpenter/a']);
      // Dead on arrival, and without capacity.
      await fleet.apply(node('b'));
      await fleet.apply(node('c'));
      await expect.poll(namesOf(fleet)).toEqual(['a', 'b', 'own-0']);
      expect(await fleet.objects({ kind: 'Event' })).toContainEqual(expect.objectContaining({ reason: 'NoCapacity' }));
      // Of no shape of the file: as its status says, and of the architecture that its labels say.
      const capacity = { cpu: '3', memory: '5Gi', pods: '7', 'example.com/gpu': '2' };
      const odd = {
        type: 'odd',
        labels: { 'kubernetes.io/arch': 'arm64' },
        status: {
          ...{ capacity, allocatable: { ...capacity, cpu: '2500m' } },
          nodeInfo: { kernelVersion: '6.1.0-cloud', osImage: 'Cloud Linux 9', architecture: 'amd64', operatingSystem: 'linux' },
        },
      };
      await fleet.apply(node('d', odd));
      // The kubelet forgets what others counted, and then it is counted anew.
      const ofD = async () => statusOf(await ready(fleet, 'd'));
      const nodeInfo = { architecture: 'arm64', kernelVersion: '6.1.0-cloud', osImage: 'Cloud Linux 9' };
      await expect.poll(ofD).toMatchObject({ capacity, allocatable: { cpu: '2500m' }, nodeInfo });
      await fleet.expect({ objects: { kind: 'Node', name: 'b' }, condition: 'Ready', atMost: 0 });
      // Nobody else's.
      await fleet.apply({ ...node('e'), spec: { providerID: 'aws:///e' } });
      await fleet.remove(node('a'));
      await expect.poll(() => fleet.nodes().map(({ name }) => name)).toEqual(['own-0', 'd']);
      // A node of the same name is another one.
      await fleet.remove(node('d'));
      await fleet.apply(node('d'));
      expect(statusOf(await ready(fleet, 'd')).capacity).toMatchObject({ cpu: '2' });
      expect(await namesOf(fleet)()).toEqual(['b', 'd', 'e', 'own-0']);
    } finally {
      await fleet.stop();
    }
  });

  it('are no more than a fleet may have, also while they are still coming', async () => {
    const read = decodeFleet(FILE);
    if (!read.ok) throw new Error(JSON.stringify(read.errors));
    let [sent, drawn, members] = [0, 0, 0];
    const rng = {
      next: () => {
        drawn += 1;
        return 0.5;
      },
    };
    const items = Array.from({ length: NODES_MAX + 2 }, (_, i) => ({
      ...node(`n${i}`),
      metadata: { ...node(`n${i}`).metadata, uid: `${i}` },
    }));
    const said: string[] = [];
    const adoption = new Adoption({
      adopters: new Adopters(read.value.adopt, { groups: read.value.groups, rngOf: () => rng }),
      kube: { request: async () => ({ ok: true, body: { items, metadata: {} } }) },
      log: { warn: (_: object, message: string) => said.push(message) },
      registry: () => ({
        send: async () => {
          sent += 1;
        },
      }),
      members: { has: () => false, isOwn: () => false, count: () => members },
      isOurs: () => true,
      machineId: () => '',
    } as unknown as AdoptionOptions);
    const { signal } = new AbortController();
    expect(await adoption.nodes.list(signal)).toEqual({ failure: null });
    const before = drawn;
    // Each of its events comes by again.
    expect(await adoption.nodes.list(signal)).toEqual({ failure: null });
    expect([sent, drawn - before, said]).toEqual([NODES_MAX, 0, [`${NODES_MAX} nodes are adopted: others are not`]]);
    members = NODES_MAX;
    await expect(adoption.come({ name: 'n0' } as Parameters<Adoption['come']>[0], signal)).rejects.toThrow('it waits until one goes');
  });

  it('are not adopted by an id that is longer than any', () => {
    const adopters = new Adopters([{ name: 'a', providerIDs: ['**a**a**a**b'], registration: { fromMs: 0, toMs: 0 }, refuse: [] }], {
      groups: [],
      rngOf: () => ({ next: () => 0.5 }),
    });
    const chosen = (providerID: string) => adopters.choose({ ...node('n'), spec: { providerID } }, false)?.providerID;
    expect(chosen(`${'a'.repeat(100)}b`)).toBe(`${'a'.repeat(100)}b`);
    expect(chosen('a'.repeat(100_000))).toBeUndefined();
  });

  it.each([
    ['adopt: [{ name: a }]', 'spec.adopt[0].nodes: is missing'],
    ['adopt: [{ name: a, nodes: {} }]', 'spec.adopt[0].nodes: is empty'],
    ["adopt: [{ name: a, nodes: { selector: 'a b' } }]", 'spec.adopt[0].nodes.selector: cannot be read'],
    ['adopt: [{ name: a, nodes: { names: x }, group: g }]', 'there is no group "g"'],
    ['adopt: [{ name: a, nodes: { names: x }, refuse: [{ as: dead }] }]', 'needs share or order'],
    ['adopt: [{ name: a, nodes: { names: x }, refuse: [{ as: late, share: 1 }] }]', 'spec.adopt[0].refuse[0].by: is missing'],
    ['adopt: [{ name: a, nodes: { names: x }, refuse: [{ as: dead, share: 0.7 }, { as: noCapacity, share: 0.6 }] }]', 'has shares of'],
    ['adopt: [{ name: a, nodes: { names: x }, refuse: [{ as: dead, order: [0, a] }] }]', 'refuse[0].order[1]: must be a whole number'],
    ['adopt: [{ name: a, nodes: { names: x } }, { name: a, nodes: { names: y } }]', 'is the name of a group, or of another entry'],
    ['groups: [{ name: a, count: 1 }]\n  adopt: [{ name: a, nodes: { names: x } }]', 'is the name of a group'],
  ])('are refused where the file says %s', (spec, why) => {
    const read = decodeFleet(`${HEAD}  ${spec}\n`);
    expect(read.ok ? '' : read.errors.map((e) => `${e.field}: ${e.message}`).join('\n')).toContain(why);
  });
});
