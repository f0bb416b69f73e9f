/** The real {@link DiskUsage} port: stat(1) and du(1), as a process group that is killed at its deadline. */
import type { DiskFigures, DiskUsage } from '../../../ports/machine/diskUsage.ts';
import type { Clock } from '../../../ports/ports.ts';
import { runProgram } from '../program.ts';

/** What du says of files that went meanwhile, or cannot be read, is no failure: the rest is counted. */
const SCRIPT = [
  'stat -f -c \'%S %b %f %a %c %d\' -- "$1" || exit 1',
  '[ "$2" = yes ] || exit 0',
  'du -s -k -x -- "$1" 2>/dev/null',
  'du -s -x --inodes -- "$1" 2>/dev/null',
  'exit 0',
].join('\n');
const KIB = 1024;

export function createDiskUsage({ clock }: { clock: Clock }): DiskUsage {
  return {
    async measure(path, { tree, timeoutMs, signal }) {
      const args = ['-c', SCRIPT, 'sh', path, tree ? 'yes' : 'no'];
      const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C' };
      const text = await runProgram({ command: '/bin/sh', args, env }, { clock, limitMs: timeoutMs, signal });
      const figures = readFigures(text, tree);
      if (figures === null) throw new Error(`what ${path} uses could not be made out of ${JSON.stringify(text.slice(0, KIB))}`);
      return figures;
    },
  };
}

/** Null for what is no such text. */
export function readFigures(text: string, tree: boolean): DiskFigures | null {
  const [room = '', bytes = '', inodes = ''] = text.split('\n');
  const parts = room.split(' ').map(Number);
  const [block = Number.NaN, total = 0, free = 0, available = 0, inodesTotal = 0, inodesFree = 0] = parts;
  const first = (line: string): number => Number(/^(\d+)\s/.exec(line)?.[1] ?? Number.NaN);
  const used = tree
    ? { bytesUsed: first(bytes) * KIB, inodesUsed: first(inodes) }
    : { bytesUsed: (total - free) * block, inodesUsed: inodesTotal - inodesFree };
  const figures = { bytesTotal: total * block, bytesAvailable: available * block, inodesTotal, inodesFree, ...used };
  return parts.length === 6 && Object.values(figures).every(Number.isFinite) ? figures : null;
}
