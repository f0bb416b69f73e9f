/** What volumes use, as the API tells it: among a pod's figures, and of claims in /metrics. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { podsView } from '../../../../src/machines/pods/manager/messages.ts';
import { volumesView } from '../../../../src/machines/services/volumes/messages.ts';
import { record, viewOfPods } from '../../metrics/samples.ts';
import { criContainer, sandbox, start, uid, WAIT_MS, web } from '../node.ts';

const CLAIM = 'kubernetes.io~local-volume';
async function withVolumes(periodMs = 60_000) {
  const s = await start({ volumeStats: { periodMs, health: false } });
  s.cri.ListContainerStats = () => ({
    stats: [
      {
        attributes: { id: 'id-main', metadata: { name: 'main', attempt: 0 }, labels: criContainer('main').labels, annotations: {} },
        cpu: null,
        memory: null,
        writableLayer: null,
      },
    ],
  });
  s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
  s.cri.ListPodSandbox = () => ({ items: [sandbox] });
  s.cri.ImageFsInfo = () => ({
    imageFilesystems: [{ timestamp: '1700000000000000000', fsId: { mountpoint: '/' }, usedBytes: null, inodesUsed: null }],
  });
  for (const [plugin, name] of [
    ['kubernetes.io~empty-dir', 'scratch'],
    [CLAIM, 'disk'],
  ] as const) {
    const at = join(s.lab.dir, 'pods', uid, 'volumes', plugin, name);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'file'), 'x'.repeat(8192));
  }
  const volumes = [
    { name: 'scratch', emptyDir: {} },
    { name: 'disk', persistentVolumeClaim: { claimName: 'data' } },
  ];
  s.registry.set(podsView, viewOfPods([record({ ...web, spec: { ...web.spec, volumes } })]));
  const summary = (plugin: string, name: string) => ({ plugin, name, state: 'mounted', message: '', sinceMs: 0, servedBy: plugin });
  s.registry.set(volumesView, new Map([[uid, [summary('kubernetes.io~empty-dir', 'scratch'), summary(CLAIM, 'disk')]]]));
  const podStats = async () => JSON.parse((await s.ask('/stats/summary')).body).pods[0];
  return { ...s, podStats };
}
const SERIES = 'kubelet_volume_stats_capacity_bytes{namespace="default",persistentvolumeclaim="data"}';

it('is a list among the figures of a pod, and what it wrote itself is in its use of the disk', async () => {
  const s = await withVolumes();
  const stats = await vi.waitFor(async () => {
    const found = await s.podStats();
    expect(found.volume).toHaveLength(2);
    return found;
  }, WAIT_MS);
  const [disk, scratch] = stats.volume.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1));
  expect(scratch).toMatchObject({ name: 'scratch', inodesUsed: 2, time: expect.stringMatching(/Z$/) });
  expect(scratch).not.toHaveProperty('pvcRef');
  expect(disk).toMatchObject({ name: 'disk', pvcRef: { name: 'data', namespace: 'default' } });
  expect(disk.capacityBytes).toBeGreaterThan(disk.availableBytes);
  // The claim's is not the pod's own.
  expect(stats['ephemeral-storage'].usedBytes).toBeGreaterThanOrEqual(scratch.usedBytes);
  expect(stats['ephemeral-storage'].usedBytes).toBeLessThan(scratch.usedBytes + disk.usedBytes);
  // Processor and memory only: nothing is measured for that.
  expect(JSON.parse((await s.ask('/stats/summary?only_cpu_and_memory=true')).body).pods[0]).not.toHaveProperty('volume');
});
it('is in /metrics for claims, as long as somebody uses them', async () => {
  const s = await withVolumes();
  await vi.waitFor(async () => expect((await s.ask('/metrics')).body).toContain(`${SERIES} `), WAIT_MS);
  const { body } = await s.ask('/metrics');
  for (const family of ['available_bytes', 'used_bytes', 'inodes', 'inodes_free', 'inodes_used'])
    expect(body).toMatch(new RegExp(`^kubelet_volume_stats_${family}\\{namespace="default",persistentvolumeclaim="data"\\} \\d+`, 'm'));
  expect(body).not.toMatch(/^kubelet_volume_stats_\w+\{.*scratch/m);
  expect(body).not.toMatch(/^kubelet_volume_stats_health_status_abnormal\{/m);
  s.registry.set(volumesView, new Map());
  expect((await s.ask('/metrics')).body).not.toContain(SERIES);
});
it('is not there where it is switched off', async () => {
  const s = await withVolumes(-1);
  expect(await s.podStats()).not.toHaveProperty('volume');
  expect((await s.ask('/metrics')).body).not.toContain(SERIES);
});
