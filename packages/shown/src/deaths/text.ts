/** A bundle as text for people, and the list of bundles. Pure. */
import type { DeathHead } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { printable, renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import type { DeathBundle } from './bundle.ts';
import { bytesText } from './figures.ts';
import { titleOf } from './sentences.ts';

function subjectOf({ pod, container }: Pick<DeathHead, 'pod' | 'container'>): string {
  const name = `${pod.namespace}/${pod.name}`;
  return container === '' ? `Pod ${name}` : `Container ${container} of pod ${name}`;
}

/** The newest first. */
export function deathTable(heads: readonly DeathHead[], o: { nowMs: number }): string[] {
  if (heads.length === 0) return ['No deaths are kept.'];
  const rows = heads
    .toReversed()
    .map((head) => [
      `${shortDuration(o.nowMs - head.atMs)} ago`,
      `${head.pod.namespace}/${head.pod.name}`,
      head.container === '' ? '-' : head.container,
      head.id,
      head.nth > 1 ? `${head.title} (${nthOf(head)})` : head.title,
    ]);
  return renderTable(['WHEN', 'POD', 'CONTAINER', 'ID', 'WHAT'], rows);
}
/** A container that ended was started once more than it ended before. */
function nthOf(head: DeathHead): string {
  return isRun(head) ? `run ${head.nth}` : `${head.nth} times`;
}
function isRun({ kind }: DeathHead): boolean {
  return kind === 'oom' || kind === 'probe' || kind === 'exit' || kind === 'signal';
}

export interface Section {
  title: string;
  lines: readonly string[];
}

/** Without what the container wrote: for a reader who must not see it. */
export function withoutPrivate(bundle: DeathBundle): DeathBundle {
  const { end } = bundle.death;
  const isHook = bundle.death.reason === 'PostStartHookError';
  const death = {
    ...bundle.death,
    ...(isHook ? { message: LEFT_OUT } : {}),
    ...(end === undefined ? {} : { message: '', end: { ...end, message: '' } }),
  };
  // What a probe or a hook wrote stands in the title, in rows and in events.
  const probes = bundle.probes.map((probe) => ({ ...probe, said: [] }));
  const title = isHook || death.kind === 'probe' ? titleOf({ ...bundle, death, probes, graceSeconds: 0 }) : bundle.head.title;
  return {
    ...bundle,
    head: { ...bundle.head, title },
    log: { lines: [], note: LEFT_OUT },
    death,
    probes,
    events: bundle.events.map((e) => (SAYING.has(e.reason) ? { ...e, message: LEFT_OUT } : e)),
    why: [],
  };
}
const LEFT_OUT = 'left out: --private';
/** Reasons of events that repeat what a probe or a hook wrote. */
const SAYING: ReadonlySet<string> = new Set(['Unhealthy', 'FailedPostStartHook', 'FailedPreStopHook']);

export function deathLines(bundle: DeathBundle): string[] {
  const sections = sectionsOf(bundle).flatMap(({ title, lines }) => ['', title, ...lines.map((line) => `  ${line}`)]);
  return [...headLines(bundle), ...sections].map(printable);
}

export function headLines({ head, death, keptAtMs, node }: DeathBundle): string[] {
  const lines = [`${subjectOf(head)}: ${head.title}`, `  at ${new Date(head.atMs).toISOString()} on node ${node.name}`];
  if (head.nth > 1) lines.push(`  ${nthOf(head)}${isRun(head) ? ' of this container' : ' so far'}`);
  const late = keptAtMs - head.atMs;
  if (late > LATE_MS) lines.push(`  what follows was gathered ${shortDuration(late)} later`);
  if (death.pod.uid !== '') lines.push(`  pod uid ${death.pod.uid}${head.owner === '' ? '' : `, made by ${head.owner}`}`);
  return lines;
}
/** Gathering waits a moment for what is said late. */
const LATE_MS = 10_000;

export function sectionsOf(b: DeathBundle): Section[] {
  const all: Section[] = [
    { title: 'What to do', lines: b.next },
    { title: 'The end', lines: endLines(b) },
    { title: 'Last lines of its log', lines: logLines(b) },
    { title: 'The kernel said', lines: b.kernel },
    { title: 'Probes', lines: probeLines(b) },
    { title: 'Memory and processor', lines: useLines(b) },
    { title: 'Events of the pod (oldest first)', lines: eventLines(b) },
    { title: 'What actorctl why said then', lines: b.why },
    // It is a part of that.
    { title: 'Because (oldest first)', lines: b.why.length > 0 ? [] : b.causes.map((c) => `${clockTime(c.atMs)}  ${c.what}  [${c.by}]`) },
    { title: 'Asked of the runtime', lines: callLines(b) },
    { title: `What the pod's worker went through`, lines: stepLines(b) },
    { title: 'The node then', lines: nodeLines(b) },
    { title: 'To see more', lines: moreLines(b) },
  ];
  return all.filter(({ lines }) => lines.length > 0);
}

function endLines({ death, stopSaid, limits, nextStartAtMs, keptAtMs }: DeathBundle): string[] {
  const { end, image, message, restartCount } = death;
  const rows: [string, string][] = [];
  if (end !== undefined) {
    rows.push(['exit code', `${end.exitCode}${end.reason === '' ? '' : ` (${end.reason})`}`]);
    if (end.startedAtMs > 0) rows.push(['started', new Date(end.startedAtMs).toISOString()]);
    if (end.finishedAtMs > 0) rows.push(['ended', new Date(end.finishedAtMs).toISOString()]);
    rows.push(['container id', end.containerId]);
  }
  if (stopSaid !== '') rows.push(['this node said', stopSaid]);
  const text = end?.message ?? message;
  if (text !== '') rows.push([end === undefined ? 'message' : 'last message', text]);
  if (image !== '') rows.push(['image', image]);
  const amounts = Object.entries(limits).map(([name, amount]) => `${name} ${amount}`);
  if (amounts.length > 0) rows.push(['limits', amounts.join(', ')]);
  if (death.container !== '') rows.push(['restarts', String(restartCount)]);
  if (nextStartAtMs !== null)
    rows.push(['starts again', `${shortDuration(nextStartAtMs - keptAtMs)} after this was gathered, at ${clockTime(nextStartAtMs)}`]);
  return rows.filter(([, value]) => value !== '').flatMap(([name, value]) => multiLine(name.padEnd(NAME_WIDTH), value));
}
const NAME_WIDTH = 15;
function multiLine(name: string, value: string): string[] {
  const [first = '', ...more] = value.replace(/\n+$/, '').split('\n');
  return [`${name}${first}`, ...more.map((line) => `${' '.repeat(NAME_WIDTH)}${line}`)];
}

function logLines({ log, death }: DeathBundle): string[] {
  if (death.container === '') return [];
  const lines = log.lines.map(({ at, text }) => (at === '' ? text : `${timeOf(at)}  ${text}`));
  return log.note === '' ? lines : [`(${log.note})`, ...lines];
}
function timeOf(at: string): string {
  return at.slice(11, 23).replace(/[Z+-].*$/, '');
}

function probeLines({ probes }: DeathBundle): string[] {
  return probes.flatMap(({ type, how, last, said }) => [
    `${type}: ${how}${last === '' ? ', no result yet' : `; last: ${last}`}`,
    ...said.map((text) => `  ${text}`),
  ]);
}

function useLines({ usage, group, limits, head, death }: DeathBundle): string[] {
  const lines: string[] = [];
  const own = usage.filter((s) => s.container === head.container || head.container === '');
  for (const { atMs, container, memoryBytes, cpuCores } of own.slice(-USE_LINES_MAX)) {
    const figures = [
      memoryBytes === null ? '' : `${bytesText(memoryBytes)} of memory`,
      cpuCores === null ? '' : `${coresText(cpuCores)} of processor`,
    ];
    lines.push(
      `${clockTime(atMs)}  ${container === head.container ? '' : `${container || 'pod'}: `}${figures.filter((f) => f !== '').join(', ')}`,
    );
  }
  if (lines.length === 0 && death.end !== undefined)
    lines.push('(nobody asked for figures in the two minutes before: a scrape of /metrics/resource every 15 s is kept here)');
  if (group !== null) {
    const { memoryBytes, peakBytes, maxBytes, oomKills, cpuSeconds, throttledSeconds } = group;
    const parts = [
      peakBytes === null ? '' : `${bytesText(peakBytes)} at most so far`,
      memoryBytes === null ? '' : `${bytesText(memoryBytes)} when this was gathered`,
      maxBytes === null ? '' : `limit ${bytesText(maxBytes)}`,
      oomKills === null || oomKills === 0 ? '' : `${oomKills} ${oomKills === 1 ? 'process' : 'processes'} killed for want of it`,
    ].filter((part) => part !== '');
    if (parts.length > 0) lines.push(`memory of the whole pod: ${parts.join(', ')}`);
    if (cpuSeconds !== null)
      lines.push(
        `processor of the whole pod: ${cpuSeconds.toFixed(1)} s${throttledSeconds === null || throttledSeconds === 0 ? '' : `, held back ${throttledSeconds.toFixed(1)} s by its limit`}`,
      );
  }
  if (lines.length > 0 && limits.memory !== undefined) lines.push(`the container's limit: ${limits.memory} of memory`);
  return lines;
}
const USE_LINES_MAX = 24;
function coresText(cores: number): string {
  return cores >= 1 ? `${cores.toFixed(2)} cores` : `${Math.round(cores * 1000)}m`;
}

function eventLines({ events }: DeathBundle): string[] {
  return events.map((e) => {
    const times = e.count > 1 ? ` (${e.count} times since ${clockTime(e.firstAtMs)})` : '';
    return `${clockTime(e.atMs)}  ${e.type === 'Warning' ? 'Warning ' : ''}${e.reason}: ${e.message}${times}`;
  });
}
/** The newest; as data there are all. */
const SHOWN_MAX = 20;
function callLines({ calls, keptAtMs }: DeathBundle): string[] {
  return calls.slice(-SHOWN_MAX).map((c) => {
    const took = c.endMs === null ? `no answer for ${shortDuration(keptAtMs - c.startMs)}` : shortDuration(c.endMs - c.startMs);
    return `${clockTime(c.startMs)}  ${c.method} ${c.about}  ${took}${c.error === '' ? '' : `, failed: ${c.error}`}`;
  });
}
function stepLines({ steps }: DeathBundle): string[] {
  return steps.slice(-SHOWN_MAX).map((s) => `${clockTime(s.atMs)}  ${s.to}  on ${s.event}${s.reason === '' ? '' : ` (${s.reason})`}`);
}

function nodeLines({ node }: DeathBundle): string[] {
  const lines = [
    [`actorlet ${node.version}`, node.runtime, node.kernel === '' ? '' : `Linux ${node.kernel}`].filter((part) => part !== '').join(', '),
  ];
  if (node.startedAtMs > 0) lines.push(`the daemon runs since ${new Date(node.startedAtMs).toISOString()}`);
  if (node.memory !== null)
    lines.push(`${bytesText(node.memory.availableBytes)} of ${bytesText(node.memory.capacityBytes)} memory available`);
  lines.push(
    node.pressures.length === 0
      ? 'no pressure: neither memory, nor disk, nor process ids are short'
      : `under pressure: ${node.pressures.join(', ')}`,
  );
  return [
    ...lines,
    ...node.conditions.filter(isNews).map((c) => `${c.type} ${c.status}${c.reason === '' ? '' : ` (${c.reason})`}: ${c.message}`),
  ];
}
/** Conditions that are as they should be say nothing. */
function isNews({ type, status }: { type: string; status: string }): boolean {
  return (type === 'Ready') !== (status === 'True');
}

function moreLines({ replay, head, worker, steps, cut }: DeathBundle): string[] {
  const at = new Date(head.atMs).toISOString();
  const pod = `${head.pod.namespace}/${head.pod.name}`;
  const lines = [`actorctl why ${pod}`, `actorctl timeline ${head.pod.uid}`];
  if (replay.recording !== '') lines.push(`actorctl --recording ${replay.recording} --at ${at} why ${pod}`);
  if (replay.inputs !== '') lines.push(`actorctl replay ${replay.inputs} --ui --until '${worker} state=${steps.at(-1)?.to ?? 'syncing'}'`);
  if (replay.recording === '' && replay.inputs === '')
    lines.push('(no recording was made: with --actorlet-record-inputs=DIR this moment could be replayed)');
  if (cut.length > 0) lines.push(`(cut, since this bundle would be too large: ${cut.join(', ')})`);
  return lines;
}
