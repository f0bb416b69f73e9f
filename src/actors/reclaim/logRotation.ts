/**
 * State held: containers whose runtime wrote no log when it was asked for a new one.
 * Lost on restart: a rotation in progress. What it left is seen by the next one: half a file, or a log without its name.
 * Rebuilt from: the listing of the runtime, the log directories.
 */

import { pathName } from '../../machines/pod/pathName.ts';
import { containerLogDir, containerLogPath, podFolder } from '../../machines/pod/runtime/logNames.ts';
import type { ListedPod } from '../../machines/pod/runtime/seen.ts';
import { compressedName, planRotation, rotatedName, unfinishedName } from '../../machines/reclaim/logRotation.ts';
import { criView } from '../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { CRI_ANNOTATIONS } from '../../machines/wire/cri.ts';
import { listIfThere, unlinkIfThere } from '../../ports/ifThere.ts';
import { CriError } from '../../ports/ports.ts';
import { criClient } from '../runtime/client.ts';
import { type Sweeping, specOfSweeper } from '../supervision/looks/sweeper.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { statIfThere } from './files.ts';

export interface LogRotationOptions {
  podLogsDir: string;
  /** containerLogMaxSize in bytes: as large as this is too large. */
  maxBytes: number;
  /** containerLogMaxFiles: of one container, its present log counted. */
  filesMax: number;
  /** containerLogMaxWorkers: logs that are rotated at a time. */
  workers: number;
  /** containerLogMonitorInterval. */
  everyMs: number;
}
/** A reopening that is not answered holds up the others: it is a matter of moments. */
const REOPEN_TIMEOUT_MS = 10_000;

/** Codes of calls that were cancelled, not answered in time, or cut off: they may have their effect yet. */
const UNANSWERED: ReadonlySet<number> = new Set([1, 4, 14]);

interface Log {
  id: string;
  pod: Pick<ListedPod, 'uid' | 'name' | 'namespace'>;
  container: string;
  dir: string;
  name: string;
}

export function logRotationSpec(o: LogRotationOptions): ActorSpec {
  return specOfSweeper({ id: 'logRotation', everyMs: o.everyMs, quietMs: 0 }, (ctx) => new Rotation(ctx, o));
}

class Rotation implements Sweeping {
  readonly #ctx: ActorCtx;
  readonly #o: LogRotationOptions;
  /** Ids of containers without a log, also after they were asked for one: not asked again. */
  #silent: ReadonlySet<string> = new Set();
  /** What was last said of a log that could not be rotated, by container id. */
  readonly #said = new Map<string, string>();

  constructor(ctx: ActorCtx, o: LogRotationOptions) {
    this.#ctx = ctx;
    this.#o = o;
  }

  /** Also once nothing runs any more: what was said of the last logs is forgotten then. */
  due(): boolean {
    return this.#said.size > 0 || this.#silent.size > 0 || this.#logs().length > 0;
  }

