/** A fleet file from a cluster: the nodes of the twin are as those of the cluster, and nothing that is secret or a name goes along. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { decodeFleet } from '../../src/file.ts';
import { startFleet } from '../../src/index.ts';
import { factsOf, fromInto, ODD } from './odd.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-from-'));
const from = (o: Parameters<typeof fromInto>[1]) => fromInto(join(dir, 'twin.yaml'), o);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const SECRETS = ['s3cret', 'ip-10-0', 'i-0abc', 'small-1', 'registry.example.com', 'payments', 'web-77', 'hunter2'];

async function nodesOf(file: string): Promise<KubeObject[]> {
  const fleet = await startFleet({ file, api: 'embedded' });
  try {
    await fleet.ready();
    return await fleet.objects({ kind: 'Node' });
  } finally {
    await fleet.stop();
  }
}

const at = (s: number): string => new Date(Date.UTC(2026, 10, 29, 10, 0, s)).toISOString().replace('.000', '');
const ended = (o: { from: number; to: number; exit: number; reason?: string }) => ({
  terminated: { startedAt: at(o.from), finishedAt: at(o.to), exitCode: o.exit, reason: o.reason ?? 'Error' },
});
function pod(name: string, container: object, o: { image: string; restartPolicy?: string; init?: object }) {
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'payments', annotations: { config: 'hunter2' } } },
    spec: {
      restartPolicy: o.restartPolicy ?? 'Always',
      containers: [{ name: 'main', image: o.image, env: [{ name: 'KEY', value: 's3cret' }], args: ['--password=hunter2'] }],
      ...(o.init === undefined ? {} : { initContainers: [{ name: 'first', image: o.image }] }),
    },
    status: {
      startTime: at(0),
      containerStatuses: [{ name: 'main', restartCount: 0, ...container }],
      ...(o.init === undefined ? {} : { initContainerStatuses: [{ name: 'first', restartCount: 0, ...o.init }] }),
    },
  };
}
const WEB = 'registry.example.com:5000/team/web:1.2@sha256:0123';
const PODS = [
  pod('web-77', { state: { running: { startedAt: at(4) } } }, { image: WEB }),
  pod('web-78', { state: { running: { startedAt: at(4) } } }, { image: `me:12/s3cret@${WEB}` }),
  pod(
    'web-79',
    { restartCount: 1, state: { running: { startedAt: at(90) } }, lastState: ended({ from: 10, to: 70, exit: 137, reason: 'OOMKilled' }) },
    { image: WEB },
  ),
  pod(
    'job-1',
    { state: ended({ from: 12, to: 42, exit: 0, reason: 'Completed' }) },
    {
      ...{ image: 'job:2', restartPolicy: 'Never' },
      init: { state: ended({ from: 1, to: 10, exit: 0, reason: 'Completed' }) },
    },
  ),
  // It has not ended yet, which does not mean that it never will.
  pod('job-2', { state: { running: { startedAt: at(2) } } }, { image: 'job:2', restartPolicy: 'Never' }),
];
const METRICS = [60, 100, 140].map((cpu, i) => ({
  ...{ apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetrics', metadata: { name: `web-${77 + i}`, namespace: 'payments' } },
  containers: [{ name: 'main', usage: { cpu: `${cpu}000000n`, memory: `${cpu}Mi` } }],
}));
const list = (items: readonly unknown[]) => ({ apiVersion: 'v1', items, kind: 'List', metadata: { resourceVersion: '' } });

describe('a fleet file from a cluster', { timeout: 60_000 }, () => {
  it('starts nodes that are as those of the cluster, with other names or the same ones', async () => {
    const fleet = await startFleet({ file: ODD, api: 'embedded' });
    try {
      await fleet.ready();
      const real = await fleet.objects({ kind: 'Node' });
      const { text, said } = await from({ kubeconfig: fleet.kubeconfig });
      const kept = await from({ kubeconfig: fleet.kubeconfig, keepNames: true });
      await fleet.stop();
      expect(said).toContain('5 nodes in 2 groups; 0 rules from 0 pods');
      expect(SECRETS.filter((one) => text.includes(one))).toEqual([]);
      const twins = await nodesOf(text);
      expect(twins.map(factsOf).sort()).toEqual(real.map(factsOf).sort());
      const whole = ({ metadata: { name, labels }, spec }: KubeObject) =>
        JSON.stringify([
          name,
          (spec as { providerID?: string }).providerID,
          Object.entries({ ...(labels as object), 'actorlet.dev/fleet': '' }).sort(),
        ]);
      expect((await nodesOf(kept.text)).map(whole).sort()).toEqual(real.map(whole).sort());
    } finally {
      await fleet.stop();
    }
  });

  it('says of dumps what containers of an image do, whatever else is in them, and in whichever form', async () => {
    const node = (name: string, o: object = {}) => ({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { pool: 'a' } } },
      spec: { taints: [{ key: 'only', value: name, effect: 'NoSchedule' }] },
      status: {
        ...{ capacity: { cpu: '2', memory: '4Gi', pods: '20' }, allocatable: { cpu: '1900m', memory: '3Gi', pods: '20' } },
        ...{ nodeInfo: { kubeletVersion: 'v1.36.2' }, images: [{ names: [WEB], sizeBytes: 7_000 }] },
        ...o,
      },
    });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'payments' }, data: { key: 's3cret' } };
    const rest = [...PODS, ...METRICS, secret, { kind: 'Pod' }, 7];
    const forms: Record<string, string> = {
      'one.yaml': stringify(list([node('a1b2'), node('c3d4'), ...rest])),
      'one.json': JSON.stringify(list([node('a1b2'), node('c3d4'), ...rest]), null, 4),
      'raw.json':
        JSON.stringify({ kind: 'NodeList', apiVersion: 'v1', items: [node('a1b2'), node('c3d4')] }) +
        rest.map((of) => JSON.stringify(of)).join('\n'),
      'documents.yml': [node('a1b2'), node('c3d4'), ...rest].map((of) => `---\n${stringify(of)}`).join(''),
      'indented.yaml': `apiVersion: v1\nkind: List\nitems:\n${stringify([node('a1b2'), node('c3d4'), ...rest]).replaceAll(/^/gm, '  ')}\nmetadata: {}\n`,
    };
    const texts = [];
    for (const [name, text] of Object.entries(forms)) {
      writeFileSync(join(dir, name), text);
      texts.push((await from({ dumps: [join(dir, name)] })).text);
    }
    // A folder, with a part of it twice.
    mkdirSync(join(dir, 'dump/payments'), { recursive: true });
    writeFileSync(join(dir, 'dump/nodes.json'), forms['one.json'] ?? '');
    writeFileSync(join(dir, 'dump/payments/pods.yaml'), stringify(list(PODS)));
    writeFileSync(join(dir, 'dump/payments/logs.txt'), 's3cret');
    texts.push((await from({ dumps: [join(dir, 'dump')] })).text);
    const [text = ''] = texts;
    for (const other of texts) expect(other).toBe(text);
    expect([...SECRETS, 'a1b2'].filter((one) => text.includes(one))).toEqual([]);
    const read = decodeFleet(text);
    expect(read).toMatchObject({ ok: true, value: { name: 'twin', groups: [{ name: 'node', count: 2, labels: { pool: 'a' }, cpus: 2 }] } });
    expect(read).toMatchObject({ value: { groups: [{ taints: [{ key: 'only', value: '', effect: 'NoSchedule' }] }] } });
    if (!read.ok) return;
    expect(read.value.images).toEqual([{ name: expect.arrayContaining(['web', 'web:*', '**/web@*']), sizeBytes: 7_000 }]);
    expect(read.value.pods.map(({ images, requirements: _r, about: _a, ...rule }) => ({ image: images?.[0], ...rule }))).toEqual([
      { image: 'job', which: 'init', weight: 1, start: { fromMs: 1_000, toMs: 1_000 }, run: { fromMs: 9_000, toMs: 9_000 } },
      { image: 'job', which: 'main', weight: 1, start: { fromMs: 2_000, toMs: 2_000 }, run: { fromMs: 30_000, toMs: 30_000 } },
      {
        image: 'web',
        which: 'every',
        weight: 2.5,
        start: { fromMs: 4_000, toMs: 4_000 },
        hollow: 'run=forever',
        usage: 'cpu=100m, memory=100Mi',
      },
      {
        ...{ image: 'web', which: 'every', weight: 0.5, start: { fromMs: 4_000, toMs: 4_000 }, run: { fromMs: 60_000, toMs: 60_000 } },
        ...{ exit: 137, hollow: 'reason=OOMKilled' },
      },
    ]);
  });

  it('leaves out what is hostile in an object, and says so in one line', async () => {
    const evil = '\u202e\u001b[31mx';
    const sane = {
      capacity: { cpu: '2', memory: '4Gi', pods: '20' },
      allocatable: {},
      nodeInfo: { kubeletVersion: 'v1.36.2', osImage: evil },
    };
    const objects = [
      { apiVersion: 'v1', kind: 'Node', metadata: { name: evil }, status: sane },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: '__proto__' }, status: sane },
      {
        ...{ apiVersion: 'v1', kind: 'Node' },
        metadata: { name: 'fine', labels: { [evil]: 'a', big: 'x'.repeat(100_000), __proto__: 'b', ok: 'yes', n: 7 } },
        spec: { taints: [{ key: evil, effect: 'NoSchedule' }, 7, { key: 'k', effect: 'Never' }], providerID: evil },
        status: {
          ...sane,
          capacity: { ...sane.capacity, [evil]: '1', 'example.com/gpu': '-1', 'hugepages-0Mi': '1' },
          images: [{ names: [evil], sizeBytes: 1 }],
        },
      },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'empty' }, status: { capacity: { cpu: '1e99', memory: {}, pods: [] } } },
      pod('p', { state: { running: { startedAt: evil } } }, { image: evil }),
      pod('q', { restartCount: 1e300, state: ended({ from: 9, to: 1, exit: -7, reason: evil }) }, { image: 'fine' }),
      { ...METRICS[0], containers: [{ name: 'main', usage: { cpu: evil, memory: null } }] },
    ];
    writeFileSync(join(dir, 'evil.json'), `${JSON.stringify(list(objects)).replace('"b"', '"b","x":{"constructor":1}')}{"kind":"Node"`);
    writeFileSync(
      join(dir, 'evil.yaml'),
      `items:\n- a: [\n- &a [*a]\n- apiVersion: v1\n  kind: Node\n  metadata: {name: ${'z'.repeat(5_000_000)}}\n`,
    );
    writeFileSync(join(dir, 'aliases.yaml'), Array.from({ length: 101 }, (_, i) => `a${i}: &a${i} 1\nb${i}: *a${i}\n`).join(''));
    const { text, said } = await from({ dumps: [join(dir, 'evil.json'), join(dir, 'evil.yaml'), join(dir, 'aliases.yaml')] });
    expect(text).not.toMatch(/[^\n -~]/);
    const read = decodeFleet(text);
    expect(read).toMatchObject({ ok: true, value: { groups: [{ count: 1, labels: { ok: 'yes' }, taints: [], providerID: '', cpus: 2 }] } });
    expect(read.ok && read.value.pods).toMatchObject([{ images: expect.arrayContaining(['fine']), exit: 137 }]);
    expect(said.split('\n').length).toBeLessThan(25);
    for (const why of [
      'Node "empty": it reports no cpu',
      'its name is none',
      'its JSON does not end',
      'longer than',
      'more than 100 aliases',
      'its osImage, its providerID, a label, a taint',
    ])
      expect(said).toContain(why);
  });

  it('has a rule for each shape of thousands of nodes, and is as long as a fleet file may be', async () => {
    const nodes = Array.from({ length: 2_000 }, (_, i) => ({
      ...{
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: `n-${i}`, labels: { id: `u${i}`, shape: `s${i % 1_200}`, zone: `z${i % 3}` } },
      },
      status: {
        capacity: { cpu: '4', memory: `${16_000_000 + (i % 7)}Ki`, pods: '110' },
        allocatable: {},
        nodeInfo: { kubeletVersion: 'v1.36.2' },
      },
    }));
    writeFileSync(join(dir, 'many.json'), JSON.stringify(list(nodes)));
    for (const keepNames of [false, true]) {
      const { text, said } = await from({ dumps: [join(dir, 'many.json')], keepNames });
      const read = decodeFleet(text);
      expect(read.ok && read.value.groups.reduce((sum, { count }) => sum + count, 0)).toBe(2_000);
      expect(said.includes('the label id is left out')).toBe(!keepNames);
      // Labels by which pods choose stay, also where there are too many for groups.
      expect(text).toContain('shape: s1199');
    }
    // Labels that name each node are many, and so would be the lines about them.
    const named = nodes.slice(0, 12).map(({ metadata: { name }, ...of }, i) => ({
      ...of,
      metadata: { name, labels: Object.fromEntries(Array.from({ length: 30 }, (_, key) => [`own-${key}`, `v${i}`])) },
    }));
    writeFileSync(join(dir, 'named.json'), JSON.stringify(list(named)));
    const { text, said } = await from({ dumps: [join(dir, 'named.json')] });
    expect(text).not.toContain('own-');
    expect(said).toContain('is left out: it names each node\n... and 10 more labels\n');
  });

  it('is refused without a node, and names the path that is none', async () => {
    writeFileSync(join(dir, 'pods.json'), JSON.stringify(list(PODS)));
    await expect(from({ dumps: [join(dir, 'pods.json')] })).rejects.toThrow('there is no node that a fleet can have');
    await expect(from({ dumps: [join(dir, 'nothing')] })).rejects.toThrow(`${join(dir, 'nothing')} cannot be read`);
    mkdirSync(join(dir, 'empty'));
    await expect(from({ dumps: [join(dir, 'empty')] })).rejects.toThrow('holds no file');
  });
});
