/** Finds and removes what an instance may have left, by its own unique folder only: never by a broad name. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

/** Mount points below `dir`, deepest first. */
export function mountsUnder(dir: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path === dir || path.startsWith(`${dir}/`))
    .sort((a, b) => b.length - a.length);
}

/** Processes whose command line names `dir`: the instance's daemon and its shims. */
export function processesOf(dir: string): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (argv.some((arg) => arg.startsWith(`${dir}/`)) && (argv[0] ?? '').includes('containerd')) found.push(Number(name));
    } catch {
      // Ended meanwhile.
    }
  }
  return found;
}

/** An instance's cgroup folder, in every hierarchy that has it. */
function cgroupsOf(parent: string): string[] {
  const roots = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name))];
  return roots.map((root) => join(root, parent)).filter((dir) => existsSync(dir));
}

/**
 * Processes in an instance's cgroups. A runtime that was killed between the creation and the start of a container leaves `runc init`
 * there, which waits for ever and names no folder on its command line.
 */
export function processesInCgroups(parent: string): number[] {
  const found = new Set<number>();
  const read = (dir: string) => {
    try {
      for (const pid of readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n')) if (pid !== '') found.add(Number(pid));
      for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) read(join(dir, entry.name));
    } catch {
      // Removed meanwhile.
    }
  };
  for (const dir of cgroupsOf(parent)) read(dir);
  return [...found];
}

/** Removes an instance's cgroup folder from every hierarchy, leaves first. What is still in use stays and is returned. */
export function removeCgroups(parent: string): string[] {
  const left: string[] = [];
  const remove = (dir: string) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) remove(join(dir, entry.name));
    try {
      rmdirSync(dir);
    } catch {
      left.push(dir);
    }
  };
  for (const dir of cgroupsOf(parent)) remove(dir);
  return left;
}

export function removeMounts(dir: string): string[] {
  for (const path of mountsUnder(dir)) {
    try {
      execFileSync('umount', ['-l', path], { stdio: 'pipe' });
    } catch {
      // Listed again below.
    }
  }
  return mountsUnder(dir);
}

export function removeBridge(name: string): void {
  if (existsSync(`/sys/class/net/${name}`)) execFileSync('ip', ['link', 'del', name], { stdio: 'pipe' });
}
