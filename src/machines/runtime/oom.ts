/**
 * What the kernel's log says of processes that were killed for want of memory (resources 6.1): which lines belong
 * together, and whether the whole node ran out or only a group of processes that has a limit. Pure.
 */
import { viewKey } from '../supervision/address.ts';

/** What is known of a kill that is being told, before the line that ends it. */
interface Open {
  /** The group whose limit was reached; `/` for the whole node, which is so until a line says otherwise. */
  limited: string;
  lines: readonly string[];
}

/** What the kernel said of one kill, for people. */
export interface OomReport {
  /** The group of the process that was killed; '' where an old kernel does not say. */
  group: string;
  pid: number;
  /** As dmesg prints them. */
  lines: readonly string[];
}

export interface OomLedger {
  /** Number of the last record that was read; null before the first look. */
  seq: number | null;
  open: Open | null;
  /** Kills for want of the node's own memory that were told as events by this daemon. */
  told: number;
  /** Of the last kills, the oldest first. */
  reports: readonly OomReport[];
}
export const EMPTY_OOM_LEDGER: OomLedger = { seq: null, open: null, told: 0, reports: [] };

const REPORTS_MAX = 16;
const REPORT_LINES_MAX = 8;
const LINE_CHARS_MAX = 400;

/** Where the next incarnation of the actor goes on. */
export const oomView = viewKey<OomLedger>('oom');

export interface OomKill {
  /** `/`: the node's memory ran out. Else the cgroup whose limit was reached. */
  limited: string;
  process: string;
  pid: number;
}

/** Reason of the event about a node that ran out of memory. */
export const SYSTEM_OOM = 'SystemOOM';
const NODE = '/';
/** A group whose name was not told. */
const UNNAMED = '';

/** The facility of the kernel's own records. Processes write the others, which must not be believed here. */
const KERNEL_FACILITY = 0;
const RECORD = /^(\d+),(\d+),(\d+),[^;]*;([^\n]*)/;
/** Lines of a report that people look for. The others are registers, stacks and tables of processes. */
const TELLING = /invoked oom-killer:|^memory: usage |^swap: usage |^Task in |^oom-kill:|Killed process /;
const START = 'invoked oom-killer:';
/**
 * The parts of a detail that are found by a search each, so that a long line takes time in its length. Names of processes and groups
 * may hold commas: the numbers at the end are what the name before them is found by.
 */
const DETAIL_BEGIN = /^oom-kill:constraint=\w+,nodemask=/;
const LIMITED_BY = /,mems_allowed=[\d,-]*(,oom_memcg=|,global_oom(?=,))/;
const DETAIL_END = /,pid=(\d+),uid=\d+$/;
const TASK_GROUP = ',task_memcg=';
const TASK = ',task=';
const GROUP_DETAIL = 'oom-kill:constraint=CONSTRAINT_MEMCG';
/** Kernels before 5.0. */
const OLD_DETAIL = /^Task in .* killed as a result of limit of (.*)$/;
const KILLED = /Killed process (\d+),?(?: UID \d+,)? \(/;
const OF_A_GROUP = 'Memory cgroup out of memory';

/** Reads on from where the ledger stands; records it has seen are passed over. */
export function readOoms(ledger: OomLedger, part: { records: readonly string[]; seq: number }): { ledger: OomLedger; kills: OomKill[] } {
  const kills: OomKill[] = [];
  let { seq, open, reports } = ledger;
  for (const record of part.records) {
    const [, priority, number, us = '0', text = ''] = RECORD.exec(record) ?? [];
    if (number === undefined || (seq !== null && Number(number) <= seq)) continue;
    seq = Number(number);
    if (Number(priority) >> 3 !== KERNEL_FACILITY) continue;
    const lines = withLine(open !== null && !text.includes(START) ? open.lines : [], text, us);
    const read = readLine(open, text);
    open = read.open === null ? null : { ...read.open, lines };
    if (read.kill !== null) {
      kills.push(read.kill);
      reports = [...reports, { group: groupOf(text), pid: read.kill.pid, lines }].slice(-REPORTS_MAX);
    } else if (open === null) reports = withLastWord(reports, text, us);
  }
  if (seq === null || part.seq > seq) seq = part.seq;
  return { ledger: { seq, open, told: ledger.told + kills.filter(isSystemOom).length, reports }, kills };
}

function withLine(lines: readonly string[], text: string, us: string): readonly string[] {
  if (lines.length >= REPORT_LINES_MAX || !TELLING.test(text)) return lines;
  return [...lines, `[${(Number(us) / 1e6).toFixed(6)}] ${text.slice(0, LINE_CHARS_MAX)}`];
}

/** The line after a whole detail: how much memory it had. */
function withLastWord(reports: readonly OomReport[], text: string, us: string): readonly OomReport[] {
  const last = reports.at(-1);
  const [, pid] = KILLED.exec(text) ?? [];
  if (last === undefined || Number(pid) !== last.pid) return reports;
  return [...reports.slice(0, -1), { ...last, lines: withLine(last.lines, text, us) }];
}

/** Of a whole detail. */
function groupOf(text: string): string {
  const from = text.indexOf(TASK_GROUP);
  const to = text.lastIndexOf(`${TASK}`);
  return from === -1 || to <= from ? '' : text.slice(from + TASK_GROUP.length, to);
}

function readLine(open: Open | null, text: string): { open: Omit<Open, 'lines'> | null; kill: OomKill | null } {
  // A report that was begun before and never ended is given up.
  if (text.includes(START)) return { open: { limited: NODE }, kill: null };
  if (open === null) return { open, kill: null };
  const detail = readDetail(text);
  if (detail !== null) return { open: null, kill: detail };
  // A detail that was torn by what another processor said meanwhile: what killed ends it, and is not the node's want.
  if (text.startsWith(GROUP_DETAIL)) return { open: { limited: UNNAMED }, kill: null };
  const old = OLD_DETAIL.exec(text);
  if (old !== null) return { open: { limited: old[1] ?? UNNAMED }, kill: null };
  const killed = KILLED.exec(text);
  const nameEnd = text.lastIndexOf(')');
  const nameFrom = killed === null ? 0 : killed.index + killed[0].length;
  if (killed === null || nameEnd < nameFrom) return { open, kill: null };
  const limited = open.limited === NODE && text.startsWith(OF_A_GROUP) ? UNNAMED : open.limited;
  return { open: null, kill: { limited, process: text.slice(nameFrom, nameEnd), pid: Number(killed[1]) } };
}

/** A whole detail; null: no detail, or a torn one. */
function readDetail(text: string): OomKill | null {
  if (!DETAIL_BEGIN.test(text)) return null;
  const limit = LIMITED_BY.exec(text);
  const end = DETAIL_END.exec(text);
  if (limit === null || end === null) return null;
  const from = limit.index + limit[0].length;
  const group = text.indexOf(TASK_GROUP, from);
  const task = text.lastIndexOf(TASK, end.index - TASK.length);
  if (group === -1 || task < group + TASK_GROUP.length) return null;
  const limited = limit[1] === ',oom_memcg=' ? text.slice(from, group) : NODE;
  return { limited, process: text.slice(task + TASK.length, end.index), pid: Number(end[1]) };
}

export function isSystemOom(kill: OomKill): boolean {
  return kill.limited === NODE;
}

/** The reference's words. */
export function systemOomMessage({ process, pid }: OomKill): string {
  const victim = process === '' || pid === 0 ? '' : `, victim process: ${process}, pid: ${pid}`;
  return `System OOM encountered${victim}`;
}
