/** Pods of one node by phase, counted anew only where their statuses have changed: a fleet is looked at several times a second. */

import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';

export interface PodCount {
  total: number;
  ready: number;
  byPhase: ReadonlyMap<string, number>;
  /** Those that are neither Ready nor over, by what holds them up. */
  byReason: ReadonlyMap<string, number>;
}
const NONE: PodCount = { total: 0, ready: 0, byPhase: new Map(), byReason: new Map() };

export class PodCounts {
  #of: Registry | undefined;
  #version = -1;
  #count = NONE;

  /** `registry`: of the daemon that runs; undefined: none does. */
  of(registry: Registry | undefined): PodCount {
    const view = registry?.read(statusesView);
    if (view === undefined) return NONE;
    if (registry === this.#of && view.version === this.#version) return this.#count;
    [this.#of, this.#version] = [registry, view.version];
    const [byPhase, byReason] = [new Map<string, number>(), new Map<string, number>()];
    let ready = 0;
    for (const { status } of view.value.values()) {
      const { phase = 'Unknown', conditions = [] } = status;
      byPhase.set(phase, (byPhase.get(phase) ?? 0) + 1);
      if (conditions.some((c) => c.type === 'Ready' && c.status === 'True')) ready += 1;
      else if (phase !== 'Succeeded') {
        const reason = reasonOf(status);
        byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
      }
    }
    this.#count = { total: view.value.size, ready, byPhase, byReason };
    return this.#count;
  }
}

/** As kubectl's STATUS: of the pod, else of the first container that waits or ended badly. */
function reasonOf({ reason, phase = 'Unknown', initContainerStatuses = [], containerStatuses = [] }: PodStatus): string {
  if (reason !== undefined && reason !== '') return reason;
  for (const { state } of [...initContainerStatuses, ...containerStatuses]) {
    const { waiting, terminated } = state ?? {};
    if (waiting?.reason !== undefined && waiting.reason !== '' && waiting.reason !== 'PodInitializing') return waiting.reason;
    if (terminated !== undefined && terminated.exitCode !== 0) return terminated.reason || 'Error';
  }
  return phase === 'Running' ? 'NotReady' : phase;
}
