/**
 * Families of /metrics (pod lifecycle 10.3, resources and volumes 7.9): those that a whole node has once pods ran on it, by
 * type and labels, and of those that the specification names and it has not, why.
 */
import { certificateMetrics } from '../../../../src/actors/api/certificates/certificate.ts';
import { ProviderKeyring } from '../../../../src/actors/runtime/imagePuller/providers.ts';
import { certificateTtl } from '../../../../src/boot/dependencies/certificates/ttl.ts';
import { clientMetrics } from '../../../../src/boot/dependencies/kube/clientMetrics.ts';
import { createMetrics } from '../../../../src/boot/dependencies/metrics/metrics.ts';
import type { Metrics } from '../../../../src/ports/ports.ts';
import { cluster, create, drop, inApi, isReady } from '../../../integration/cluster/clusterPods.ts';
import { pod as staticPod } from '../../../integration/virtualNode.ts';
import { NO_PEERS } from '../../../peers.ts';
import { fakePorts } from '../../../supervision/fakePorts.ts';
import { CLAIMING, provideClaim } from '../driver.ts';
import { goldenTable } from '../table.ts';

interface Family {
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
}
type Families = Map<string, Family>;

/** Counts as the real one does, and remembers what it was asked for. */
function remembering(families: Families): Metrics {
  const real = createMetrics();
  const note = (name: string, type: Family['type'], labels: readonly string[] = []) =>
    void families.set(name, { type, labels: [...labels].sort() });
  return {
    ...real,
    counter(name, help, labels) {
      note(name, 'counter', labels);
      return real.counter(name, help, labels);
    },
    gauge(name, help, labels) {
      note(name, 'gauge', labels);
      return real.gauge(name, help, labels);
    },
    histogram(name, help, buckets, labels) {
      note(name, 'histogram', labels);
      return real.histogram(name, help, buckets, labels);
    },
  };
}

/** All that a node can have switched on, a static pod, and pods of the API that come and go. */
async function lived(): Promise<{ families: Families; text: string }> {
  const families: Families = new Map();
  await using h = await cluster({
    drivers: true,
    devices: true,
    kernelLog: true,
    cgroups: true,
    servers: true,
    config: {
      ...{ cpuManagerPolicy: 'static', reservedSystemCPUs: '0', shutdownGracePeriod: 30_000 },
      featureGates: { PodCertificateRequest: true, MemoryQoS: true },
    },
    manifests: { fixed: staticPod('fixed') },
    metrics: () => remembering(families),
  });
  await provideClaim(h);
  create(h, 'web', { inits: [{}], lives: { 'init-0': 'run=1s' } });
  create(h, 'disk', CLAIMING);
  create(h, 'refused', { spec: { volumes: [{ name: 'v', quobyte: { registry: 's', volume: 'x' } }] } });
  await h.until('both are ready', () => isReady(h, 'web') && isReady(h, 'disk'), 300_000);
  await h.until('one is refused', () => inApi(h, 'refused')?.status.phase === 'Failed');
  drop(h, 'pods/web');
  await h.until('one is gone', () => inApi(h, 'web') === undefined, 300_000);
  await h.advance(60_000);
  ofADaemon(h.metrics);
  return { families, text: await h.metrics.render() };
}

/** What comes with a real API server, with certificates of its own and with credential programs. */
function ofADaemon(metrics: Metrics): void {
  const ports = fakePorts({ metrics });
  const { signal } = new AbortController();
  clientMetrics(metrics, 'api.example.org:6443');
  for (const side of ['client', 'server'] as const) {
    certificateTtl({ metrics, clock: ports.clock, side, certificate: { file: '/nothing' } });
    certificateMetrics({ ports, signal }, side === 'client' ? 'client' : 'serving');
  }
  const programs = { providers: [], run: async () => '' };
  void new ProviderKeyring({ calls: NO_PEERS.calls, ports, log: ports.log, programs, signal, accounts: null });
}

let once: ReturnType<typeof lived> | undefined;
const node = () => {
  once ??= lived();
  return once;
};

