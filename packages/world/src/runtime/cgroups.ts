/**
 * The cgroups of a simulated machine: they outlive daemons, and go with its power. One hierarchy, of either version;
 * what stands in a group's files is kept as it was written.
 */

import type { GroupLayout } from '@actorlet/kubelet/machines/allocation/cgroups/files.ts';
import type { Cgroups } from '@actorlet/kubelet/ports/machine/cgroups.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

export type CgroupOperation = 'detect' | 'exists' | 'create' | 'apply' | 'read' | 'list' | 'pids' | 'kill' | 'remove';

interface Daemon {
  clock: Clock;
  power: { on: boolean };
}

const LAYOUT: GroupLayout = { version: 2, controllers: ['cpu', 'memory', 'pids', 'hugetlb'], pageSizes: ['2MB'] };

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}

/** A path without its last slash; the root is ''. */
function key(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => `/${part}`)
    .join('');
}

export class SimCgroups {
  /** What was written into each group, by path and file. */
  readonly groups = new Map<string, Map<string, string>>([['', new Map()]]);
  layout = LAYOUT;
  /** Processes right in a group; those below it are found by asking there. */
  pidsIn: (path: string) => readonly number[] = () => [];
  /** Groups that a runtime has made for what it was asked to run, as runtimes do. */
  madeByRuntime: () => readonly string[] = () => [];
  /** These processes were killed by something else than the node. */
  killed: (pids: readonly number[], path: string) => void = () => {};
  /** Null: it goes well; else the code that it fails with, without effect. `file`: of what is written. */
  failing: (operation: CgroupOperation, path: string, file?: string) => string | null = () => null;
  delayMs: (operation: CgroupOperation) => number = () => 0;

  /** A user of the machine makes a group, or takes one away. */
  put(path: string): void {
    const parts = key(path).split('/').slice(1);
    parts.forEach((_, i) => {
      const at = `/${parts.slice(0, i + 1).join('/')}`;
      if (!this.groups.has(at)) this.groups.set(at, new Map());
    });
  }

  take(path: string): void {
    for (const p of this.below(key(path))) this.groups.delete(p);
  }

  /** The kernel shows something else in a file of a group that is there. */
  write(path: string, file: string, text: string): void {
    this.groups.get(key(path))?.set(file, text);
  }

  /** Nothing of it outlives the power. */
  powerLoss(): void {
    this.groups.clear();
    this.groups.set('', new Map());
  }

  connect(daemon: Daemon): Cgroups {
    return cgroupsFor(this, daemon);
  }

  below(path: string): string[] {
    return [...this.groups.keys()].filter((p) => p === path || p.startsWith(`${path}/`));
  }

  pidsBelow(path: string): number[] {
    return [...new Set(this.below(path).flatMap((p) => this.pidsIn(p)))].sort((a, b) => a - b);
  }

  present(path: string): Map<string, string> {
    const group = this.groups.get(path);
    if (group === undefined) throw failure('ENOENT', `no such group, ${path}`);
    return group;
  }
}

/** The calls of one daemon: a dead daemon's call has no effect and is never answered. */
function cgroupsFor(all: SimCgroups, { clock, power }: Daemon): Cgroups {
  let turn: Promise<unknown> = Promise.resolve();
  const done = async <T>(operation: CgroupOperation, at: string, effect: () => T): Promise<T> => {
    const ms = all.delayMs(operation);
    if (ms > 0) await new Promise<void>((wake) => void clock.setTimeout(wake, ms));
    if (!power.on) return new Promise<never>(() => {});
    const code = all.failing(operation, at);
    if (code !== null) throw failure(code, `${operation} ${at}`);
    for (const path of all.madeByRuntime()) all.put(path);
    return effect();
  };
  const inTurn = <T>(operation: CgroupOperation, at: string, effect: () => T): Promise<T> => {
    const mine = turn.then(() => done(operation, at, effect));
    turn = mine.catch(() => {});
    return mine;
  };
  return {
    detect: (driver) => done('detect', driver, () => all.layout),
    exists: (path) => done('exists', key(path), () => all.groups.has(key(path))),
    create: (path) => inTurn('create', key(path), () => all.put(path)),
    apply: (path, writes) =>
      inTurn('apply', key(path), () => {
        const group = all.present(key(path));
        for (const { file, value } of writes) {
          const code = all.failing('apply', key(path), file);
          if (code !== null) throw failure(code, `${value} could not be written to ${path}/${file}`);
          group.set(file, value);
        }
      }),
    read: (path, files) => done('read', key(path), () => files.map(({ file }) => all.groups.get(key(path))?.get(file) ?? '')),
    list: (path) =>
      done('list', key(path), () =>
        all
          .below(key(path))
          .filter((p) => p !== key(path) && !p.slice(key(path).length + 1).includes('/'))
          .map((p) => p.slice(key(path).length + 1))
          .sort(),
      ),
    enter: (path) => inTurn('apply', key(path), () => void all.present(key(path))),
    moveFromRoot: (path) =>
      inTurn('apply', key(path), () => {
        all.present(key(path));
        return 0;
      }),
    pids: (path) => done('pids', key(path), () => all.pidsBelow(key(path))),
    kill: (path) => done('kill', key(path), () => all.killed(all.pidsBelow(key(path)), key(path))),
    remove: (path) =>
      inTurn('remove', key(path), () => {
        if (all.pidsBelow(key(path)).length > 0) throw failure('EBUSY', `device or resource busy, rmdir ${path}`);
        all.take(path);
      }),
  };
}
