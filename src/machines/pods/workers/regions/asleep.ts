/** What a settled worker keeps while it sleeps, and how the next one goes on with it: plain data, without the children. */

import type { PodStatus } from '../../../kube/types.ts';
import type { Context as ContainerContext } from '../container/containerSetup.ts';
import type { KeptContainer, KeptWait } from '../container/startJob.ts';
import { childId, type KeptWorker, type WorkerContext } from '../context.ts';
import { statusAsAccepted } from './plan.ts';

interface SnapshotOf<C> {
  readonly value: unknown;
  readonly context: C;
}
interface WorkerSnapshot extends SnapshotOf<WorkerContext> {
  readonly children: Readonly<Record<string, { getSnapshot(): unknown } | undefined>>;
}

/** A container in one of these waits for nothing but what the worker observes, or for the end of its back-off. */
const BACKING_OFF = 'backingOff';
const AT_REST: ReadonlySet<unknown> = new Set(['running', 'exited', BACKING_OFF]);
// Thousands of records share what is empty.
const NO_SET: ReadonlySet<never> = new Set();
const NO_MAP: ReadonlyMap<never, never> = new Map<never, never>();
const set = <T>(of: ReadonlySet<T>): ReadonlySet<T> => (of.size === 0 ? NO_SET : of);
const map = <K, V>(of: ReadonlyMap<K, V>): ReadonlyMap<K, V> =>
  of.size === 0 ? (NO_MAP as ReadonlyMap<never, never> as ReadonlyMap<K, V>) : of;

/**
 * Null: it has work. `quiet`: no act of its own is in flight, or waits to be looked at. What a hint or a look is for, a container that
 * starts, resources that change, and a start that failed are work; a back-off that runs is none. `accepted`: the status that was
 * accepted last.
 */
export function keptOf(snapshot: unknown, quiet: boolean, accepted: PodStatus | undefined): KeptWorker | null {
  const { value, context, children } = snapshot as WorkerSnapshot;
  const { look, act, starts, restart, resize, end } = context;
  if (!quiet || (value as { syncing?: unknown }).syncing !== 'settled' || end.kill !== null) return null;
  // What a listing had told was seen, or the worker would not be settled.
  if (look.hint === 'yes' || look.own || look.ended.size > 0 || act.trouble !== null || starts.heldBack !== 'no') return null;
  if (starts.hookAhead.size > 0 || resize.child) return null;
  const containers = new Map<string, KeptContainer>();
  const waiting = new Set<string>();
  for (const name of starts.children) {
    const child = children[childId(name)]?.getSnapshot() as SnapshotOf<ContainerContext> | undefined;
    if (child === undefined || !AT_REST.has(child.value)) return null;
    const { backoff, backoffBefore, backoffKey, clearedCount, unknown } = child.context;
    if (unknown !== null) return null;
    const waits = child.value === BACKING_OFF ? waitOf(child.context) : undefined;
    if (waits === null) return null;
    if (waits !== undefined) waiting.add(name);
    if (backoff === undefined && clearedCount === null && waits === undefined) continue;
    containers.set(name, { backoff, backoffBefore, backoffKey, clearedCount, ...(waits === undefined ? {} : { waits }) });
  }
  for (const failed of [starts.failures, starts.nextStarts]) for (const name of failed.keys()) if (!waiting.has(name)) return null;
  return {
    context: {
      ...context,
      decision: null,
      apiStatus: statusAsAccepted(context, accepted),
      look: { ...look, ended: NO_SET },
      act: { ...act, replaced: map(act.replaced), stoppedUnknown: set(act.stoppedUnknown) },
      starts: { ...starts, children: NO_SET, failures: map(starts.failures), nextStarts: map(starts.nextStarts), hookAhead: NO_SET },
      restart: { asked: map(restart.asked), times: map(restart.times) },
      resize: { ...resize, inForce: map(resize.inForce) },
      end: { ...end, preStopped: set(end.preStopped) },
    },
    containers: map(containers),
  };
}

function waitOf({ job, failure, nextStartAtMs, waitsUntilMonoMs }: ContainerContext): KeptWait | null {
  return job === null || failure === null ? null : { job, failure, nextStartAtMs, untilMonoMs: waitsUntilMonoMs };
}

/** The next look of one that wakes: not the time for which a container's back-off had set the clock. Null: it is drawn anew. */
export function lookDueOf({ containers }: KeptWorker, dueAtMonoMs: number | null): number | null {
  if (dueAtMonoMs === null) return null;
  for (const { waits } of containers.values()) if (waits !== undefined && waits.untilMonoMs <= dueAtMonoMs) return null;
  return dueAtMonoMs;
}
