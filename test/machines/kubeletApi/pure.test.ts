/** Decisions of the kubelet's API: reviews, caches, TLS names, figures (boot-and-node 7.3, 7.4, 8.4, 8.5, 8.13). `golden/edge` has rights and statistics. */
import { describe, expect, it } from 'vitest';
import { accessAttributes, accessReviewSpec, forbiddenText } from '../../../src/machines/edge/https/attributes.ts';
import { expiringCache } from '../../../src/machines/edge/https/expiringCache.ts';
import { cipherList, tlsVersion } from '../../../src/machines/edge/https/tls.ts';
import { bootTimeMs, nodeMemory, nodeNetwork, taskCount, usedCpuNs } from '../../../src/machines/edge/stats/procStats.ts';
import { podStats, type RuntimeFigures } from '../../../src/machines/edge/stats/stats.ts';
import { CRI_LABELS } from '../../../src/machines/wire/cri.ts';
import type { CriContainerStats } from '../../../src/machines/wire/criStats.ts';

describe('rights asked for', () => {
  it('makes a review of the node by name, without empty fields', () => {
    const user = { name: 'ann', uid: '', groups: ['g'], extra: {} };
    expect(accessReviewSpec(user, { verb: 'get', subresource: 'stats' }, 'n1')).toEqual({
      user: 'ann',
      groups: ['g'],
      resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'stats', name: 'n1' },
    });
    expect(forbiddenText(user, accessAttributes('GET', '/pods', { fineGrained: true }))).toBe(
      'Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[pods proxy])',
    );
  });
});

describe('a cache that expires', () => {
  it('keeps an entry until its time is over, and nothing for no time', () => {
    const cache = expiringCache<string>(10);
    cache.set('a', 'x', { nowMs: 0, ttlMs: 100 });
    cache.set('b', 'y', { nowMs: 0, ttlMs: 0 });
    expect([cache.get('a', 99), cache.get('b', 0), cache.get('a', 100), cache.get('a', 50)]).toEqual([
      'x',
      undefined,
      undefined,
      undefined,
    ]);
    expect(cache.size).toBe(0);
  });
  it('drops what was not used for longest when it is full', () => {
    const cache = expiringCache<number>(2);
    cache.set('a', 1, { nowMs: 0, ttlMs: 1000 });
    cache.set('b', 2, { nowMs: 0, ttlMs: 1000 });
    cache.get('a', 1);
    cache.set('c', 3, { nowMs: 1, ttlMs: 1000 });
    expect([cache.get('a', 2), cache.get('b', 2), cache.get('c', 2), cache.size]).toEqual([1, undefined, 3, 2]);
  });
});

describe('TLS settings', () => {
  it('are at least TLS 1.2 unless an older version is named', () => {
    expect(['', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13', 'nonsense'].map(tlsVersion)).toEqual([
      ...['TLSv1.2', 'TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3', 'TLSv1.2'],
    ]);
  });
  it('translate suites and keep their order; those of TLS 1.3 cannot be chosen', () => {
    expect(cipherList(['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'TLS_RSA_WITH_AES_128_CBC_SHA'])).toBe(
      'ECDHE-RSA-AES256-GCM-SHA384:AES128-SHA',
    );
    expect(cipherList(['TLS_AES_128_GCM_SHA256'])).toBe(cipherList([]));
    expect(cipherList([])).not.toMatch(/CBC|SHA:|RC4|3DES|DES-/);
  });
});

const PROC = {
  stat: 'cpu  100 1 50 9000 10 2 3 4 0 0\ncpu0 1 1 1 1\nbtime 1700000000\nprocesses 5\n',
  meminfo: 'MemTotal:  1000 kB\nMemFree:  400 kB\nInactive:  9 kB\nInactive(file):  100 kB\nAnonPages:  300 kB\n',
  vmstat: 'pgfault 77\npgmajfault 3\n',
};
describe("the node's own figures", () => {
  it('count work, not idleness', () => {
    expect(usedCpuNs(PROC.stat)).toBe(160n * 10_000_000n);
    expect(usedCpuNs('nothing')).toBeUndefined();
    expect(bootTimeMs(PROC.stat)).toBe(1_700_000_000_000);
  });
  it('leave file pages that are easily reclaimed out of the working set', () => {
    expect(nodeMemory(PROC, 't')).toEqual({
      time: 't',
      usageBytes: 600 * 1024,
      workingSetBytes: 500 * 1024,
      availableBytes: 500 * 1024,
      rssBytes: 300 * 1024,
      pageFaults: 77,
      majorPageFaults: 3,
    });
  });
  it('name every interface but the loopback and the ends of those of pods, and eth0 on top', () => {
    const text =
      'Inter-| x\n face |y\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 1 2 0 0 0 0 0 20 1 3 0 0 0 0 0\nveth1a2b: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n';
    const eth0 = { name: 'eth0', rxBytes: 10, rxErrors: 2, txBytes: 20, txErrors: 3 };
    expect(nodeNetwork(text, 't')).toEqual({ time: 't', ...eth0, interfaces: [eth0] });
    expect(nodeNetwork('', 't')).toEqual({ time: 't', name: '', interfaces: [] });
  });
  it('count tasks', () => expect(taskCount('0.1 0.2 0.3 2/345 999\n')).toBe(345));
});

const SECOND = 1_700_000_000_000_000_000n;
function stats(uid: string, container: string, more: Partial<CriContainerStats> = {}): CriContainerStats {
  const labels = { [CRI_LABELS.podUid]: uid, [CRI_LABELS.containerName]: container };
  return {
    attributes: { id: `${uid}-${container}`, metadata: null, labels, annotations: {} },
    cpu: { timestamp: String(SECOND), usageCoreNanoSeconds: { value: '1500000000' }, usageNanoCores: null },
    memory: {
      timestamp: String(SECOND),
      workingSetBytes: { value: '4096' },
      availableBytes: null,
      usageBytes: { value: '0' },
      rssBytes: null,
      pageFaults: null,
      majorPageFaults: null,
    },
    writableLayer: { timestamp: String(SECOND), fsId: null, usedBytes: { value: '10' }, inodesUsed: { value: '2' } },
    ...more,
  };
}
const figures = (more: Partial<RuntimeFigures> = {}): RuntimeFigures => ({
  ...{ volumes: new Map(), hostsBytes: new Map() },
  sandboxes: [{ ref: { uid: 'u', name: 'web', namespace: 'ns' }, createdAtNs: SECOND }],
  startedAtNs: new Map([
    ['u-a', SECOND],
    ['u-b', SECOND],
  ]),
  stats: [stats('u', 'a'), stats('u', 'b')],
  rates: new Map([['u-a', 7]]),
  groups: new Map(),
  logs: () => ({ bytes: 5, files: 1 }),
  nodeFs: { bytesTotal: 100, bytesAvailable: 60, inodesTotal: 10, inodesFree: 4 },
  layerFs: undefined,
  noSwap: false,
  brief: false,
  ...more,
});

describe('pod statistics', () => {
  it('count the file at /etc/hosts as storage of the pod, as the reference does', () => {
    const [pod] = podStats(figures({ hostsBytes: new Map([['u', 4096]]) }));
    expect(pod).toMatchObject({ 'ephemeral-storage': { usedBytes: 30 + 4096, inodesUsed: 7 } });
  });
});
