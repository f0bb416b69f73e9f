/** All that is kept of one death: what `actorctl death` shows. Made from facts, with every text hidden that may hold a secret. Pure. */

import type { UsageSample } from '@actorlet/kubelet/machines/edge/stats/usageLog.ts';
import { eventMessage } from '@actorlet/kubelet/machines/foundation/eventLog.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { Death, DeathHead } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { BUNDLE_ENTRIES, type ContainerSpan, type PodHistory, type RuntimeCall } from '@actorlet/kubelet/machines/recorder/podHistory.ts';
import type { Cause } from '@actorlet/kubelet/machines/supervision/address.ts';
import { titleOf, whatNext } from './sentences.ts';

/** Grows when an older reader would misread the file. */
const BUNDLE_FORMAT = 1;

export interface LogLine {
  /** As the runtime wrote it; '' where a line goes on. */
  at: string;
  stream: string;
  text: string;
}
export interface ProbeShown {
  type: string;
  /** `GET http://:8080/healthz, every 10s, 3 failures in a row are too many`. */
  how: string;
  /** `success`, `failure`; '' before the first result. */
  last: string;
  /** What its last failures said. */
  said: readonly string[];
}
/** The group of processes of the pod, read when the bundle was made. */
export interface GroupRead {
  memoryBytes: number | null;
  peakBytes: number | null;
  maxBytes: number | null;
  /** Processes that the kernel killed in it so far. */
  oomKills: number | null;
  cpuSeconds: number | null;
  throttledSeconds: number | null;
}
export interface NodeThen {
  name: string;
  version: string;
  runtime: string;
  kernel: string;
  pressures: readonly string[];
  conditions: readonly { type: string; status: string; reason: string; message: string }[];
  memory: { capacityBytes: number; availableBytes: number } | null;
  /** Since when the daemon runs, wall ms. */
  startedAtMs: number;
}
interface Replay {
  /** `--actorlet-record` file; '' = none. */
  recording: string;
  /** Folder of recorded inputs; '' = none. */
  inputs: string;
}

export interface DeathFacts {
  death: Death;
  id: string;
  nth: number;
  /** Wall ms at which the bundle was made. */
  nowMs: number;
  limits: Readonly<Record<string, string>>;
  /** What the node said when it stopped the container; '' = it did not. */
  stopSaid: string;
  why: readonly string[];
  causes: readonly Cause[];
  history: PodHistory;
  /** Path of its worker. */
  worker: string;
  probes: readonly ProbeShown[];
  usage: readonly UsageSample[];
  group: GroupRead | null;
  kernel: readonly string[];
  log: { lines: readonly LogLine[]; note: string };
  events: readonly RecordedEvent[];
  /** Grace period of the pod in seconds. */
  graceSeconds: number;
  /** When the container starts again, wall ms. */
  nextStartAtMs: number | null;
  node: NodeThen;
  replay: Replay;
  /** Hides what is secret. */
  hidden(text: string): string;
  /** The same of what the container may have said. */
  said(text: string): string;
  /** The same of an image. */
  image(text: string): string;
}

export interface DeathBundle {
  format: number;
  head: DeathHead;
  keptAtMs: number;
  death: Death;
  stopSaid: string;
  nextStartAtMs: number | null;
  limits: Readonly<Record<string, string>>;
  next: readonly string[];
  why: readonly string[];
  causes: readonly Pick<Cause, 'atMs' | 'by' | 'what'>[];
  worker: string;
  steps: readonly PodHistory['steps'][number][];
  calls: readonly RuntimeCall[];
  containers: readonly ContainerSpan[];
  probes: readonly ProbeShown[];
  usage: readonly UsageSample[];
  group: GroupRead | null;
  kernel: readonly string[];
  log: { lines: readonly LogLine[]; note: string };
  events: readonly { atMs: number; firstAtMs: number; type: string; reason: string; message: string; count: number }[];
  node: NodeThen;
  replay: Replay;
  /** Parts that were cut since the bundle was too large. */
  cut: readonly string[];
}

const EVENTS_MAX = 40;
const SAMPLES_MAX = 200;
const WHY_LINES_MAX = 80;
/** Longest line of any text but those of logs. */
const LINE_CHARS_MAX = 1024;

