/**
 * Which process of this machine is the kubelet, by /proc alone. Every process chooses its own name and words, so a name is only a
 * reason to look closer. Reads only; each read is bounded, for a process may hold up or flood who reads about it.
 */
import { readFileSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { oneLine } from '@actorlet/kubelet/machines/text/oneLine.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';

/** `kubelet`: a process of its own. The others run it inside theirs. */
export type KubeletKind = 'kubelet' | 'k3s' | 'microk8s';

export interface KubeletProcess {
  pid: number;
  /** Field 22 of /proc/PID/stat: with the pid it names one process until the machine starts anew. */
  startTicks: string;
  startedMs: number;
  kind: KubeletKind;
  /** The program as it was called. */
  program: string;
  /** Its words behind the program. */
  args: readonly string[];
  /** Null: it may not be looked at (CAP_SYS_PTRACE). */
  cwd: string | null;
}
/** A process with the name of a kubelet that is none for this node. */
interface RefusedProcess {
  pid: number;
  name: string;
  why: string;
}
export interface ProcessSearch {
  found: KubeletProcess[];
  refused: RefusedProcess[];
  /** Processes that /proc shows. */
  seen: number;
}

const WORDS_BYTES_MAX = 1024 * 1024;
/** The kernel waits for the memory of a process whose words are read, which may be held for long. */
const READ_MS = 10_000;
/** What a read says of a process that is not there. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ESRCH']);
/** Between the first and the last read another process may have taken the pid. */
const TRIES = 3;
/** USER_HZ, which is 100 on every machine that Linux runs on. */
const TICKS_PER_SECOND = 100;
const COMM_LENGTH_MAX = 15;
/** With these a kubelet runs no node. */
const ONLY_SAYS: ReadonlySet<string> = new Set(['--version', '--help', '-h']);
const SHOWN_CHARS_MAX = 100;

/** All processes that could be the kubelet of this machine. */
export async function searchKubelets(proc: string): Promise<ProcessSearch> {
  const pids = (await readdir(proc)).filter((name) => /^[1-9]\d*$/.test(name)).map(Number);
  const named = pids.flatMap((pid) => {
    const kind = kindOf(proc, pid);
    return kind === null ? [] : [{ pid, kind }];
  });
  const out: ProcessSearch = { found: [], refused: [], seen: pids.length };
  const looked = await Promise.all(named.map(({ pid, kind }) => lookAt({ proc, pid }, kind)));
  for (const one of looked) {
    if (one === null) continue;
    if ('why' in one) out.refused.push(one);
    else out.found.push(one);
  }
  return withoutCopies(out, new Map(looked.flatMap((one) => (one === null || 'why' in one ? [] : [[one.pid, one.parent]]))));
}

/** The process that a person names, whatever it calls itself. @throws in words */
export async function processOf(proc: string, pid: number): Promise<KubeletProcess> {
  const kind = kindOf(proc, pid) ?? 'kubelet';
  const one = await lookAt({ proc, pid, chosen: true }, kind);
  if (one === null) throw new Error(`there is no process ${pid}`);
  if ('why' in one) throw new Error(`process ${pid} ${one.why}`);
  return one;
}

/** Of the same process. `stopped`: by a signal (SIGSTOP). `unknown`: it cannot be read now. Null: it has ended. */
export async function stateOf(
  proc: string,
  { pid, startTicks }: Pick<KubeletProcess, 'pid' | 'startTicks'>,
): Promise<'runs' | 'stopped' | 'unknown' | null> {
  let stat: Stat | null;
  try {
    stat = statIn(readFileSync(`${proc}/${pid}/stat`, 'utf8'));
  } catch (error) {
    return GONE.has(codeOf(error) ?? '') ? null : 'unknown';
  }
  if (stat === null || stat.startTicks !== startTicks || stat.state === 'Z' || stat.state === 'X') return null;
  return stat.state === 'T' ? 'stopped' : 'runs';
}

function kindOf(proc: string, pid: number): KubeletKind | null {
  const comm = textOf(`${proc}/${pid}/comm`)?.trim() ?? '';
  if (comm.startsWith('kubelet') || comm === 'hyperkube') return 'kubelet';
  if (comm === 'k3s-server' || comm === 'k3s-agent' || comm === 'k3s') return 'k3s';
  return comm === 'kubelite' ? 'microk8s' : null;
}

type Looked = (KubeletProcess & { parent: number }) | RefusedProcess | null;

/** Null: it is gone. `chosen`: by a person, who may name a process of a container. */
async function lookAt(at: { proc: string; pid: number; chosen?: boolean }, kind: KubeletKind): Promise<Looked> {
  const { proc, pid } = at;
  for (let i = 0; i < TRIES; i++) {
    const before = statOf(proc, pid);
    if (before === null) return null;
    const looked = await lookOnce(at, kind, before);
    const after = statOf(proc, pid);
    // A program that becomes another one keeps its pid and its start, but not its name.
    if (after?.startTicks === before.startTicks && after.comm === before.comm) return looked;
  }
  return { pid, name: '', why: 'became another process each time it was looked at' };
}

async function lookOnce(
  { proc, pid, chosen = false }: { proc: string; pid: number; chosen?: boolean },
  kind: KubeletKind,
  stat: Stat,
): Promise<Looked> {
  const refuse = (why: string): RefusedProcess => ({ pid, name: oneLine(stat.comm), why });
  if (stat.state === 'Z' || stat.state === 'X') return refuse('has ended');
  const status = textOf(`${proc}/${pid}/status`) ?? '';
  const why = chosen ? null : stranger(status, textOf(`${proc}/${pid}/cgroup`) ?? '');
  if (why !== null) return refuse(why);
  let words: string[];
  try {
    words = wordsOf(await inTime(readRegular(`${proc}/${pid}/cmdline`, { bytesMax: WORDS_BYTES_MAX })));
  } catch (error) {
    return refuse(`has a command line that cannot be read: ${messageOf(error)}`);
  }
  const [program = '', ...rest] = words;
  if (program === '') return refuse('has no command line');
  const all = basename(program) === 'hyperkube' || stat.comm === 'hyperkube';
  if (all && rest[0] !== 'kubelet') return refuse('is hyperkube, and not as the kubelet');
  if (rest.some((word) => ONLY_SAYS.has(word.split('=', 1)[0] ?? ''))) return refuse('says its version or its flags, and ends');
  // A script has the name of its file, and the program of its shell.
  if (!chosen && kind === 'kubelet' && !all && !basename(program).startsWith('kubelet'))
    return refuse(`has a kubelet's name, and its program is ${oneLine(program.slice(0, SHOWN_CHARS_MAX))}`);
  if (kind === 'k3s' && !rest.some((word) => word === 'server' || word === 'agent'))
    return refuse('is k3s, and neither as a server nor as an agent');
  // This program as a kubelet, which a person has chosen: flags of Node come first.
  const own = /^node/.test(basename(program)) ? rest.findIndex((word) => /\/(?:actorlet\.mjs|boot\/main\.[jt]s)$/.test(word)) : -1;
  return {
    ...{ pid, startTicks: stat.startTicks, startedMs: startedMs(proc, stat.startTicks), kind, program },
    args: rest.slice(all ? 1 : own + 1),
    cwd: await readlink(`${proc}/${pid}/cwd`).catch(() => null),
    parent: stat.parent,
  };
}

/** Why a process of that name is no kubelet of this machine. Null: it may be. */
function stranger(status: string, cgroup: string): string | null {
  const uid = /^Uid:\s+(\d+)/m.exec(status)?.[1];
  if (uid !== undefined && uid !== '0') return `runs as user ${uid}, not as root`;
  // Its own number in each namespace from here down.
  const inner = /^NSpid:\s+(.+)$/m.exec(status)?.[1]?.trim().split(/\s+/) ?? [];
  if (inner.length > 1) return 'runs in a container with processes of its own';
  if (/[/-](?:kubepods|pod[0-9a-f]{8}[-_]?[0-9a-f]{4})/.test(cgroup)) return 'runs in a pod';
  return null;
}

/** A process that the kubelet has just made has its words until it becomes another program. */
function withoutCopies(search: ProcessSearch, parents: ReadonlyMap<number, number>): ProcessSearch {
  const byPid = new Map(search.found.map((one) => [one.pid, one]));
  const isCopy = (one: KubeletProcess): boolean => {
    const parent = byPid.get(parents.get(one.pid) ?? 0);
    return parent !== undefined && parent.program === one.program && parent.args.join('\0') === one.args.join('\0');
  };
  return { ...search, found: search.found.filter((one) => !isCopy(one)) };
}

/** k3s writes its title over its words: one word with spaces. */
function wordsOf(bytes: Buffer): string[] {
  const words = bytes.toString('utf8').replace(/\0+$/, '').split('\0');
  return words.length === 1 ? (words[0] ?? '').trim().split(/ +/) : words;
}

interface Stat {
  comm: string;
  state: string;
  parent: number;
  startTicks: string;
}

/** Null: there is no such process. A name may hold spaces and brackets: fields count behind the last one. */
function statOf(proc: string, pid: number): Stat | null {
  const text = textOf(`${proc}/${pid}/stat`);
  return text === null ? null : statIn(text);
}

function statIn(text: string): Stat | null {
  const m = /^\d+ \((.*)\) (.*)$/s.exec(text.trim());
  if (m === null) return null;
  const fields = (m[2] ?? '').split(' ');
  const [state = '', parent = ''] = fields;
  return { comm: (m[1] ?? '').slice(0, COMM_LENGTH_MAX), state, parent: Number(parent), startTicks: fields[19] ?? '' };
}

function startedMs(proc: string, ticks: string): number {
  const boot = /^btime (\d+)$/m.exec(textOf(`${proc}/stat`) ?? '')?.[1] ?? '0';
  return Number(boot) * 1_000 + Math.round((Number(ticks) * 1_000) / TICKS_PER_SECOND);
}

/** What the kernel has at hand: a busy machine does not hold it up. Null: it is not there, or may not be read. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

async function inTime<T>(read: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the kernel did not answer within ${READ_MS} ms`)), READ_MS);
  });
  try {
    return await Promise.race([read, late]);
  } finally {
    clearTimeout(timer);
  }
}
