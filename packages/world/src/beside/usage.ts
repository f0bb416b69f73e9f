/** What volumes hold, counted on a simulated disk. */
import type { DiskFigures, DiskUsage } from '@actorlet/kubelet/ports/machine/diskUsage.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimDisk } from '../disk/types.ts';
import type { SimRng } from '../rng.ts';
import { type FaultMode, working } from './faultMode.ts';

interface Measuring {
  path: string;
  tree: boolean;
  timeoutMs: number;
  /** How many of the same daemon were counting then, this one among them. */
  atOnce: number;
  /** Null: not answered, or not with figures. */
  bytesUsed: number | null;
  over: boolean;
}

export interface SimUsage {
  faultMode: FaultMode;
  readonly measured: readonly Measuring[];
  connect(o: { clock: Clock; power: { on: boolean } }): DiskUsage;
}

const LATENCY_MS = 40;
const SLOW_MS = 9_000;
const ROOM = { bytesTotal: 1e12, bytesAvailable: 5e11, inodesTotal: 1e6, inodesFree: 5e5 } as const;

export function simUsage({ disk, rng }: { disk: Pick<SimDisk, 'has' | 'sizeBelow'>; rng: SimRng }): SimUsage {
  const measured: Measuring[] = [];
  const self: SimUsage = {
    faultMode: 'well',
    measured,
    connect: ({ clock, power }) => {
      const mine: Measuring[] = [];
      const measure: DiskUsage['measure'] = async (path, { tree, timeoutMs, signal }): Promise<DiskFigures> => {
        // A caller that gave up before begins nothing.
        signal.throwIfAborted();
        const atOnce = 1 + mine.filter((m) => !m.over).length;
        const m: Measuring = { path, tree, timeoutMs, atOnce, bytesUsed: null, over: false };
        mine.push(m);
        measured.push(m);
        const { faultMode } = self;
        try {
          await working(faultMode === 'hangs' ? null : rng.between(0, faultMode === 'slow' ? SLOW_MS : LATENCY_MS), {
            clock,
            power,
            timeoutMs,
            signal,
          });
        } finally {
          m.over = true;
        }
        if (faultMode === 'fails' || !disk.has(path)) throw new Error(`stat: cannot read file system information for '${path}'`);
        if (faultMode === 'garbage') throw new Error(`what ${path} uses could not be made out of ""`);
        const { bytes, inodes } = disk.sizeBelow(path);
        m.bytesUsed = tree ? bytes : ROOM.bytesTotal - ROOM.bytesAvailable;
        return { ...ROOM, bytesUsed: m.bytesUsed, inodesUsed: tree ? inodes : ROOM.inodesTotal - ROOM.inodesFree };
      };
      return { measure };
    },
  };
  return self;
}
