/**
 * What crosses the page's WebSocket, both ways. A viewer gets `hello`, then a `snapshot`, then `delta`s with rising `seq`;
 * a viewer that was too slow misses some and gets a `snapshot` again. All times are wall milliseconds.
 */

import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { Disagreement, ExpectedAct, ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { LifeStep } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { ContainerSummary } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import type { PodHistory } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { VolumeSummary } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import type { Cause } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { ShownImage } from '@actorlet/shown/src/moment/images.ts';
import type { PodTrouble } from '@actorlet/shown/src/moment/wrong.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import type { Shown } from '../project.ts';

/** Grows with each change that an older page could not read. */
export const PROTOCOL_VERSION = 1;

/** One actor of the tree, children by `parent`. */
export interface ActorRow {
  path: string;
  parent: string;
  /** The last part of the path; for a pod's actors the pod's name. */
  name: string;
  type: 'actor' | 'supervisor' | 'dynamic';
  lifecycle: string;
  state: string;
  reason: string;
  message: string;
  sinceMs: number;
  restarts: number;
  incarnation: number;
  ok: boolean;
  mail: { depth: number; depthMax: number; oldestAtMs: number; coalesced: number; dropped: number; suspended: boolean } | null;
  error: string;
  /** UID of the pod that it belongs to; ''. */
  pod: string;
  /** What it works with cannot be reached; `error` says what. */
  lost?: boolean;
}
export type PodRow = Omit<PodSummary, 'ageMs'> & { seenAtMs: number };

export interface HelloFrame {
  t: 'hello';
  protocol: number;
  node: string;
  version: string;
  startedAtMs: number;
  faultInjection: boolean;
  /** The page may restart and delete pods, with the token. Absent: not. */
  actsOnPods?: true;
  /** This is no live node: what it was can be looked at for each moment of it. */
  recording?: { fromMs: number; toMs: number; runs: readonly { fromMs: number; toMs: number; stopped: boolean }[] };
}
export interface SnapshotFrame {
  t: 'snapshot';
  seq: number;
  atMs: number;
  actors: readonly ActorRow[];
  pods: readonly PodRow[];
  events: readonly RecorderEntry[];
  /** Of a replay: when an actor made a step last before this moment and first after it; null: none did. */
  steps?: { beforeMs: number | null; afterMs: number | null };
}
export interface DeltaFrame {
  t: 'delta';
  seq: number;
  atMs: number;
  actors: readonly ActorRow[];
  goneActors: readonly string[];
  pods: readonly PodRow[];
  gonePods: readonly string[];
  events: readonly RecorderEntry[];
  /** Events between the last frame and this that are not in it. */
  missed: number;
}

/** One step of a watched actor, from xstate itself: real event names, the transitions taken. */
export interface StepTaken {
  /** Counts the steps since somebody looks: two of the same event may come within a millisecond. */
  n: number;
  atMs: number;
  event: string;
  label: string;
  from: string;
  to: string;
  /** Ids of {@link Chart} transitions. */
  transitions: readonly string[];
}
export interface NextEvent {
  event: string;
  label: string;
  guard: string;
  targets: readonly string[];
}
export interface ActorFrame {
  t: 'actor';
  path: string;
  /** Null: there is none just now. */
  live: {
    status: string;
    value: string;
    /** Ids of the states that it is in. */
    active: readonly string[];
    context: Shown;
    next: readonly NextEvent[];
    children: readonly { id: string; state: string; status: string; machine: boolean }[];
  } | null;
  steps: readonly StepTaken[];
  history: readonly RecorderEntry[];
}
/** Sent once when a viewer begins to watch an actor, and when its machine is another one. */
export interface ChartFrame {
  t: 'chart';
  path: string;
  chart: Chart | null;
}

/** The machine of each pod's life in the pod manager: sent once when a viewer begins to watch a pod. */
export interface LifeFrame {
  t: 'life';
  chart: Chart | null;
}

export interface PodFrame {
  t: 'pod';
  uid: string;
  pod: {
    namespace: string;
    name: string;
    source: string;
    seenAtMs: number;
    /** The states of its life in the pod manager, oldest first. Absent in recordings of older daemons. */
    way?: readonly LifeStep[];
    phase: string;
    reason: string;
    message: string;
    worker: { phase: string; state: string; reason: string; message: string; sinceMs: number } | null;
    conditions: readonly { type: string; status: string; sinceMs: number; reason: string; message: string }[];
    containers: readonly ContainerRow[];
    probes: readonly { container: string; type: string; result: string }[];
    volumes: readonly VolumeSummary[];
    causes: readonly Cause[];
    why: readonly string[];
    events: readonly RecordedEvent[];
    history: PodHistory;
    messages: readonly RecorderEntry[];
  } | null;
}
export interface ContainerRow extends ContainerSummary {
  image: string;
  ready: boolean;
  startedAtMs: number;
  lastExit: string;
}

export interface DecisionsFrame {
  t: 'decisions';
  pressures: readonly { name: string; present: boolean }[];
  thresholds: readonly { key: string; met: boolean; sinceMs: number }[];
  refused: readonly { uid: string; name: string; reason: string; message: string }[];
  evicted: readonly { uid: string; name: string; reason: string; message: string }[];
  cpus: { shared: string; alone: readonly { pod: string; container: string; cpus: string }[] } | null;
  /** ResourceClaims that pods of this node use, and what is under way about each. Absent without any, and in older recordings. */
  claims?: readonly { claim: string; pods: readonly string[]; words: string }[] | undefined;
  /** By the topology manager. Absent under its policy none, and in recordings of older daemons. */
  numa?: readonly { pod: string; container: string; chosen: string; outcome: string; hints: readonly string[] }[] | undefined;
  devices: readonly { resource: string; capacity: string; allocatable: string }[];
  /** In the order in which the collector would take them: unused the longest first, those that pods use last. */
  images: readonly ShownImage[];
  notes: readonly RecorderEntry[];
}
/** Kubernetes' events of the node and its pods, oldest first. */
export interface EventsFrame {
  t: 'events';
  events: readonly RecordedEvent[];
}
/** The first ones, and how many more there are. */
export interface Listed<T> {
  listed: readonly T[];
  more: number;
}
/** What is wrong now, as `why node` has it. Sent to every viewer, when it changes. */
export interface ProblemsFrame {
  t: 'problems';
  /** Of all, those that are not listed included. */
  count: number;
  /** Lines about the node itself: the runtime, the API server, pressures. */
  node: readonly string[];
  pods: Listed<PodTrouble>;
  /** What the kubelet that is observed has not done, and where it does something else. Absent: this node observes none, and has no {@link KubeletFrame}. */
  kubelet?: Listed<AboutKubelet>;
  /** Manifests that no pod came of. */
  manifests: Listed<{ where: string; message: string }>;
  /** Actors whose trouble `node` does not tell. */
  actors: Listed<{ path: string; name: string; reason: string }>;
  /** What is kept of deaths, the newest first. They are over, and count as nothing that is wrong now. */
  deaths: Listed<DeathShown>;
}
interface DeathShown {
  id: string;
  atMs: number;
  /** '' where the pod is gone. */
  uid: string;
  name: string;
  title: string;
}
/** A line about the kubelet that is observed. `uid`, `pod`: '' = about the node. `uid` is '' too where the pod is gone. */
export interface AboutKubelet {
  uid: string;
  pod: string;
  text: string;
}
/** Acts that are expected of the kubelet, and where it does something else than this tree would. */
export interface KubeletFrame {
  t: 'kubelet';
  /** Since when it is observed. */
  sinceMs: number;
  /** On no list of differences; the newest first. */
  standing: Listed<DisagreementShown>;
  /** Standing, and on the list of known differences. */
  known: Listed<DisagreementShown>;
  settled: Listed<DisagreementShown>;
  /** The oldest first. */
  expected: Listed<Omit<ExpectedAct, 'kind'>>;
  counts: ObserverLedger['counts'];
}
export interface DisagreementShown extends AboutKubelet, Pick<Disagreement, 'id' | 'kind' | 'sinceMs' | 'settledMs'> {
  /** The rule that it is about, or the entry in the list of known differences. */
  why: string;
}
/** Figures of the host, from the process that reads them. */
export interface HostFrame {
  t: 'host';
  atMs: number;
  figures: HostFigures | null;
  /** Why there are none; ''. */
  error: string;
}
export interface HostFigures {
  cpu: { percent: number; cores: readonly number[]; load1: number };
  memory: { totalBytes: number; availableBytes: number; swapUsedBytes: number };
  disks: readonly { mount: string; sizeBytes: number; usedBytes: number }[];
  io: { readBytesPerS: number; writeBytesPerS: number } | null;
  network: readonly { name: string; rxBytesPerS: number; txBytesPerS: number }[];
  daemon: { rssBytes: number; cpuPercent: number } | null;
}

export type ServerFrame =
  | HelloFrame
  | SnapshotFrame
  | DeltaFrame
  | ActorFrame
  | ChartFrame
  | LifeFrame
  | PodFrame
  | DecisionsFrame
  | EventsFrame
  | ProblemsFrame
  | KubeletFrame
  | HostFrame;

/** All that a viewer may say: what it looks at. Each replaces what it said before. */
export interface WatchFrame {
  t: 'watch';
  actor?: string;
  pod?: string;
  events?: boolean;
  decisions?: boolean;
  kubelet?: boolean;
  host?: boolean;
  /** The moment, of a recording. */
  atMs?: number;
}

/** Characters of a frame from a viewer. */
export const VIEWER_FRAME_CHARS_MAX = 4096;
const PATH_CHARS_MAX = 1024;

/** Null for anything that is not exactly a {@link WatchFrame}. */
export function readViewerFrame(text: string): WatchFrame | null {
  if (text.length > VIEWER_FRAME_CHARS_MAX) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || !('t' in value) || value.t !== 'watch') return null;
  const path = (key: string): string | null => {
    const given: unknown = Reflect.get(value, key);
    return given === undefined ? '' : typeof given === 'string' && given.length <= PATH_CHARS_MAX ? given : null;
  };
  const [actor, pod] = [path('actor'), path('pod')];
  if (actor === null || pod === null) return null;
  const atMs: unknown = Reflect.get(value, 'atMs');
  return {
    t: 'watch',
    actor,
    pod,
    events: Reflect.get(value, 'events') === true,
    decisions: Reflect.get(value, 'decisions') === true,
    kubelet: Reflect.get(value, 'kubelet') === true,
    host: Reflect.get(value, 'host') === true,
    ...(typeof atMs === 'number' && Number.isFinite(atMs) ? { atMs } : {}),
  };
}