/** By section the families that the specification names; with why, those that this node has not. */
const SPECIFIED: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  '10.3': {
    kubelet_pod_worker_duration_seconds: null,
    kubelet_pod_worker_start_duration_seconds: null,
    kubelet_pod_start_duration_seconds: null,
    kubelet_containers_per_pod_count: null,
    kubelet_pleg_relist_duration_seconds: null,
    kubelet_pleg_relist_interval_seconds: null,
    kubelet_pleg_last_seen_seconds: null,
    kubelet_pleg_discard_events: null,
    kubelet_running_pods: null,
    kubelet_running_containers: null,
    kubelet_runtime_operations_total: null,
    kubelet_runtime_operations_duration_seconds: null,
    kubelet_runtime_operations_errors_total: null,
    kubelet_run_podsandbox_duration_seconds: null,
    kubelet_run_podsandbox_errors_total: null,
    kubelet_evictions: null,
    kubelet_preemptions: null,
    kubelet_started_pods_total: null,
    kubelet_started_pods_errors_total: null,
    kubelet_started_containers_total: null,
    kubelet_started_containers_errors_total: null,
    kubelet_desired_pods: null,
    kubelet_active_pods: null,
    kubelet_mirror_pods: null,
    kubelet_working_pods: null,
    kubelet_orphaned_runtime_pods_total: null,
    kubelet_restarted_pods_total: null,
    kubelet_pod_status_sync_duration_seconds: null,
    kubelet_pod_start_sli_duration_seconds: null,
    kubelet_admission_rejections_total: null,
    kubelet_image_pull_duration_seconds: null,
  },
  '7.9': {
    kubelet_node_name: null,
    kubelet_cgroup_manager_duration_seconds: null,
    kubelet_eviction_stats_age_seconds: 'the eviction manager reads for itself at each look: its figures have no age',
    kubelet_device_plugin_registration_total: null,
    kubelet_device_plugin_alloc_duration_seconds: null,
    kubelet_volume_stats_capacity_bytes: null,
    kubelet_volume_stats_available_bytes: null,
    kubelet_volume_stats_used_bytes: null,
    kubelet_volume_stats_inodes: null,
    kubelet_volume_stats_inodes_free: null,
    kubelet_volume_stats_inodes_used: null,
    kubelet_volume_stats_health_status_abnormal: null,
    kubelet_container_log_filesystem_used_bytes: null,
    kubelet_http_requests_total: null,
    kubelet_http_requests_duration_seconds: null,
    kubelet_http_inflight_requests: null,
    volume_manager_total_volumes: null,
    plugin_manager_total_plugins: null,
    storage_operation_duration_seconds: null,
    storage_operation_errors_total: 'the kubelet of 1.36 has it no more: storage_operation_duration_seconds has the status',
    csi_operations_seconds: null,
    kubelet_orphan_pod_cleaned_volumes: null,
    kubelet_cpu_manager_pinning_requests_total: null,
    kubelet_cpu_manager_pinning_errors_total: null,
    kubelet_cpu_manager_shared_pool_size_millicores: null,
    kubelet_cpu_manager_exclusive_cpu_allocation_count: null,
    kubelet_memory_manager_pinning_requests_total: null,
    kubelet_graceful_shutdown_start_time_seconds: null,
    kubelet_graceful_shutdown_end_time_seconds: null,
    kubelet_lifecycle_handler_http_fallbacks_total: null,
  },
};
const NAMED = new Set(Object.values(SPECIFIED).flatMap((section) => Object.keys(section)));

const rows = Object.fromEntries(
  Object.entries(SPECIFIED).flatMap(([section, families]) =>
    Object.entries(families).map(([name, whyNot]): [string, () => Promise<unknown>] => [
      `${section} ${name}`,
      async () => {
        const { families: there, text } = await node();
        const family = there.get(name);
        // Either it is there, or it is said why not: never both, never neither.
        if (family === undefined) return whyNot === null ? 'NOT REGISTERED, and nobody says why' : { not: whyNot };
        if (whyNot !== null) return 'REGISTERED, though it is said why not';
        return { ...family, rendered: text.includes(`# TYPE ${name} ${family.type}\n`) };
      },
    ]),
  ),
);

goldenTable('families of metrics are as recorded', 'edge/metrics', {
  ...rows,
  'families that this node has besides': async () => {
    const { families } = await node();
    const others = [...families].filter(([name]) => !NAMED.has(name)).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(others);
  },
});
