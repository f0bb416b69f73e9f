/**
 * What a machine's kernel says while faults rain: processes killed for want of the node's memory, or of that of a group
 * with a limit, in the words of newer and older kernels, at times with a pause in the middle; and times in which nobody
 * may listen.
 */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimKernelLog } from '@actorlet/world/src/host/kernelLog.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

export interface KernelVoice {
  begin(): void;
  /** Ends what it says, and lets everybody listen. */
  heal(): void;
  /** Kills for want of the node's own memory: the process, and the record that begins what is said of it. */
  readonly nodeKills: readonly { pid: number; seq: number }[];
}

const KINDS = ['node', 'group', 'old-node', 'old-group', 'forged', 'deaf'] as const;
type Kind = (typeof KINDS)[number];
/** Between two things that are said. */
const EVERY_MS = { min: 1_500, max: 12_000 } as const;
const DEAF_MS = { min: 500, max: 12_000 } as const;
/** In the middle of what is said. */
const PAUSE_MS = 700;
/** The facility that a process writes with. */
const USER_FACILITY = 1;
const GROUP = '/kubepods/burstable/pod5f0c/web';

function said(kind: Exclude<Kind, 'deaf'>, pid: number): string[] {
  const process = `hog${pid}`;
  const begin = [`${process} invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0`];
  const where = 'nodemask=(null),cpuset=web,mems_allowed=0';
  const who = `task_memcg=${GROUP},task=${process},pid=${pid},uid=0`;
  const killed = `Killed process ${pid} (${process}) total-vm:8388608kB, anon-rss:4194304kB, file-rss:0kB`;
  switch (kind) {
    case 'node':
    case 'forged':
      return [...begin, 'Mem-Info:', `oom-kill:constraint=CONSTRAINT_NONE,${where},global_oom,${who}`, `Out of memory: ${killed}`];
    case 'group':
      return [
        ...begin,
        `oom-kill:constraint=CONSTRAINT_MEMCG,${where},oom_memcg=${GROUP},${who}`,
        `Memory cgroup out of memory: ${killed}`,
      ];
    case 'old-node':
      return [...begin, `Out of memory: Kill process ${pid} (${process}) score 900 or sacrifice child`, killed];
    case 'old-group':
      return [...begin, `Task in ${GROUP} killed as a result of limit of ${GROUP}`, killed];
  }
}

export function kernelVoice(o: {
  log: SimKernelLog;
  rng: SimRng;
  clock: Pick<Clock, 'setTimeout'>;
  /** For the trace. */
  on(what: string): void;
}): KernelVoice {
  const { log, rng, clock } = o;
  const nodeKills: { pid: number; seq: number }[] = [];
  let healed = false;
  let nextPid = 1_000;
  /** What is still to be said of a kill. */
  let rest: (() => void) | undefined;

  const finish = (): void => {
    rest?.();
    rest = undefined;
  };
  const tell = (kind: Exclude<Kind, 'deaf'>): void => {
    const pid = nextPid++;
    const lines = said(kind, pid);
    const facility = kind === 'forged' ? USER_FACILITY : 0;
    const cut = rng.chance(0.4) ? 1 + rng.int(lines.length - 1) : lines.length;
    // A reader that begins in the middle hears of nobody's end.
    if (kind === 'node' || kind === 'old-node') nodeKills.push({ pid, seq: log.seq + 1 });
    log.say(lines.slice(0, cut), facility);
    rest = () => log.say(lines.slice(cut), facility);
    if (cut === lines.length) finish();
    else clock.setTimeout(finish, PAUSE_MS);
  };
  const act = (): void => {
    if (healed) return;
    const kind = rng.pick(KINDS) ?? 'node';
    o.on(kind);
    if (kind === 'deaf') {
      log.readable = false;
      clock.setTimeout(
        () => {
          log.readable = true;
        },
        rng.between(DEAF_MS.min, DEAF_MS.max),
      );
    } else tell(kind);
    again();
  };
  const again = (): unknown => clock.setTimeout(act, rng.between(EVERY_MS.min, EVERY_MS.max));
  return {
    begin: () => void again(),
    heal() {
      healed = true;
      finish();
      log.readable = true;
    },
    nodeKills,
  };
}