export function bundleOf(f: DeathFacts): DeathBundle {
  const line = (text: string): string => cut(f.hidden(text), LINE_CHARS_MAX);
  const saidLine = (text: string): string => cut(f.said(text), LINE_CHARS_MAX);
  const death: Death = {
    ...f.death,
    message: cut(f.said(f.death.message), MESSAGE_CHARS_MAX),
    reason: line(f.death.reason),
    image: f.image(f.death.image),
    ...(f.death.end === undefined
      ? {}
      : { end: { ...f.death.end, reason: line(f.death.end.reason), message: cut(f.said(f.death.end.message), MESSAGE_CHARS_MAX) } }),
  };
  const told = {
    ...f,
    death,
    stopSaid: line(f.stopSaid),
    probes: f.probes.map((p) => ({ ...p, how: line(p.how), said: p.said.map(saidLine) })),
  };
  const { kind, pod, owner, container, atMs, key } = death;
  return {
    format: BUNDLE_FORMAT,
    head: { id: f.id, kind, pod, owner, container, atMs, key, title: cut(titleOf(told), LINE_CHARS_MAX), nth: f.nth },
    keptAtMs: f.nowMs,
    death,
    stopSaid: told.stopSaid,
    nextStartAtMs: f.nextStartAtMs,
    limits: f.limits,
    next: whatNext(told),
    why: f.why.slice(0, WHY_LINES_MAX).map((text) => (SAID.test(text) ? saidLine : line)(text)),
    causes: f.causes.map(({ atMs: at, by, what }) => ({ atMs: at, by, what: line(what) })),
    worker: f.worker,
    steps: f.history.steps.slice(-BUNDLE_ENTRIES.steps).map((step) => ({ ...step, reason: line(step.reason) })),
    calls: f.history.calls.slice(-BUNDLE_ENTRIES.calls).map((call) => ({ ...call, about: f.image(call.about), error: line(call.error) })),
    containers: f.history.containers.slice(-BUNDLE_ENTRIES.spans),
    probes: told.probes,
    usage: f.usage.slice(-SAMPLES_MAX),
    group: f.group,
    kernel: f.kernel.map(line),
    log: f.log,
    events: f.events.slice(-EVENTS_MAX).map((e) => ({
      ...{ atMs: e.atMs, firstAtMs: e.firstAtMs ?? e.atMs, type: e.type, reason: e.reason, count: e.count },
      message: (e.type === 'Warning' ? saidLine : line)(eventMessage(e)),
    })),
    node: { ...f.node, conditions: f.node.conditions.map((c) => ({ ...c, reason: line(c.reason), message: line(c.message) })) },
    replay: f.replay,
    cut: [],
  };
}
const MESSAGE_CHARS_MAX = 4096;

/** The same, when it became known after it was kept that the kernel killed it for want of memory. */
export function withKernelsWord(b: DeathBundle, kernel: readonly string[]): DeathBundle {
  const death: Death = { ...b.death, kind: 'oom' };
  const told = { ...b, death, kernel, graceSeconds: 0 };
  return { ...b, death, kernel, head: { ...b.head, kind: 'oom', title: cut(titleOf(told), LINE_CHARS_MAX) }, next: whatNext(told) };
}
/** Lines of `why` below that of a container: they repeat its messages. */
const SAID = /^ {6}\S/;

export function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}

/** The file of a bundle: a line with its head, and one with all of it. Undefined: not even without its long parts it fits. */
export function bundleText(bundle: DeathBundle, bytesMax: number): string | undefined {
  let left = bundle;
  for (const shorten of [asItIs, ...SHORTER]) {
    left = shorten(left);
    const text = `${JSON.stringify(left.head)}\n${JSON.stringify(left)}\n`;
    if (new TextEncoder().encode(text).length <= bytesMax) return text;
  }
  return undefined;
}
const asItIs = (bundle: DeathBundle): DeathBundle => bundle;
const noted = (bundle: DeathBundle, what: string): readonly string[] => (bundle.cut.includes(what) ? bundle.cut : [...bundle.cut, what]);

/** What goes first: the least telling. */
const SHORTER: readonly ((bundle: DeathBundle) => DeathBundle)[] = [
  (b) => ({ ...b, log: halfLog(b), cut: noted(b, 'the log') }),
  (b) => ({ ...b, log: halfLog(b), events: b.events.slice(-10), cut: noted(b, 'events') }),
  (b) => ({
    ...b,
    log: halfLog(b),
    steps: b.steps.slice(-20),
    calls: b.calls.slice(-20),
    usage: b.usage.slice(-60),
    cut: noted(b, 'states, calls and figures'),
  }),
  (b) => ({ ...b, log: { lines: [], note: 'the log was left out: this bundle would be too large' } }),
  (b) => ({ ...b, why: b.why.slice(0, 20), containers: [], usage: [], causes: [], cut: noted(b, 'the explanation') }),
  (b) => ({ ...b, events: [], steps: [], calls: [], kernel: [], probes: [], why: [], node: { ...b.node, conditions: [] } }),
];
function halfLog({ log }: DeathBundle): DeathBundle['log'] {
  return { ...log, lines: log.lines.slice(Math.ceil(log.lines.length / 2)) };
}

/** What a file holds. Null: it is damaged, or of another format. */
export function readBundle(text: string): DeathBundle | null {
  const body = text.split('\n', 2)[1];
  const bundle = parsed(body ?? '');
  return isObject(bundle) && bundle.format === BUNDLE_FORMAT && isHead(bundle.head) ? (bundle as unknown as DeathBundle) : null;
}
export function readHead(firstLine: string): DeathHead | null {
  const head = parsed(firstLine);
  return isHead(head) ? head : null;
}
function isHead(value: unknown): value is DeathHead {
  if (!isObject(value) || !isObject(value.pod)) return false;
  const texts = [
    value.id,
    value.kind,
    value.owner,
    value.container,
    value.key,
    value.title,
    value.pod.uid,
    value.pod.name,
    value.pod.namespace,
  ];
  return (
    texts.every((text) => typeof text === 'string') && [value.atMs, value.nth].every((n) => typeof n === 'number' && Number.isFinite(n))
  );
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
