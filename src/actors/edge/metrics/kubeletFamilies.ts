/** Families of the kubelet that follow from the configuration, the machine and views: set once, or counted at each scrape. */

import type { GateState } from '../../../machines/config/config.ts';
import { isWanted, podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';

import type { Host, Metrics } from '../../../ports/ports.ts';
import type { Registry } from '../../supervision/types.ts';

/** Who makes the figures of containers, in the kubelet's words: the runtime, or the agent from their cgroups. */
const PROVIDERS = { true: 'cri', false: 'cadvisor' } as const;
/** Reasons of the condition PodResizePending, as the kubelet writes them in labels. */
const PENDING = ['deferred', 'infeasible'] as const;

export interface FamilyFacts {
  registry: Pick<Registry, 'read'>;
  gates: readonly GateState[];
  host: Pick<Host, 'memoryControl'>;
}

/** Registers them; a restarted server may call it again. */
export function addKubeletFamilies(metrics: Metrics, { registry, gates, host }: FamilyFacts): void {
  const enabled = metrics.gauge('kubernetes_feature_enabled', '1 where a feature gate is on, 0 where it is off, with its stage', [
    'name',
    'stage',
  ]);
  for (const { name, stage, enabled: on } of gates) enabled.set(on ? 1 : 0, { name, stage: stage === 'GA' ? '' : stage });
  const version = host.memoryControl?.().cgroupVersion;
  const cgroups = metrics.gauge('kubelet_cgroup_version', 'Version of cgroups on this machine: 1 or 2');
  if (version !== undefined) cgroups.set(version);
  const fromCri = gates.some(({ name, enabled: on }) => name === 'PodAndContainerStatsFromCRI' && on);
  const provider = PROVIDERS[`${fromCri}`];
  metrics.gauge('kubelet_metrics_provider', 'Where figures of containers come from: always 1', ['provider']).set(1, { provider });
  addPodFamilies(metrics, registry);
}

function addPodFamilies(metrics: Metrics, registry: FamilyFacts['registry']): void {
  const debugging = metrics.gauge('kubelet_managed_ephemeral_containers', 'Ephemeral containers of pods of this node');
  const changing = metrics.gauge('kubelet_pod_in_progress_resizes', 'Pods whose change of resources is being carried out');
  const pending = metrics.gauge('kubelet_pod_pending_resizes', 'Pods whose change of resources is not granted, by reason', ['reason']);
  metrics.onCollect(() => {
    let [ephemeral, inProgress] = [0, 0];
    const waiting = new Map<string, number>();
    for (const record of registry.read(podsView)?.value.records.values() ?? [])
      if (isWanted(record)) ephemeral += record.pod.spec.ephemeralContainers?.length ?? 0;
    for (const { status } of registry.read(statusesView)?.value.values() ?? []) {
      for (const { type, reason = '' } of status.conditions ?? []) {
        if (type === 'PodResizeInProgress') inProgress++;
        if (type === 'PodResizePending') waiting.set(reason.toLowerCase(), (waiting.get(reason.toLowerCase()) ?? 0) + 1);
      }
    }
    debugging.set(ephemeral);
    changing.set(inProgress);
    for (const reason of PENDING) pending.set(waiting.get(reason) ?? 0, { reason });
  }, 'kubeletFamilies.pods');
}
