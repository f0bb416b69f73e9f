/** What a node that can be looked at always keeps: its flight recorder and its pods' histories. */

import { createHistory } from '../../src/actors/recorder/history.ts';
import { createRecorder } from '../../src/actors/recorder/recorder.ts';
import type { SupervisionEvent } from '../../src/actors/supervision/types.ts';
import type { Clock, Cri } from '../../src/ports/ports.ts';
import { collected } from './hollowNode.ts';

/** More than the recorder keeps, and than a history keeps of one pod. */
const EVENTS_FED = 5_000;
const PODS = 256;
const STEPS_AND_CALLS = 170;
const FED_AGAIN = 200;

const clock: Clock = { wallMs: () => Date.now(), monoMs: () => performance.now(), setTimeout, clearTimeout: () => undefined };

/** Nanoseconds of both for one event, over events that a node had. */
export function nsPerEvent(events: readonly SupervisionEvent[]): number {
  const recorder = createRecorder();
  const history = createHistory(clock);
  const rounds = Math.ceil((FED_AGAIN * EVENTS_FED) / events.length);
  const from = performance.now();
  for (let round = 0; round < rounds; round++) {
    for (const e of events) {
      recorder.observe(e);
      history.observe(e);
    }
  }
  return ((performance.now() - from) * 1e6) / (rounds * events.length);
}

/**
 * MiB that the recorder holds once it is full, and the histories of as many pods as are remembered. No text is shared with
 * anything else: in a daemon most are constants, paths and UIDs that are there anyway.
 */
export async function keptMiB(events: readonly SupervisionEvent[]): Promise<{ recorder: number; history: number; total: number }> {
  const before = (await collected()).heapMiB;
  const recorder = createRecorder();
  for (let fed = 0; fed < EVENTS_FED; ) {
    for (const e of events.slice(0, EVENTS_FED - fed)) {
      recorder.observe(structuredClone(e));
      fed += 1;
    }
  }
  const between = (await collected()).heapMiB;
  const history = createHistory(clock);
  const cri = history.watch({
    call: async () => ({}),
    hints: () => undefined,
    reconnect: () => undefined,
    close: () => undefined,
  } as unknown as Cri);
  for (let pod = 0; pod < PODS; pod++) await fill(history, cri, `00000000-0000-4000-8000-${String(pod).padStart(12, '0')}`);
  const after = (await collected()).heapMiB;
  // Both are in use until here.
  if (recorder.recorded === 0 || history.of(`00000000-0000-4000-8000-${'0'.repeat(12)}`) === undefined) throw new Error('nothing was kept');
  const round = (mib: number) => Math.round(mib * 10) / 10;
  return { recorder: round(between - before), history: round(after - between), total: round(after - before) };
}

async function fill(history: ReturnType<typeof createHistory>, cri: Cri, uid: string): Promise<void> {
  for (let i = 0; i < STEPS_AND_CALLS; i++) {
    const step = { from: 'syncing.inspecting', to: 'syncing.settled', event: 'done:inspect', reason: 'ContainersNotReady' };
    history.observe(structuredClone({ kind: 'transition', atMs: i, path: `node/pods/workers/${uid}`, ...step } as const));
    const config = { metadata: { name: 'main' }, labels: { 'io.kubernetes.pod.uid': uid } };
    await cri.call(
      'CreateContainer',
      structuredClone({ podSandboxId: 'x', config, sandboxConfig: { metadata: { uid } } }) as never,
      {} as never,
    );
  }
}
