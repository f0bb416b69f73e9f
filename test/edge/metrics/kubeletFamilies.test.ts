/** Families of the kubelet that follow from gates, the machine and views; logs and records of pulls as a scrape finds them. */
import { describe, expect, it } from 'vitest';
import { addKubeletFamilies } from '../../../src/actors/edge/metrics/kubeletFamilies.ts';
import { logMetrics } from '../../../src/actors/edge/stats/logMetrics.ts';
import { pullRecordMetrics } from '../../../src/actors/edge/stats/pullRecordMetrics.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import { createFeatureGates } from '../../../src/machines/config/gates.ts';
import type { ListedPod } from '../../../src/machines/pod/runtime/seen.ts';
import { type PodRecord, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { type StatusEntry, statusesView } from '../../../src/machines/pods/status/messages.ts';
import { runtimePodsView } from '../../../src/machines/runtime/pleg/messages.ts';
import type { Metrics } from '../../../src/ports/ports.ts';
import { memFs } from '../../integration/memFs.ts';
import { virtualTime } from '../../integration/virtualTime.ts';
import { LEAVING, RUNNING } from '../../lifeStates.ts';
import { views } from '../harness.ts';

async function lines(metrics: Metrics, start: string): Promise<string[]> {
  return (await metrics.render()).split('\n').filter((line) => line.startsWith(start));
}

describe('families of the kubelet', () => {
  it('tell every feature gate with its stage, the version of cgroups, and where figures come from', async () => {
    const metrics = createMetrics();
    const { gates } = createFeatureGates({ EventedPLEG: true });
    const host = { memoryControl: () => ({ cgroupVersion: 2 as const, swapController: true, swapBytes: 0 }) };
    addKubeletFamilies(metrics, { registry: views(), gates: gates.list(), host });
    const features = await lines(metrics, 'kubernetes_feature_enabled{');
    expect(features).toHaveLength(gates.list().length);
    expect(features).toContain('kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} 1');
    expect(features).toContain('kubernetes_feature_enabled{name="EnvFiles",stage="BETA"} 1');
    expect(features).toContain('kubernetes_feature_enabled{name="ImageVolume",stage=""} 1');
    expect(await lines(metrics, 'kubelet_cgroup_version')).toEqual(['kubelet_cgroup_version 2']);
    expect(await lines(metrics, 'kubelet_metrics_provider')).toEqual(['kubelet_metrics_provider{provider="cadvisor"} 1']);
    const other = createMetrics();
    const { gates: on } = createFeatureGates({ PodAndContainerStatsFromCRI: true });
    addKubeletFamilies(other, { registry: views(), gates: on.list(), host });
    expect(await lines(other, 'kubelet_metrics_provider')).toEqual(['kubelet_metrics_provider{provider="cri"} 1']);
  });

  it('count ephemeral containers and changes of resources as views have them', async () => {
    const metrics = createMetrics();
    const registry = views();
    addKubeletFamilies(metrics, { registry, gates: [], host: {} });
    const record = (removed: boolean, n: number) =>
      ({
        state: removed ? LEAVING : RUNNING,
        pod: { spec: { ephemeralContainers: Array.from({ length: n }, () => ({})) } },
      }) as unknown as PodRecord;
    const entry = (...conditions: object[]) => ({ status: { conditions } }) as unknown as StatusEntry;
    const pods = { records: new Map([record(false, 2), record(true, 1)].map((r, i) => [String(i), r])), sourcesReady: true };
    registry.set(podsView, pods);
    const statuses = [
      entry({ type: 'PodResizeInProgress' }),
      entry({ type: 'PodResizePending', reason: 'Deferred' }, { type: 'PodResizeInProgress' }),
    ];
    registry.set(statusesView, new Map(statuses.map((s, i) => [String(i), s])));
    expect(await lines(metrics, 'kubelet_managed_ephemeral_containers')).toEqual(['kubelet_managed_ephemeral_containers 2']);
    expect(await lines(metrics, 'kubelet_pod_in_progress_resizes')).toEqual(['kubelet_pod_in_progress_resizes 2']);
    expect(await lines(metrics, 'kubelet_pod_pending_resizes')).toEqual([
      'kubelet_pod_pending_resizes{reason="deferred"} 1',
      'kubelet_pod_pending_resizes{reason="infeasible"} 0',
    ]);
  });
});

describe('at a scrape', () => {
  const pods = (state: 'running' | 'exited') => {
    const containers = [{ name: 'main', state }] as unknown as ListedPod['containers'];
    const pod: ListedPod = { uid: 'u', name: 'web', namespace: 'ns', sandboxes: [], containers };
    return { atMonoMs: 0, pods: new Map([['u', pod]]), via: 'cri' as const };
  };

  it('the logs of running containers are measured, and one that has ended leaves', async () => {
    const [metrics, registry, fs] = [createMetrics(), views(), memFs(virtualTime().clock)];
    fs.makeDir('/logs/ns_web_u/main');
    fs.put('/logs/ns_web_u/main/0.log', 'x'.repeat(10));
    fs.put('/logs/ns_web_u/main/0.log.1', 'x'.repeat(7));
    const logs = logMetrics(metrics, { fs, registry, podLogsDir: '/logs' });
    const text = () => lines(metrics, 'kubelet_container_log_filesystem_used_bytes');
    registry.set(runtimePodsView, pods('running'));
    await logs.measure();
    expect(await text()).toEqual(['kubelet_container_log_filesystem_used_bytes{uid="u",namespace="ns",pod="web",container="main"} 17']);
    registry.set(runtimePodsView, pods('exited'));
    await logs.measure();
    expect(await text()).toEqual([]);
  });

  it('records of pulls are counted, without those that are being written', async () => {
    const [metrics, fs] = [createMetrics(), memFs(virtualTime().clock)];
    const records = pullRecordMetrics(metrics, { fs, dir: '/root/image_manager' });
    const text = () => lines(metrics, 'kubelet_imagemanager_ondisk');
    await records.measure();
    expect(await text()).toEqual(['kubelet_imagemanager_ondisk_pulledrecords 0', 'kubelet_imagemanager_ondisk_pullintents 0']);
    fs.makeDir('/root/image_manager/pulled');
    for (const name of ['sha256-a', 'sha256-b', 'sha256-c.tmp']) fs.put(`/root/image_manager/pulled/${name}`, '{}');
    await records.measure();
    expect(await text()).toEqual(['kubelet_imagemanager_ondisk_pulledrecords 2', 'kubelet_imagemanager_ondisk_pullintents 0']);
  });
});
