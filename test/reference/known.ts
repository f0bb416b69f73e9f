/**
 * Rows of a comparison that differ for a reason, or that say nothing of the agent. docs/differences-metrics.md lists the reasons for
 * values of metrics and of /stats/summary; docs/differences.md the others. Data.
 */
import { CADVISOR_LEFT_OUT, LEFT_OUT_METRICS } from './leftOut/leftOut.ts';

/** Left out, with a reason each, in tables of their own. */
const FAMILIES = [...Object.keys(CADVISOR_LEFT_OUT), ...LEFT_OUT_METRICS.flatMap(({ families }) => families)];

/** Values of metrics and of /stats/summary. */
export const KNOWN_VALUES: readonly (readonly [RegExp, string])[] = [
  [
    /^\/metrics\/cadvisor (?:family )?container_pressure_/,
    '`container_pressure_*` has rows on cgroup v1 too, for the node. The kubelet has them on cgroup v2 only.',
  ],
  [
    /^\/metrics\/cadvisor container_fs_(?:usage|limit|inodes).*container="[^"]/,
    '`container_fs_usage_bytes`, `_limit_bytes` and `_inodes_*` have rows for containers: their writable layers. The kubelet has none on containerd.',
  ],
  [
    /^\/metrics\/cadvisor container_fs_\S*device="\/(?!dev\/[^s])/,
    '`container_fs_*` has no rows for file systems in memory (tmpfs). The kubelet names them after their mount points.',
  ],
  [
    /^\/metrics\/cadvisor container_fs_(?:io_time|read|write)\S*seconds_total/,
    'Seconds that disks were busy are seconds. The kubelet divides milliseconds by a thousand million.',
  ],
  [
    /container_memory_failures_total.*scope="hierarchy"/,
    '`container_memory_failures_total` with `scope="hierarchy"` counts groups below, on cgroup v1 too. The kubelet repeats the value of the group itself there.',
  ],
  [
    /^\/metrics\/cadvisor .*id="\/(?!k8s\.io\/ID")/,
    '`/metrics/cadvisor` has rows for the groups of pods and for those above them. The kubelet also has those of other programs.',
  ],
  [/cadvisor_version_info/, '`cadvisor_version_info` names this daemon.'],
  [
    /container_swap_limit_bytes|swap\.swapAvailableBytes/,
    'On a machine without swap a container may use none. On cgroup v1 the kubelet tells its limit of memory and swap together, and nothing without one.',
  ],
  [
    /stats\/summary\S* \.pods\.[^.[]*\.memory\.availableBytes/,
    'Without cgroups of pods, memory available to a pod is told where each of its containers has a limit. The kubelet adds up those that have one, or tells 0.',
  ],
  [
    /volume\[kube-api-access\]\.(?:capacity|available)Bytes/,
    'Room of volumes of secrets and tokens is 64 MiB: their file system in memory has a limit. In the kubelet it is the memory of the machine.',
  ],
  [
    /stats\/summary\S* \.pods\S*\.(?:io\.|cpu\.psi|memory\.psi)/,
    'Pressure of a container is told where the kernel tells it. On cgroup v1 the kubelet tells zeros, and a time without figures.',
  ],
  [
    /stats\/summary\S* \.node\./,
    'Figures of the node in `/stats/summary` have its pressure on cgroup v1 too. They have the group of the daemon where it is in the root group.',
  ],
  [
    /kubelet_admission_rejections_total/,
    '`kubelet_admission_rejections_total` names every reason but those of extended resources. The kubelet counts `NodeAffinity` and some others as `Other`.',
  ],
  [/prober_probe_total.*result="unknown"/, '`prober_probe_total` counts errors of probes as `unknown`. The kubelet does not count them.'],
];

/** Of the lab, of the moment, or of the build. */
const NOTHING_SAID =
  / type$|^\/metrics (?:family )?(?:actorlet|nodejs|go|process|rest_client|storage_operation|kubernetes_(?:build|feature)|kubelet_runtime_operations|kubelet_certificate_manager)|process_start_time|kubernetes_healthcheck|^node\.(?:status\.(?:images|conditions|addresses|daemonEndpoints|nodeInfo|allocatable\.memory)|metadata)|^lease|^page \/configz.*(?:Port|port|File|Path|Dir|Endpoint|evictionHard|Frequency|verbosity)|hostIP|resourceVersion|\.metadata\.(?:managedFields|annotations|creationTimestamp|generation)/;

export function isKnown(where: string): boolean {
  if (NOTHING_SAID.test(where) || KNOWN_VALUES.some(([which]) => which.test(where))) return true;
  const family = /^\/metrics\S* (?:family )?(\w+)/.exec(where)?.[1] ?? '';
  return FAMILIES.some((name) => family === name || family.startsWith(`${name}_`));
}
