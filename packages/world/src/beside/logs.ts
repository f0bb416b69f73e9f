/**
 * Logs of containers that grow: the runtime writes on into the file that it has open, whatever becomes of its name, until it
 * is asked to open the log anew.
 */
import type { Gzip } from '@actorlet/kubelet/ports/machine/gzip.ts';
import type { Clock, HostFs } from '@actorlet/kubelet/ports/ports.ts';
import type { OpenFile } from '../disk/diskEntry.ts';
import type { SimDisk } from '../disk/types.ts';
import type { SimRng } from '../rng.ts';
import type { SimRuntime } from '../runtime/types.ts';

export interface LogTuning {
  /** containerLogMaxSize, in bytes. */
  maxBytes: number;
  /** containerLogMaxFiles. */
  filesMax: number;
  /** containerLogMaxWorkers. */
  workers: number;
  /** containerLogMonitorInterval. */
  everyMs: number;
  /** Most that a container writes in {@link GROWS_MS}. */
  growthBytes: number;
}

/** What a container writes. */
interface WrittenLog {
  path: string;
  file: OpenFile;
}
export interface SimLogs {
  /** By id, of containers that run. */
  writing(): ReadonlyMap<string, WrittenLog>;
}

const GROWS_MS = 1_000;
const LINE_BYTES = 120;

export function simLogs(tuning: LogTuning, o: { disk: SimDisk; runtime: SimRuntime; clock: Clock; rng: SimRng }): SimLogs {
  const { disk, runtime, clock, rng } = o;
  const encoder = new TextEncoder();
  const open = new Map<string, WrittenLog>();
  const forget = (): void => {
    const running = new Set(
      runtime.hollow
        .dump()
        .containers.filter((c) => c.state === 'CONTAINER_RUNNING')
        .map((c) => c.id),
    );
    for (const id of open.keys()) if (!running.has(id)) open.delete(id);
  };
  let lines = 0;
  const line = (): string => {
    const text = `${new Date(clock.wallMs()).toISOString()} stdout F line ${lines++} `;
    return `${text.padEnd(LINE_BYTES - 1, '.')}\n`;
  };
  const grow = (): void => {
    forget();
    for (const { file } of open.values()) {
      const count = rng.int(1 + Math.floor(tuning.growthBytes / LINE_BYTES));
      if (count > 0) file.append(encoder.encode(Array.from({ length: count }, line).join('')));
    }
    clock.setTimeout(grow, GROWS_MS);
  };
  clock.setTimeout(grow, GROWS_MS);
  runtime.onLog = (id, path) => {
    const file = disk.opened(path);
    if (file === undefined) open.delete(id);
    else open.set(id, { path, file });
  };
  return {
    writing() {
      forget();
      return open;
    },
  };
}

/** Compresses nothing: what it writes is a part of what is there, so that half a file can be told from a whole one by nobody but who finished it. */
export function simGzip(fs: HostFs): Gzip {
  return {
    async compress(from, to, { signal }) {
      const bytes = await fs.readFile(from, { bytesMax: Number.POSITIVE_INFINITY });
      signal.throwIfAborted();
      await fs.writeFile(to, bytes.slice(0, bytes.length >> 2));
      signal.throwIfAborted();
    },
  };
}
