/** What looks at a node tell, put together: a timeline for people, times and restart gaps for assertions. Pure. */

import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { ContainerStatus, Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import type { DaemonEnd } from './reaper/client.ts';

/** One pod as the node's admin socket shows it. */
export interface PodView extends PodSummary {
  /** The whole definition with its live status. */
  pod: Pod & { status?: PodStatus };
}
/** One look at the node. */
export interface Look {
  /** Wall milliseconds at which the answer was there. */
  atMs: number;
  pods: readonly PodView[];
  events: readonly RecordedEvent[];
}

export interface TimelineEntry {
  /** Wall milliseconds at which it was seen. */
  atMs: number;
  kind: 'node' | 'manifest' | 'pod' | 'container' | 'event' | 'fault' | 'expectation';
  /** Name of the pod without the node's suffix; '' for what concerns the node. */
  pod: string;
  what: string;
}

/** A container that ended and runs again. Times are those of looks, 50 ms apart while somebody waits. */
export interface Restart {
  container: string;
  /** Exit code of the run that ended; null when the node does not say. */
  exitCode: number | null;
  /** `Error`, `OOMKilled`, `Completed`, ... */
  reason: string;
  endedAtMs: number;
  startedAtMs: number;
  /** From the end to the next start: the back-off, in the main. 0 when both happened between two looks. */
  gapMs: number;
}
/** Milliseconds from `apply` of the present definition; null: not yet. */
export interface Timings {
  /** Wall milliseconds of `apply`. */
  appliedAtMs: number;
  /** The node has taken the pod on. */
  scheduledMs: number | null;
  /** Every regular container has been started once. */
  startedMs: number | null;
  /** Condition Ready was True for the first time. */
  readyMs: number | null;
  restarts: readonly Restart[];
}

type End = Pick<Restart, 'container' | 'exitCode' | 'reason' | 'endedAtMs'>;
interface Life {
  pod: string;
  seenAtMs: number;
  startedAtMs: number | null;
  readyAtMs: number | null;
  phase: string;
  ready: boolean;
  removed: boolean;
  containers: Map<string, ContainerStatus>;
  /** By container: ended, and not running again. */
  ends: Map<string, End>;
  restarts: Restart[];
}

const TIMELINE_MAX = 5_000;

export const isReady = (p: PodView): boolean => p.pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
export const containersOf = (p: PodView): ContainerStatus[] => [
  ...(p.pod.status?.initContainerStatuses ?? []),
  ...(p.pod.status?.containerStatuses ?? []),
];

/** `waiting CrashLoopBackOff`, `running`, `exited 3 (Error)`, `no state`. */
function stateText(c: ContainerStatus): string {
  const { waiting, running, terminated } = c.state;
  if (running !== undefined) return 'running';
  if (terminated !== undefined) return `exited ${terminated.exitCode}${terminated.reason ? ` (${terminated.reason})` : ''}`;
  if (waiting === undefined) return 'no state';
  return `waiting${waiting.reason ? ` ${waiting.reason}` : ''}${waiting.message ? `: ${waiting.message}` : ''}`;
}

/** A pod in one line. */
export function podText(p: PodView | undefined): string {
  if (p === undefined) return 'the node knows no such pod';
  const own = p.pod.status?.reason ? ` (${p.pod.status.reason}${p.pod.status.message ? `: ${p.pod.status.message}` : ''})` : '';
  const parts = [
    `${p.phase}${own}${p.removed ? ', being removed' : ''}`,
    `${p.ready} of ${p.containers} ready`,
    `${p.restarts} ${p.restarts === 1 ? 'restart' : 'restarts'}`,
    ...containersOf(p).map((c) => `${c.name}: ${stateText(c)}`),
  ];
  return parts.join(', ');
}

export class History {
  readonly timeline: TimelineEntry[] = [];
  readonly #lives = new Map<string, Life>();
  readonly #eventCounts = new Map<string, number>();
  readonly #nameOf: (fullName: string) => string;
  readonly #onEntry: (e: TimelineEntry) => void;

  constructor(o: { nameOf: (fullName: string) => string; onEntry: (e: TimelineEntry) => void }) {
    this.#nameOf = o.nameOf;
    this.#onEntry = o.onEntry;
  }

  add(entry: TimelineEntry): void {
    this.timeline.push(entry);
    if (this.timeline.length > TIMELINE_MAX) this.timeline.shift();
    this.#onEntry(entry);
  }

  /** What changed since the look before. */
  take(look: Look): void {
    for (const p of look.pods) this.#takePod(p, look.atMs);
    for (const [uid, life] of this.#lives) {
      if (life.removed || look.pods.some((p) => p.uid === uid)) continue;
      life.removed = true;
      this.add({ atMs: look.atMs, kind: 'pod', pod: life.pod, what: 'gone' });
    }
    for (const e of look.events) this.#takeEvent(e, look.atMs);
  }

  timings(uid: string, appliedAtMs: number): Timings {
    const life = this.#lives.get(uid);
    const since = (atMs: number | null | undefined): number | null => (atMs == null ? null : Math.max(0, atMs - appliedAtMs));
    return {
      appliedAtMs,
      scheduledMs: since(life?.seenAtMs),
      startedMs: since(life?.startedAtMs),
      readyMs: since(life?.readyAtMs),
      restarts: (life?.restarts ?? []).map((r) => ({ ...r })),
    };
  }

  #takePod(p: PodView, atMs: number): void {
    const pod = this.#nameOf(p.name);
    const say = (kind: TimelineEntry['kind'], what: string): void => this.add({ atMs, kind, pod, what });
    let life = this.#lives.get(p.uid);
    if (life === undefined) {
      life = {
        pod,
        seenAtMs: atMs,
        startedAtMs: null,
        readyAtMs: null,
        phase: '',
        ready: false,
        removed: false,
        containers: new Map(),
        ends: new Map(),
        restarts: [],
      };
      this.#lives.set(p.uid, life);
    }
    // A pod of a daemon that was restarted comes back under the same UID.
    if (life.removed) {
      life.removed = false;
      say('pod', 'known again');
    }
    if (life.phase !== p.phase)
      say('pod', `phase ${p.phase}${p.pod.status?.reason ? ` (${p.pod.status.reason}: ${p.pod.status.message ?? ''})` : ''}`);
    const ready = isReady(p);
    if (life.ready !== ready) say('pod', ready ? 'ready' : 'not ready');
    life.phase = p.phase;
    life.ready = ready;
    if (ready) life.readyAtMs ??= atMs;
    for (const c of containersOf(p)) this.#takeContainer(life, c, atMs);
    const regular = p.pod.status?.containerStatuses ?? [];
    const begun = (c: ContainerStatus): boolean => c.state.running !== undefined || c.state.terminated !== undefined || c.restartCount > 0;
    if (regular.length > 0 && regular.length === p.pod.spec.containers.length && regular.every(begun)) life.startedAtMs ??= atMs;
  }

  #takeContainer(life: Life, now: ContainerStatus, atMs: number): void {
    const before = life.containers.get(now.name);
    life.containers.set(now.name, now);
    if (before !== undefined && stateText(before) === stateText(now) && before.containerID === now.containerID) return;
    this.add({ atMs, kind: 'container', pod: life.pod, what: `${now.name} ${stateText(now)}` });
    if (before === undefined) return;
    const other = before.containerID !== now.containerID;
    if (before.state.running !== undefined && (other || now.state.running === undefined)) {
      const how = other ? now.lastState.terminated : (now.state.terminated ?? now.lastState.terminated);
      life.ends.set(now.name, { container: now.name, exitCode: how?.exitCode ?? null, reason: how?.reason ?? '', endedAtMs: atMs });
    }
    const end = life.ends.get(now.name);
    if (now.state.running === undefined || end === undefined) return;
    life.ends.delete(now.name);
    life.restarts.push({ ...end, startedAtMs: atMs, gapMs: atMs - end.endedAtMs });
  }

  #takeEvent(e: RecordedEvent, atMs: number): void {
    const key = JSON.stringify([e.pod?.uid, e.reason, e.message, e.fieldPath]);
    const seen = this.#eventCounts.get(key) ?? 0;
    // A daemon that was restarted counts anew.
    this.#eventCounts.set(key, e.count);
    if (e.count === seen) return;
    const pod = e.pod === undefined ? '' : this.#nameOf(e.pod.name);
    this.add({ atMs, kind: 'event', pod, what: `${e.type === 'Warning' ? 'Warning ' : ''}${e.reason}: ${e.message}` });
  }
}

export function endText(end: DaemonEnd): string {
  return end.signal === null ? `exit code ${end.code ?? 'unknown'}` : end.signal;
}
