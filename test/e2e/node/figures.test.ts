/** /metrics/cadvisor on a real containerd and a real kernel: what dashboards read of cgroups and of pods' networks. */
import { expect, it } from 'vitest';
import type { Daemon } from '../daemon.ts';
import { until } from '../lab/ports.ts';
import { manifest, sh } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';

const page = async (path: string): Promise<string> => (await fetch(`${daemon.readOnlyUrl}${path}`)).text();
let daemon: Daemon;
onContainerd((made) => ({ daemon } = made));

it('tells throttling, memory, and the network of a pod, on the port that needs no token', async () => {
  const busy = sh('main', 'trap "exit 0" TERM; while :; do :; done', { resources: { limits: { cpu: '50m', memory: '64Mi' } } });
  daemon.put('busy.yaml', manifest('busy', [busy]));
  await daemon.phase('busy', 'Running', 60_000);
  const value = async (name: string, of = 'pod="busy-e2e"') => {
    const text = await page('/metrics/cadvisor');
    const line = text.split('\n').find((l) => l.startsWith(`${name}{`) && l.includes(of));
    return line === undefined ? undefined : Number(line.split('} ')[1]?.split(' ')[0]);
  };
  await until('it to be throttled', async () => ((await value('container_cpu_cfs_throttled_periods_total')) ?? 0) > 3);
  expect(await value('container_cpu_cfs_throttled_seconds_total')).toBeGreaterThan(0);
  expect(await value('container_cpu_user_seconds_total')).toBeGreaterThanOrEqual(0);
  expect(await value('container_memory_cache')).toBeGreaterThanOrEqual(0);
  expect(await value('container_oom_events_total')).toBe(0);
  expect(await value('container_spec_memory_limit_bytes', 'container="main"')).toBe(64 * 1024 * 1024);
  expect(await value('container_spec_cpu_quota', 'container="main"')).toBe(5000);
  expect(await value('container_threads', 'container="main"')).toBeGreaterThanOrEqual(1);
  expect(await value('container_file_descriptors', 'container="main"')).toBeGreaterThan(0);
  expect(await value('container_ulimits_soft', 'container="main"')).not.toBe(0);
  // Of the sandbox, and of the machine.
  expect(await value('container_processes', 'container="",id="/')).toBeGreaterThan(0);
  expect(await value('container_fs_limit_bytes', 'container="main"')).toBeGreaterThan(0);
  expect(await value('machine_cpu_sockets', 'boot_id=')).toBeGreaterThan(0);
  expect(await value('container_network_receive_bytes_total', 'interface="eth0",name')).toBeGreaterThanOrEqual(0);
  expect(JSON.parse(await page('/stats/summary')).pods[0].podRef.name).toBe('busy-e2e');
  for (const path of ['/metrics/resource', '/metrics/probes', '/metrics/slis']) expect(await page(path)).toMatch(/^# HELP /);
});
