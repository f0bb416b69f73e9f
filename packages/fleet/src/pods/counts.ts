/** Pods of one node by phase, counted anew only where their statuses have changed: a fleet is looked at several times a second. */

import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';

export interface PodCount {
  total: number;
  ready: number;
  byPhase: ReadonlyMap<string, number>;
}
const NONE: PodCount = { total: 0, ready: 0, byPhase: new Map() };

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
    const byPhase = new Map<string, number>();
    let ready = 0;
    for (const { status } of view.value.values()) {
      const { phase = 'Unknown', conditions = [] } = status;
      byPhase.set(phase, (byPhase.get(phase) ?? 0) + 1);
      if (conditions.some((c) => c.type === 'Ready' && c.status === 'True')) ready += 1;
    }
    this.#count = { total: view.value.size, ready, byPhase };
    return this.#count;
  }
}
