/** Notices that the kubelet ends, and what another start of it changes. /proc tells no news, so it is looked at in turns. */

import { toV1beta1 } from '@actorlet/kubelet/machines/config/v1beta1.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Before, FoundKubelet } from './found.ts';
import { stateOf } from './processes.ts';

export type KubeletChange =
  | { kind: 'ended'; pid: number }
  /** By a signal: it does nothing until another one lets it go on. */
  | { kind: 'stopped'; pid: number }
  | { kind: 'continued'; pid: number }
  /** It is there again. What it runs with is not known yet. */
  | { kind: 'starts'; pid: number }
  /** Another process with the same flags, files and names. */
  | { kind: 'restarted'; pid: number; found: FoundKubelet }
  /** What it starts with is something else now: the tree has to be made anew. */
  | { kind: 'changed'; pid: number; found: FoundKubelet; what: string[] }
  /** Something else is there, and what it is cannot be told: said once for each reason. */
  | { kind: 'unclear'; why: string };

export interface WatchOptions {
  found: FoundKubelet;
  /** Finds its next start. @throws while there is none */
  find(before: Before, seen: (pid: number) => void): Promise<FoundKubelet>;
  onChange(change: KubeletChange): void;
  clock: Clock;
  /** For tests; default: /proc. */
  proc?: string;
}

/** One small file each time. */
const LOOK_MS = 2_000;
/** So long a kubelet that has just started may not answer yet: before, what it runs with is not known. */
const ANSWERS_MS = 60_000;
/** What becomes another program or ends within this time was no kubelet of this node. */
const STAYS_MS = 2_000;

export function watchKubelet(o: WatchOptions): Disposable {
  const proc = o.proc ?? '/proc';
  let current = o.found;
  let running = true;
  let stopped = false;
  let starting = 0;
  let said = '';
  let seenMs = o.clock.wallMs();
  let over = false;
  let timer: unknown;

  const look = async (): Promise<void> => {
    const state = running ? await stateOf(proc, current.process) : null;
    if (over || state === 'unknown') return;
    if (state !== null) {
      seenMs = o.clock.wallMs();
      if (stopped !== (state === 'stopped')) o.onChange({ kind: stopped ? 'continued' : 'stopped', pid: current.process.pid });
      stopped = state === 'stopped';
      return;
    }
    if (running) o.onChange({ kind: 'ended', pid: current.process.pid });
    [running, stopped] = [false, false];
    const starts = (pid: number): void => {
      if (starting !== pid && !over) o.onChange({ kind: 'starts', pid });
      starting = pid;
    };
    let found: FoundKubelet;
    try {
      found = await o.find({ process: current.process, seenMs }, starts);
    } catch (error) {
      const why = messageOf(error);
      // How many processes there are is no news.
      const reason = why.replace(/\d+/g, '');
      if (reason !== said && !over) o.onChange({ kind: 'unclear', why });
      said = reason;
      return;
    }
    if (over) return;
    const isYoung = o.clock.wallMs() - found.process.startedMs < ANSWERS_MS;
    if (isYoung && knows(current) && !knows(found)) return;
    const what = changesOf(current, found);
    if (what.length > 0 && o.clock.wallMs() - found.process.startedMs < STAYS_MS) return;
    [current, running, starting, said] = [found, true, 0, ''];
    const { pid } = found.process;
    o.onChange(what.length === 0 ? { kind: 'restarted', pid, found } : { kind: 'changed', pid, found, what });
  };
  const again = (): void => {
    if (over) return;
    timer = o.clock.setTimeout(() => void look().then(again), LOOK_MS);
  };
  again();
  return {
    [Symbol.dispose]() {
      over = true;
      if (timer !== undefined) o.clock.clearTimeout(timer);
    },
  };
}

/** Whether it has said with which configuration it runs. */
function knows({ running }: FoundKubelet): boolean {
  return running !== null && running.config !== null;
}

/** Names of flags and fields with another value, the node's name and the version. */
function changesOf(before: FoundKubelet, after: FoundKubelet): string[] {
  // One that no longer says what it runs with is compared by files and flags.
  const [a, b] = knows(before) === knows(after) ? [before.loaded, after.loaded] : [before.files, after.files];
  const [versionBefore, versionAfter] = [before.running?.version ?? null, after.running?.version ?? null];
  return [
    ...(before.nodeName.value === after.nodeName.value ? [] : ['node name']),
    ...[...differing(a.flags, b.flags), ...differing(toV1beta1(a.config), toV1beta1(b.config))].sort(),
    ...(versionBefore === null || versionAfter === null || versionBefore === versionAfter ? [] : ['version']),
  ];
}

function differing(a: object, b: object): string[] {
  const [before, after] = [new Map<string, unknown>(Object.entries(a)), new Map<string, unknown>(Object.entries(b))];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names.filter((name) => JSON.stringify(before.get(name)) !== JSON.stringify(after.get(name)));
}
