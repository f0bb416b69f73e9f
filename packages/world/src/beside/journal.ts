/** The journal of a simulated machine: a few services, each with lines of its own. */
import type { Journal } from '@actorlet/kubelet/ports/machine/journal.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import { type FaultMode, type HelperCall, working } from './faultMode.ts';

export const JOURNAL_UNITS = ['containerd.service', 'kubelet.service', 'ssh.service'] as const;
/** Lines of one unit. */
const LINES = 40;
const LATENCY_MS = 60;
const SLOW_MS = 4_000;
/** Between two parts of what has no end. */
const PART_MS = 500;

/** What was asked of it. */
interface JournalRead {
  args: readonly string[];
  timeoutMs: number;
}

export interface SimJournal {
  faultMode: FaultMode;
  readonly reads: readonly JournalRead[];
  connect(o: { clock: Clock; power: { on: boolean } }): Journal;
}

/** Every line of a unit names it. */
function journalLine(unit: string, i: number): string {
  return `Jan 01 00:00:${String(i).padStart(2, '0')}.000000 n ${unit}[1]: line ${i}\n`;
}

export function simJournal({ rng }: { rng: SimRng }): SimJournal {
  const reads: JournalRead[] = [];
  const encoder = new TextEncoder();
  const printed = (args: readonly string[]): string[] => {
    if (args[0] === '--field') return JOURNAL_UNITS.map((unit) => `${unit}\n`);
    const asked = args.filter((a) => a.startsWith('--unit=')).map((a) => a.slice('--unit='.length));
    const units = JOURNAL_UNITS.filter((unit) => asked.includes(unit) || asked.includes(unit.replace(/\.service$/, '')));
    const last = Number(args.find((a) => a.startsWith('--lines='))?.slice('--lines='.length) ?? LINES);
    const lines = units.flatMap((unit) => Array.from({ length: LINES }, (_, i) => journalLine(unit, i)));
    return last === 0 ? [] : lines.slice(-last);
  };
  const self: SimJournal = {
    faultMode: 'well',
    reads,
    connect: ({ clock, power }) => ({
      async *read(args, { timeoutMs, signal }) {
        reads.push({ args, timeoutMs });
        const { faultMode } = self;
        const call: HelperCall = { clock, power, timeoutMs, signal };
        if (faultMode === 'fails') throw new Error('journalctl cannot be run: spawn journalctl ENOENT');
        try {
          await working(faultMode === 'hangs' ? null : rng.between(0, faultMode === 'slow' ? SLOW_MS : LATENCY_MS), call);
          const lines = printed(args);
          for (const line of lines) yield encoder.encode(line);
          // A journal that is written faster than it is read.
          while (faultMode === 'garbage' && args[0] !== '--field') {
            await working(PART_MS, call);
            yield encoder.encode(lines[0] ?? '');
          }
        } catch {
          // Killed: what it printed is all there is.
        }
      },
    }),
  };
  return self;
}
