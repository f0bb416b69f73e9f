/** Decisions of the kubelet's API: rights asked for, caches, TLS names, statistics (boot-and-node 7.3, 7.4, 8.4, 8.5, 8.13). */
import { describe, expect, it } from 'vitest';
import { accessAttributes, accessReviewSpec, forbiddenText } from '../../../src/machines/edge/https/attributes.ts';
import { expiringCache } from '../../../src/machines/edge/https/expiringCache.ts';
import { cipherList, tlsVersion } from '../../../src/machines/edge/https/tls.ts';
import { bootTimeMs, nodeMemory, nodeNetwork, taskCount, usedCpuNs } from '../../../src/machines/edge/stats/procStats.ts';
import { resourceMetrics } from '../../../src/machines/edge/stats/resourceMetrics.ts';
import { cpuRate, podStats, type RuntimeFigures } from '../../../src/machines/edge/stats/stats.ts';
import { CRI_LABELS } from '../../../src/machines/wire/cri.ts';
import type { CriContainerStats } from '../../../src/machines/wire/criStats.ts';

describe('rights asked for', () => {
  const asked = (method: string, path: string, fineGrained = true) =>
    accessAttributes(method, path, { fineGrained }).map((a) => `${a.verb} ${a.subresource}`);
  it.each([
    ['GET', '/stats/summary', 'get stats'],
    ['GET', '/stats', 'get stats'],
    ['POST', '/stats/summary', 'create stats'],
    ['GET', '/metrics', 'get metrics'],
    ['GET', '/metrics/resource', 'get metrics'],
    ['GET', '/logs/syslog', 'get log'],
    ['POST', '/checkpoint/a/b/c', 'create checkpoint'],
    ['GET', '/exec/a/b/c', 'get proxy'],
    ['POST', '/exec/a/b/c', 'create proxy'],
    ['POST', '/run/a/b/c', 'create proxy'],
    ['POST', '/attach/a/b/c', 'create proxy'],
    ['GET', '/portForward/a/b', 'get proxy'],
    ['GET', '/containerLogs/a/b/c', 'get proxy'],
    ['GET', '/statez', 'get proxy'],
    ['PUT', '/debug/flags/v', 'update proxy'],
    // Only at a border of the path (trap 25).
    ['GET', '/statsx', 'get proxy'],
    // Methods without a verb (trap 24).
    ['HEAD', '/metrics', ' metrics'],
    ['OPTIONS', '/exec/a/b/c', ' proxy'],
  ])('%s %s is %s', (method, path, expected) => {
    expect(asked(method, path)).toEqual([expected]);
  });
  it.each([
    ['/pods', 'pods'],
    ['/runningpods', 'pods'],
    ['/healthz/ping', 'healthz'],
    ['/configz', 'configz'],
  ])('%s is granted alone or with everything, without the gate with everything only', (path, subresource) => {
    expect(asked('GET', path)).toEqual([`get ${subresource}`, 'get proxy']);
    expect(asked('GET', path, false)).toEqual(['get proxy']);
  });
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
  it('are a rate between two samples, and none where time or counter went back', () => {
    const at = (s: bigint, used: bigint) => ({ atNs: s * 1_000_000_000n, usedNs: used });
    expect(cpuRate(at(0n, 0n), at(2n, 1_000_000_000n))).toBe(500_000_000);
    expect([cpuRate(undefined, at(1n, 1n)), cpuRate(at(1n, 1n), at(1n, 2n)), cpuRate(at(0n, 5n), at(1n, 2n))]).toEqual([
      ...[undefined, undefined, undefined],
    ]);
  });
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
  it('sum up containers, and leave out a figure that one of them does not have', () => {
    const [pod] = podStats(figures());
    expect(pod).toMatchObject({
      podRef: { uid: 'u', name: 'web', namespace: 'ns' },
      startTime: '2023-11-14T22:13:20.000000000Z',
      cpu: { usageCoreNanoSeconds: 3_000_000_000 },
      memory: { workingSetBytes: 8192 },
      'ephemeral-storage': { usedBytes: 30, inodesUsed: 6, capacityBytes: 100, availableBytes: 60 },
    });
    expect(pod?.cpu).not.toHaveProperty('usageNanoCores');
    expect(pod?.containers[0]).toMatchObject({ name: 'a', cpu: { usageNanoCores: 7 }, rootfs: { usedBytes: 10 }, logs: { usedBytes: 5 } });
    expect(pod?.containers[0]?.memory).not.toHaveProperty('usageBytes');
  });
  it('count the file at /etc/hosts as storage of the pod, as the reference does', () => {
    const [pod] = podStats(figures({ hostsBytes: new Map([['u', 4096]]) }));
    expect(pod).toMatchObject({ 'ephemeral-storage': { usedBytes: 30 + 4096, inodesUsed: 7 } });
  });
  it('are processor and memory only when that is all that was asked for', () => {
    const [pod] = podStats(figures({ brief: true }));
    expect(Object.keys(pod ?? {})).toEqual(['podRef', 'startTime', 'containers', 'cpu', 'memory']);
    expect(Object.keys(pod?.containers[0] ?? {})).toEqual(['name', 'startTime', 'cpu', 'memory']);
  });
  it('do not show containers that do not run, nor pods without one that does, nor without a ready sandbox (resources trap 41)', () => {
    const [pod] = podStats(figures({ startedAtNs: new Map([['u-b', SECOND]]) }));
    expect(pod?.containers.map((c) => c.name)).toEqual(['b']);
    expect(podStats(figures({ startedAtNs: new Map() }))).toEqual([]);
    expect(podStats(figures({ sandboxes: [] }))).toEqual([]);
  });
  it('say nothing of what is available to a container without a limit (resources trap 42)', () => {
    const memory = (availableBytes: { value: string } | null) => ({ ...(stats('u', 'a').memory as object), availableBytes });
    const of = (availableBytes: { value: string } | null) => {
      const a = stats('u', 'a', { memory: memory(availableBytes) as CriContainerStats['memory'] });
      return podStats(figures({ stats: [a, stats('u', 'b')] }))[0];
    };
    for (const none of [null, { value: '0' }]) {
      expect(of(none)?.containers[0]?.memory).not.toHaveProperty('availableBytes');
      expect(of(none)?.memory).not.toHaveProperty('availableBytes');
    }
    // One container has a limit and the other has none: nobody can say what is left to the pod.
    expect(of({ value: '77' })?.containers[0]?.memory?.availableBytes).toBe(77);
    expect(of({ value: '77' })?.memory).not.toHaveProperty('availableBytes');
  });
});

