/**
 * State held: none between sweeps.
 * Lost on restart: a sweep in progress.
 * Rebuilt from: the runtime's lists, the pod manager's view, the log directories.
 */

import { eventsAddr } from '../../machines/foundation/messages.ts';
import { pathName } from '../../machines/pod/pathName.ts';
import { CONTAINER_STATES, groupByPod } from '../../machines/pod/runtime/listed.ts';
import {
  containerIdOfLink,
  containerLogDir,
  containerLogLink,
  logFilesOf,
  podFolder,
  podUidOfLogDir,
} from '../../machines/pod/runtime/logNames.ts';
import { restartsOf } from '../../machines/pod/runtime/runtimeStatus.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import {
  containersToCollect,
  deadLinks,
  type GcPolicy,
  isGarbage,
  logDirsToRemove,
  sandboxesToCollect,
} from '../../machines/reclaim/containerGc.ts';
import type { ContainerGcEvent } from '../../machines/reclaim/messages.ts';
import { criView } from '../../machines/runtime/cri/messages.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { CriContainer } from '../../machines/wire/cri.ts';
import { listIfThere, removeTree, rmdirIfFree, unlinkIfThere } from '../../ports/ifThere.ts';
import { type CriClient, criCall, criClient } from '../runtime/client.ts';
import { specOfSweeper } from '../supervision/looks/sweeper.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { exists } from './files.ts';

export interface ContainerGcOptions {
  policy: GcPolicy;
  podLogsDir: string;
  containerLogsDir: string;
}
/** Pod lifecycle 9.1. */
const PERIOD_MS = 60_000;
/** Many pods ending together are one sweep. */
const QUIET_MS = 2_000;
/** An unknown container may be running: it is stopped first, with the least grace there is. */
const UNKNOWN_GRACE_SECONDS = 2;

export function containerGcSpec(opts: ContainerGcOptions): ActorSpec<ContainerGcEvent> {
  const mailbox = { capacity: 64, key: ({ urgent }: ContainerGcEvent) => (urgent === true ? 'urgent' : 'run') };
  return specOfSweeper({ id: 'containerGc', mailbox, everyMs: PERIOD_MS, quietMs: QUIET_MS }, (ctx) => ({
    sweep: (signal, how) => sweep(ctx, opts, { signal, ...how }),
  }));
}

/** `urgent`: pods that have ended keep no container. */
interface How {
  signal: AbortSignal;
  urgent: boolean;
}

async function sweep(ctx: ActorCtx<ContainerGcEvent>, opts: ContainerGcOptions, how: How): Promise<string> {
  try {
    return await new Sweep(ctx, opts, how).run();
  } catch (error) {
    const message = messageOf(error);
    if (!how.signal.aborted)
      ctx.registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason: 'ContainerGCFailed', message } });
    throw error;
  }
}

class Sweep {
  private readonly ctx: ActorCtx<ContainerGcEvent>;
  private readonly opts: ContainerGcOptions;
  private readonly signal: AbortSignal;
  private readonly urgent: boolean;
  private readonly cri: CriClient;

  constructor(ctx: ActorCtx<ContainerGcEvent>, opts: ContainerGcOptions, { signal, urgent }: How) {
    this.ctx = ctx;
    this.opts = opts;
    this.signal = signal;
    this.urgent = urgent;
    this.cri = criClient(ctx.registry);
  }

  async run(): Promise<string> {
    if (this.ctx.registry.read(criView)?.value.state !== 'ready') return '';
    const [{ items }, { containers }] = await Promise.all([
      this.cri.read('ListPodSandbox', {}, { signal: this.signal }),
      this.cri.read('ListContainers', {}, { signal: this.signal }),
    ]);
    const pods = groupByPod(items, containers);
    const ledger = this.ctx.registry.read(podsView)?.value;
    const sourcesReady = ledger?.sourcesReady === true;
    // Asked again before each step: a pod may have come back during the sweep, and a ledger that was begun anew knows nobody yet.
    const isOver = (uid: string, urgent: boolean): boolean => {
      const now = this.ctx.registry.read(podsView)?.value;
      return now?.sourcesReady === true && isGarbage(now.records.get(uid), { urgent });
    };
    const isRemovable = (uid: string): boolean => isOver(uid, this.urgent);
    const removable = new Set([...pods.keys()].filter(isRemovable));
    const cameBack = (uid: string): boolean => removable.has(uid) && !isRemovable(uid);

    const dead = containersToCollect({
      pods: pods.values(),
      sourcesReady,
      isRemovable,
      nowWallMs: this.ctx.ports.clock.wallMs(),
      policy: this.opts.policy,
    });
    const gone = new Set<string>();
    for (const c of dead) {
      const logged =
        pods.get(c.uid)?.containers.some((o) => o.state === 'running' && o.name === c.name && restartsOf(o) === restartsOf(c)) === true;
      if (await this.removeContainer(c, { last: removable.has(c.uid), logged, cameBack: () => cameBack(c.uid) })) gone.add(c.id);
    }
    const sandboxes = sandboxesToCollect({ pods: pods.values(), sourcesReady, isRemovable, gone });
    let removed = 0;
    for (const s of sandboxes) if (await this.removeSandbox(s, () => cameBack(s.uid))) removed += 1;
    const logs = await this.removeLogs({ sourcesReady, isRemovable: (uid) => isOver(uid, false), containers });
    return gone.size + removed + logs === 0
      ? ''
      : `${gone.size} containers, ${removed} sandboxes and ${logs} log directories or links removed`;
  }

