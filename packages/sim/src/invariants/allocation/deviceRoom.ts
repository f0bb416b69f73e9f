/** How many devices of a node somebody may hold, at the most: who is refused while there were more than that is refused for nothing. */

import { allocationOrder, deviceRequests } from '@actorlet/kubelet/machines/allocation/devices/allocate.ts';
import { devicesView } from '@actorlet/kubelet/machines/allocation/devices/messages.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRefused, type PodRecord, podsView, refusedFor } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { DEVICE_FOLDER } from '@actorlet/world/src/paths.ts';
import { pluginSocket } from '@actorlet/world/src/plugins/machineDevices.ts';
import { manifestName } from '../../steady.ts';
import type { Scene } from '../checker.ts';

/** What went this long ago may still count for somebody: a listing, a status, a pod that was refused half way. */
const HELD_MS = 30_000;
/** Plugins and sources have to be as they are for so long. */
const CALM_MS = 5_000;
const TOO_FEW = /Allocate failed due to requested number of devices unavailable for (\S+)\. Requested: (\d+), Available: (\d+)/;

export class DeviceRoom {
  /** Pods that may hold something or might have, when that was last so. */
  readonly #holders = new Map<string, { pod: Pod; atMs: number }>();
  /** Since when all of a resource is there and known to be. */
  readonly #fullSinceMs = new Map<string, number>();
  #heardSinceMs = Number.POSITIVE_INFINITY;
  /** For what a pod is refused, and since when: its status says so only after the end of its earlier life. */
  readonly #refused = new Map<string, { reason: string | null; atMs: number }>();

  /** A daemon begins, and knows nothing yet. */
  unheard(): void {
    this.#heardSinceMs = Number.POSITIVE_INFINITY;
    this.#fullSinceMs.clear();
  }

  look(s: Scene): void {
    const registry = s.node.daemon?.tree.registry;
    const ledger = registry?.read(podsView)?.value;
    if (ledger?.sourcesReady !== true) this.#heardSinceMs = Number.POSITIVE_INFINITY;
    else this.#heardSinceMs = Math.min(this.#heardSinceMs, s.monoMs);
    const left = new Set(s.node.runtime.hollow.dump().containers.flatMap((c) => (c.state === 'CONTAINER_EXITED' ? [] : [c.podUid])));
    for (const [uid, record] of ledger?.records ?? []) {
      const reason = refusedFor(record);
      if (this.#refused.get(uid)?.reason !== reason) this.#refused.set(uid, { reason, atMs: s.monoMs });
      // A pod that was refused half way holds what it was given first, for a moment.
      if (left.has(uid) || mayHold(record) || !this.#holders.has(uid)) this.#holders.set(uid, { pod: record.pod, atMs: s.monoMs });
    }
    for (const uid of left) {
      const known = this.#holders.get(uid);
      if (known !== undefined) known.atMs = s.monoMs;
    }
    const shown = registry?.read(devicesView)?.value;
    for (const p of s.node.tuning.devices?.plugins ?? []) {
      const plugin = s.node.devices.sockets.get(pluginSocket(DEVICE_FOLDER, p));
      const whole = plugin?.down === false && plugin.devices.length === p.devices.length && plugin.devices.every((d) => d.healthy);
      if (!whole || shown?.allocatable[p.resource] !== String(p.devices.length)) this.#fullSinceMs.delete(p.resource);
      else if (!this.#fullSinceMs.has(p.resource)) this.#fullSinceMs.set(p.resource, s.monoMs);
    }
  }

  /** Undefined: it may be so that there are too few. */
  contradicts(s: Scene, o: { uid: string; message: string }): string | undefined {
    this.look(s);
    const [, resource = '', requested = '', available = ''] = TOO_FEW.exec(o.message) ?? [];
    const sinceMs = Math.max(this.#heardSinceMs, this.#fullSinceMs.get(resource) ?? Number.POSITIVE_INFINITY);
    const atMs = this.#refused.get(o.uid)?.atMs ?? s.monoMs;
    if (atMs - sinceMs < CALM_MS) return undefined;
    const there = s.node.tuning.devices?.plugins.find((p) => p.resource === resource)?.devices.length ?? 0;
    const holders = [...this.#holders].filter(([uid, h]) => uid !== o.uid && atMs - h.atMs <= HELD_MS);
    // Pods that are not let in yet may hold some already.
    const known = new Set([...this.#holders.values()].map(({ pod }) => nameOf(pod, s)));
    const unknown = [...s.operator.wanted.values()].flatMap((w) =>
      known.has(`${w.pod.name} ${w.pod.rev}`) ? [] : [w.pod.manifest as Pick<Pod, 'spec'>],
    );
    // Its containers are given theirs one after the other.
    const own = Math.max(0, asks(this.#holders.get(o.uid)?.pod, resource) - Number(requested));
    const held = [...holders.map(([, h]) => h.pod), ...unknown].reduce((sum, pod) => sum + asks(pod, resource), own);
    return there - held >= Number(requested)
      ? `although others hold ${held} of ${there} at the most, and it needs ${requested} where ${available} are said to be left`
      : undefined;
  }
}

/** Until it is over. */
function mayHold(record: PodRecord): boolean {
  const phase = record.worker?.phase;
  return !isRefused(record) && phase !== 'finished' && phase !== 'terminated';
}

/** With its revision: a name may have two pods, of which one waits. */
function nameOf(pod: Pod, s: Scene): string {
  return `${manifestName(pod.metadata.name, s.node)} ${pod.metadata.labels?.rev ?? ''}`;
}

function asks(pod: Pick<Pod, 'spec'> | undefined, resource: string): number {
  if (pod === undefined) return 0;
  return allocationOrder(pod as Pod)
    .flatMap(({ container }) => deviceRequests(container))
    .reduce((sum, r) => sum + (r.resource === resource ? r.count : 0), 0);
}