describe('/metrics/resource', () => {
  it('is Prometheus text with the time of each sample', () => {
    const node = { nodeName: 'n', startTime: null, cpu: { time: '2023-11-14T22:13:20Z', usageCoreNanoSeconds: 2_500_000_000 } };
    const text = resourceMetrics({ node, pods: podStats(figures({ brief: true, stats: [stats('u', 'a')] })) });
    expect(text.split('\n').filter((l) => !l.startsWith('#'))).toEqual([
      'container_cpu_usage_seconds_total{container="a",namespace="ns",pod="web"} 1.5 1700000000000',
      'container_memory_working_set_bytes{container="a",namespace="ns",pod="web"} 4096 1700000000000',
      'container_start_time_seconds{container="a",namespace="ns",pod="web"} 1700000000',
      'node_cpu_usage_seconds_total 2.5 1700000000000',
      'pod_cpu_usage_seconds_total{namespace="ns",pod="web"} 1.5 1700000000000',
      'pod_memory_working_set_bytes{namespace="ns",pod="web"} 4096 1700000000000',
      'resource_scrape_error 0',
      '',
    ]);
  });
  it('tells nothing but the error when there are no figures', () => {
    expect(
      resourceMetrics(null)
        .split('\n')
        .filter((l) => !l.startsWith('#')),
    ).toEqual(['resource_scrape_error 1', '']);
  });
});
