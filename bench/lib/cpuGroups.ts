/**
 * CPU time by groups of processes, ended ones and what they started included: each group is a control group of its own,
 * for a runtime's shims and CNI plugins come and go faster than anybody could add them up from /proc.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { stat } from './procs.ts';

const KTHREADD = 2;

/** Milliseconds of CPU time since some moment, by group. */
export type Spent = Readonly<Record<string, number>>;

/** Where time is accounted: the cpuacct hierarchy of version 1, or the one of version 2, which does so without a controller. */
function hierarchy(): { dir: string; usageMs(dir: string): number } {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const find = (fits: (type: string, options: string) => boolean): string | undefined => {
    const found = mounts.find((line) => {
      const [type = '', , options = ''] = (line.split(' - ')[1] ?? '').split(' ');
      return fits(type, options);
    });
    return found?.split(' ')[4];
  };
  const v1 = find((type, options) => type === 'cgroup' && options.split(',').includes('cpuacct'));
  if (v1 !== undefined) return { dir: v1, usageMs: (dir) => Number(readFileSync(join(dir, 'cpuacct.usage'), 'utf8')) / 1e6 };
  const v2 = find((type) => type === 'cgroup2');
  if (v2 === undefined) throw new Error('no control groups are mounted: CPU time cannot be told apart');
  return {
    dir: v2,
    usageMs: (dir) => Number(/^usage_usec (\d+)$/m.exec(readFileSync(join(dir, 'cpu.stat'), 'utf8'))?.[1] ?? Number.NaN) / 1000,
  };
}

function kernelThreadsMs(): number {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = all.map((name) => stat(Number(name))).filter((s) => s !== undefined && s.parent === KTHREADD);
  return stats.reduce((sum, s) => sum + (s?.ownMs ?? 0), 0);
}

export class CpuGroups {
  readonly #hierarchy = hierarchy();
  readonly #dir: string;
  readonly #containersDirs: readonly string[];
  readonly #placed = new Map<string, number>();

  /** `containers`: parent groups of containers, with what runc does inside them before a container's own program begins. */
  constructor(containers: readonly string[]) {
    this.#dir = join(this.#hierarchy.dir, `actorlet-bench-${process.pid}`);
    this.#containersDirs = containers.map((dir) => join(this.#hierarchy.dir, dir));
    mkdirSync(this.#dir);
  }

  /** From now on `pid`, and what it starts, counts as `group`; one process each. What it started before stays where it is. */
  place(group: string, pid: number | undefined): void {
    if (pid === undefined) throw new Error(`${group}: no such process runs`);
    if (this.#placed.get(group) === pid) return;
    const dir = join(this.#dir, group);
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'cgroup.procs'), String(pid));
    this.#placed.set(group, pid);
  }

  /** `runtime` is told apart: containerd itself, what it runs and waits for (CNI plugins, starts of shims), shims with runc. */
  read(): Spent {
    const spent: Record<string, number> = {};
    for (const [group, pid] of this.#placed) {
      const whole = this.#hierarchy.usageMs(join(this.#dir, group));
      if (group !== 'runtime') {
        spent[group] = whole;
        continue;
      }
      const { ownMs, childrenMs } = stat(pid) ?? { ownMs: 0, childrenMs: 0 };
      spent['runtime: daemon'] = ownMs;
      spent['runtime: CNI plugins, starts of shims'] = childrenMs;
      spent['runtime: shims, runc'] = whole - ownMs - childrenMs;
    }
    // The runtime makes them with the first container in it.
    spent.containers = this.#containersDirs.filter((dir) => existsSync(dir)).reduce((sum, dir) => sum + this.#hierarchy.usageMs(dir), 0);
    const { user, system } = process.cpuUsage();
    spent['the benchmark'] = (user + system) / 1000;
    spent['kernel threads'] = kernelThreadsMs();
    spent.everything = this.#hierarchy.usageMs(this.#hierarchy.dir);
    return spent;
  }

  /** Removes the groups, whose processes must have ended. Says what it could not remove. */
  remove(): string[] {
    const dirs = [...[...this.#placed.keys()].map((group) => join(this.#dir, group)), this.#dir];
    return dirs.flatMap((dir) => {
      try {
        rmdirSync(dir);
        return [];
      } catch (error) {
        return [`control group ${dir} (${String(error)})`];
      }
    });
  }
}

/**
 * What a burst cost: CPU seconds by group; `wholeSeconds` of all of them, without what else ran on this machine
 * (`othersSeconds`); and `floorSeconds`, the time that the burst takes at least on these cores if `own` cost nothing: what
 * everybody else spent, with all cores busy from the first moment to the last.
 */
export function burstCost(o: { before: Spent; after: Spent; wallMs: number; own: string }): object {
  const seconds = (ms: number): number => Math.round(ms / 10) / 100;
  const groups = Object.keys(o.after).filter((name) => name !== 'everything');
  const spent = groups.map((name) => [name, (o.after[name] ?? 0) - (o.before[name] ?? 0)] as const);
  const whole = spent.reduce((sum, [, ms]) => sum + ms, 0);
  const own = spent.find(([name]) => name === o.own)?.[1] ?? 0;
  return {
    wallSeconds: seconds(o.wallMs),
    cpuSeconds: Object.fromEntries(spent.map(([name, ms]) => [name, seconds(ms)])),
    wholeSeconds: seconds(whole),
    othersSeconds: seconds((o.after.everything ?? 0) - (o.before.everything ?? 0) - whole),
    floorSeconds: seconds((whole - own) / availableParallelism()),
  };
}
