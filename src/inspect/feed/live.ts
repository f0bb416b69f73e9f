/** A node that is inspected, at the newest moment. */
import { chartOf } from '../../machines/chart/definition.ts';
import type { Moment } from '../../machines/shown/moment/moment.ts';
import { logicOf } from '../../machines/xstate/inside.ts';
import { dottedState } from '../../machines/xstate/words.ts';
import type { Inspected } from '../../recorder/source.ts';
import { timelineOf } from '../../recorder/timeline.ts';

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
      const ref = tree.actorAt(path);
      const chart = ref === null ? null : chartOf(logicOf(ref));
      return ref === null || chart === null ? null : { chart, state: dottedState((ref.getSnapshot() as { value?: unknown }).value) };
    },
    timeline: (uid) => timelineOf(uid, { recorder, history }),
    recorder: (filter) => recorder.read(filter),
  };
}
