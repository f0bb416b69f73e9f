/** A node that is inspected, at the newest moment. */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { timelineOf } from '@actorlet/kubelet/actors/recorder/timeline.ts';
import { chartOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';

export function momentOf(node: Inspected): Moment {
  const { tree, clock, recorder, history } = node;
  return {
    nowMs: clock.wallMs(),
    monoMs: clock.monoMs(),
    name: node.nodeName,
    version: node.version,
    startedAtMs: node.startedAtMs,
    faultsAtWork: node.faults?.size ?? null,
    read: (key) => tree.registry.read(key)?.value,
    state: () => tree.state(),
    stateAt: (path) => tree.stateAt(path),
    chart(path) {
      const chart = chartOf(tree.machineAt(path));
      return chart === null ? null : { chart, state: tree.rowAt(path)?.state ?? '' };
    },
    timeline: (uid) => timelineOf(uid, { recorder, history }),
    recorder: (filter) => recorder.read(filter),
  };
}