  /** Rotates logs of the containers that run. A log that cannot be rotated keeps no other from it. */
  async sweep(signal: AbortSignal): Promise<string> {
    // A log that is put aside has no name until the runtime opens it anew.
    if (this.#ctx.registry.read(criView)?.value.state !== 'ready') return 'not while the runtime is away';
    const logs = this.#logs();
    const ids = new Set(logs.map((log) => log.id));
    this.#silent = new Set([...this.#silent].filter((id) => ids.has(id)));
    for (const id of this.#said.keys()) if (!ids.has(id)) this.#said.delete(id);
    let rotated = 0;
    const waiting = logs.values();
    const work = async (): Promise<void> => {
      for (const log of waiting) if (await this.#look(log, signal)) rotated += 1;
    };
    await Promise.all(Array.from({ length: Math.min(this.#o.workers, logs.length) }, work));
    const failed = this.#said.size;
    if (failed > 0)
      throw new Error(`${failed} logs could not be rotated, ${rotated} were: ${[...this.#said.values()].slice(0, 3).join('; ')}`);
    return rotated === 0 ? '' : `${rotated} logs rotated`;
  }

  #logs(): Log[] {
    const pods = this.#ctx.registry.read(runtimePodsView)?.value.pods.values() ?? [];
    return [...pods].flatMap((pod) =>
      pod.containers
        .filter((c) => c.state === 'running')
        .map((c) => ({
          id: c.id,
          pod,
          container: c.name,
          dir: containerLogDir(this.#o.podLogsDir, podFolder(pod), pathName(c.name)),
          name: containerLogPath(pathName(c.name), Number(c.annotations[CRI_ANNOTATIONS.restartCount] ?? '0')).slice(c.name.length + 1),
        })),
    );
  }

  async #look(log: Log, signal: AbortSignal): Promise<boolean> {
    try {
      signal.throwIfAborted();
      const rotated = await this.#rotateIfLarge(log, signal);
      this.#said.delete(log.id);
      return rotated;
    } catch (error) {
      if (signal.aborted) throw error;
      const { pod, container, dir, name } = log;
      const err = messageOf(error);
      if (this.#said.get(log.id) !== err)
        this.#ctx.log.warn(
          { err, uid: pod.uid, pod: `${pod.namespace}/${pod.name}`, container, file: `${dir}/${name}` },
          'a log cannot be rotated; it is tried again',
        );
      this.#said.set(log.id, err);
      return false;
    }
  }

  async #rotateIfLarge(log: Log, signal: AbortSignal): Promise<boolean> {
    const path = `${log.dir}/${log.name}`;
    let size = await this.#size(path);
    if (size === null) {
      if (this.#silent.has(log.id)) return false;
      // An earlier daemon may have died between the two steps.
      await this.#reopen(log, signal);
      size = await this.#size(path);
      if (size === null) this.#silent = new Set([...this.#silent, log.id]);
    }
    if (size === null || size < this.#o.maxBytes) return false;
    await this.#rotate(log, signal);
    return true;
  }

  async #rotate(log: Log, signal: AbortSignal): Promise<void> {
    const { fs, clock } = this.#ctx.ports;
    const { dir, name } = log;
    const plan = planRotation({ name, names: await listIfThere(fs, dir), filesMax: this.#o.filesMax });
    for (const old of plan.remove) await unlinkIfThere(fs, `${dir}/${old}`);
    for (const old of plan.compress) await this.#compress(`${dir}/${old}`, signal);
    const aside = `${dir}/${rotatedName({ name, names: await listIfThere(fs, dir), wallMs: clock.wallMs() })}`;
    await fs.rename(`${dir}/${name}`, aside);
    try {
      await this.#reopen(log, signal);
    } catch (error) {
      // Not where the runtime may open it yet: it would write into a file that loses its name here. The next sweep asks again.
      if (error instanceof CriError && !UNANSWERED.has(error.code) && (await this.#size(`${dir}/${name}`)) === null)
        await fs.rename(aside, `${dir}/${name}`);
      throw error;
    }
  }

  async #compress(path: string, signal: AbortSignal): Promise<void> {
    const { fs, gzip } = this.#ctx.ports;
    if (gzip === undefined) return;
    await gzip.compress(path, unfinishedName(path), { signal });
    await fs.rename(unfinishedName(path), compressedName(path));
    // The removal of an ended container's logs did not see this one.
    if ((await this.#size(path)) === null) await unlinkIfThere(fs, compressedName(path));
    else await fs.unlink(path);
  }

  /** @throws CriError */
  async #reopen({ id }: Log, signal: AbortSignal): Promise<void> {
    await criClient(this.#ctx.registry).read('ReopenContainerLog', { containerId: id }, { timeoutMs: REOPEN_TIMEOUT_MS, signal });
  }

  /** Null: there is no such file. */
  async #size(path: string): Promise<number | null> {
    return (await statIfThere(this.#ctx.ports.fs, path))?.size ?? null;
  }
}