  /**
   * Logs first: if they cannot go, the container stays, so that they are tried again. One whose pod came back stays, too:
   * it tells how that pod ended. `last`: no other container of that name will follow. `logged`: one that runs writes the same log.
   */
  private async removeContainer(
    c: ReturnType<typeof containersToCollect>[number],
    { last, logged, cameBack }: { last: boolean; logged: boolean; cameBack(): boolean },
  ): Promise<boolean> {
    if (cameBack()) return false;
    const pod = podFolder({ uid: c.uid, name: c.podName, namespace: c.podNamespace });
    const container = pathName(c.name);
    if (c.killFirst) await this.act(c.uid, criCall('StopContainer', { containerId: c.id, timeout: UNKNOWN_GRACE_SECONDS }));
    const dir = containerLogDir(this.opts.podLogsDir, pod, container);
    const { fs } = this.ctx.ports;
    try {
      for (const name of logged ? [] : logFilesOf(restartsOf(c), await listIfThere(fs, dir))) {
        if (cameBack()) return false;
        await unlinkIfThere(fs, `${dir}/${name}`);
      }
      if (last && !cameBack()) await rmdirIfFree(fs, dir);
      await unlinkIfThere(fs, containerLogLink(this.opts.containerLogsDir, pod, { container, id: pathName(c.id) }));
    } catch (error) {
      this.ctx.log.warn(
        { err: String(error), uid: c.uid, container: c.name, dir },
        'logs of a dead container cannot be removed; it is kept and tried again',
      );
      return false;
    }
    return !cameBack() && (await this.act(c.uid, criCall('RemoveContainer', { containerId: c.id })));
  }

  private async removeSandbox(s: { id: string; uid: string }, cameBack: () => boolean): Promise<boolean> {
    if (cameBack() || !(await this.act(s.uid, criCall('StopPodSandbox', { podSandboxId: s.id })))) return false;
    return !cameBack() && (await this.act(s.uid, criCall('RemovePodSandbox', { podSandboxId: s.id })));
  }

  /** Fenced with the pod's own acts, never refused as stale: it belongs to no worker's incarnation. */
  private async act(uid: string, call: ReturnType<typeof criCall>): Promise<boolean> {
    const [result] = await this.cri.act(uid, null, [call], { signal: this.signal });
    if (result?.ok === true) return true;
    this.ctx.log.warn(
      { uid, call: call.method, err: result?.error.details ?? 'no answer' },
      'garbage collection: the runtime refused; tried again at the next sweep',
    );
    return false;
  }

  private async removeLogs(o: {
    sourcesReady: boolean;
    isRemovable(uid: string): boolean;
    containers: readonly CriContainer[];
  }): Promise<number> {
    const { fs } = this.ctx.ports;
    const { podLogsDir, containerLogsDir } = this.opts;
    let removed = 0;
    const dirs = logDirsToRemove({ dirNames: await listIfThere(fs, podLogsDir), ...o });
    // A pod that nobody wants may still run, and may have begun during the sweep: a ledger that was begun anew hears of it later.
    const now = dirs.length === 0 ? [] : (await this.cri.read('ListContainers', {}, { signal: this.signal })).containers;
    const pods = groupByPod([], now);
    for (const name of dirs) {
      const uid = podUidOfLogDir(name);
      if (uid === undefined || pods.get(uid)?.containers.some((c) => c.state === 'running') === true || !o.isRemovable(uid)) continue;
      const dir = `${podLogsDir}/${name}`;
      try {
        if ((await rmdirIfFree(fs, dir)) || (await removeTree(fs, { dir, dev: (await fs.lstat(dir)).dev }, () => o.isRemovable(uid))))
          removed += 1;
      } catch (error) {
        this.ctx.log.warn(
          { err: String(error), uid, dir },
          'log directory of a pod that is gone cannot be removed; tried again at the next sweep',
        );
      }
    }
    const links: { name: string; targetExists: boolean }[] = [];
    for (const name of await listIfThere(fs, containerLogsDir)) {
      if (containerIdOfLink(name) !== undefined) links.push({ name, targetExists: await exists(fs, `${containerLogsDir}/${name}`) });
    }
    const states = new Map(o.containers.map((c) => [c.id, c.state]));
    const stateOf = (id: string) => {
      const state = [...states].find(([full]) => full.startsWith(id))?.[1];
      return state === undefined ? undefined : CONTAINER_STATES[state];
    };
    for (const name of deadLinks({ links, stateOf })) {
      await unlinkIfThere(fs, `${containerLogsDir}/${name}`);
      removed += 1;
    }
    return removed;
  }
}
