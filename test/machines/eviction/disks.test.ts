/** Disks of images and layers: thresholds, order of pods and what is collected are those of the real kubelet. */
import { describe, expect, it } from 'vitest';
import { measure } from '../../../src/actors/reclaim/eviction/usage.ts';
import type { CriClient } from '../../../src/actors/runtime/client.ts';
import { isSignal, SIGNAL_FACTS, type Signal } from '../../../src/machines/config/evictionSignals.ts';
import { canonicalQuantity } from '../../../src/machines/kube/quantity.ts';
import { countedParts, type DiskLayout, garbageOf, layersElsewhere, withLayers } from '../../../src/machines/reclaim/eviction/disks.ts';
import { rank } from '../../../src/machines/reclaim/eviction/rank.ts';
import { type Amount, type Threshold, thresholdsOf } from '../../../src/machines/reclaim/eviction/thresholds.ts';
import { CRI_LABELS } from '../../../src/machines/wire/cri.ts';
import { memFs } from '../../integration/memFs.ts';
import { virtualTime } from '../../integration/virtualTime.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { container, NO_THRESHOLDS, pod } from '../pods/fixtures.ts';
import recorded from './disks136.json' with { type: 'json' };

const value = (a: Amount | null): string => (a === null ? '' : a.kind === 'percent' ? `${a.percent}%` : canonicalQuantity(a.text));
const GRACES: Readonly<Record<number, string>> = { 0: '0s', 30000: '30s', 60000: '1m0s', 90000: '1m30s', 120000: '2m0s' };
const line = (t: Threshold) => `${t.signal}<${value(t.value)} grace=${GRACES[t.graceMs]} reclaim=${value(t.minReclaim)}`;
const layoutOf = (name: string): DiskLayout => (name === 'imagefs' || name === 'split' ? name : 'single');
/** Where it is the file system of another signal, that signal says all. */
const ownSignals = (layout: DiskLayout, lines: readonly string[]) =>
  lines.filter((l) => layout === 'split' || !l.startsWith('containerfs'));

describe('thresholds are those of the kubelet 1.36', () => {
  it.each(recorded.thresholds.map((row) => [row.layout, JSON.stringify(row.evictionHard), row] as const))('%s %s', (name, _, row) => {
    const plain = (map: object | null): Record<string, string> => ({ ...map });
    const layout = layoutOf(name);
    const { thresholds, conflicting } = thresholdsOf({
      ...NO_THRESHOLDS,
      evictionHard: plain(row.evictionHard),
      evictionSoft: plain(row.evictionSoft),
      evictionSoftGracePeriod: plain(row.evictionSoftGracePeriod),
      evictionMinimumReclaim: plain(row.evictionMinimumReclaim),
    });
    expect(withLayers(thresholds, layout).map(line).sort()).toEqual(ownSignals(layout, row.thresholds));
    // The kubelet keeps the last of them alone.
    if (row.said === '') expect(conflicting).toEqual([]);
    else expect(conflicting).toContain(row.said);
  });
});

describe('what is collected before a pod has to go is what the kubelet 1.36 collects', () => {
  it.each(Object.entries(recorded.collected))('%s', (key, wanted) => {
    const [name = '', signal = ''] = key.split(' ');
    if (!isSignal(signal)) throw new Error(`no such signal: ${signal}`);
    const { containers, images } = garbageOf(layoutOf(name), signal);
    const collected = [...(containers ? ['containers'] : []), ...(images ? ['images'] : [])];
    // Kubernetes' documents say that dead containers go there too; their logs lie on that disk.
    const asDocumented = name === 'imagefs' && SIGNAL_FACTS[signal].reading === 'nodefs' ? ['containers'] : wanted;
    expect(collected).toEqual(asDocumented);
  });
});

describe('who is evicted first is whom the kubelet 1.36 evicts', () => {
  const pods = recorded.pods.map(({ Name, Priority, Request }) => ({
    ...pod({
      priority: Priority,
      containers: [container('c', Request === '' ? {} : { resources: { requests: { 'ephemeral-storage': Request } } })],
    }),
    metadata: { name: Name, namespace: 'ns', uid: Name },
  }));
  const usageOf = async (layout: DiskLayout, signal: Signal) => {
    const fs = memFs(virtualTime().clock);
    const put = (path: string, bytes: number) => {
      fs.makeDir(path);
      fs.put(`${path}/file`, 'x'.repeat(bytes));
    };
    for (const p of recorded.pods) {
      put(`/logs/ns_${p.Name}_${p.Name}/c`, p.Log);
      put(`/root/pods/${p.Name}/volumes/kubernetes.io~empty-dir/e`, p.Disk);
    }
    const stats = recorded.pods.map((p) => ({
      attributes: { id: p.Name, labels: { [CRI_LABELS.podUid]: p.Name, [CRI_LABELS.containerName]: 'c' } },
      writableLayer: { usedBytes: { value: String(p.Layer) }, inodesUsed: { value: String(p.Layer) } },
    }));
    const containers = recorded.pods.map((p) => ({ id: p.Name }));
    const cri = { read: async () => ({ stats, containers }) } as unknown as CriClient;
    const { signal: ending } = new AbortController();
    const parts = countedParts(layout, signal);
    const dirs = { rootDir: '/root', podLogsDir: '/logs' };
    return measure(pods, signal, {
      ports: fakePorts({ fs }),
      cri,
      ...dirs,
      parts,
      fromCri: false,
      podGroup: () => undefined,
      signal: ending,
    });
  };
  const available = Object.entries(recorded.ranked).filter(([key]) => key.endsWith('.available'));
  it.each(available)('%s', async (key, wanted) => {
    const [name = '', signal = ''] = key.split(' ');
    if (!isSignal(signal)) throw new Error(`no such signal: ${signal}`);
    const usage = await usageOf(layoutOf(name), signal);
    expect(rank(pods, usage, SIGNAL_FACTS[signal].resource).map((p) => p.metadata.name)).toEqual(wanted);
  });
});

it('limits of containers leave their layers out where those are on another disk', () => {
  expect((['single', 'imagefs', 'split', 'unseen', 'unknown'] as const).filter(layersElsewhere)).toEqual(['imagefs', 'split']);
});
