/** The kernel of a simulated machine, as far as its log goes: it outlives daemons, and its numbers only grow. */
import type { KernelLog, KernelLogPart } from '@actorlet/kubelet/ports/machine/kernelLog.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** From a record to its reading. */
const READ_AFTER_MS = 300;

export interface SimKernelLog {
  /** The kernel says these lines; a line of somebody else names its facility. */
  say(lines: readonly string[], facility?: number): void;
  /** False: it cannot be opened, and a reader reads no further. */
  readable: boolean;
  /** Number of the newest record; -1 before the first. */
  readonly seq: number;
  /** What {@link seq} was when somebody began with what comes from then on, the last time; null before that. */
  readonly beganAt: number | null;
  connect(o: { clock: Clock; power: { on: boolean } }): KernelLog;
}

export function simKernelLog(clock: Pick<Clock, 'monoMs'>): SimKernelLog {
  const records: string[] = [];
  const readers = new Set<() => void>();
  const INFO = 6;
  let readable = true;
  let beganAt: number | null = null;
  const newest = (): number => records.length - 1;
  const wake = (): void => {
    for (const reader of readers) reader();
  };
  return {
    say(lines, facility = 0) {
      for (const line of lines) records.push(`${facility * 8 + INFO},${records.length},${Math.round(clock.monoMs() * 1_000)},-;${line}`);
      wake();
    },
    get readable() {
      return readable;
    },
    set readable(now) {
      readable = now;
      wake();
    },
    get seq() {
      return newest();
    },
    get beganAt() {
      return beganAt;
    },
    connect: ({ clock: own, power }) => ({
      async *follow(after, signal): AsyncGenerator<KernelLogPart> {
        let next = after === null ? records.length : after + 1;
        for (let first = true; !signal.aborted && power.on; first = false) {
          if (!readable) throw new Error('EPERM: operation not permitted, open /dev/kmsg');
          if (first && after === null) beganAt = newest();
          const news = records.slice(next);
          next = records.length;
          if (first || news.length > 0) yield { records: news, seq: newest() };
          if (next < records.length) continue;
          await new Promise<void>((resolve) => {
            const done = (): void => {
              readers.delete(heard);
              signal.removeEventListener('abort', done);
              resolve();
            };
            // A reader whose daemon is dead is never woken: nothing comes of its timers.
            const heard = (): void => {
              readers.delete(heard);
              own.setTimeout(done, READ_AFTER_MS);
            };
            readers.add(heard);
            signal.addEventListener('abort', done);
          });
        }
      },
    }),
  };
}
