/**
 * Delays a shutdown of the machine until pods have ended, lowest priority first.
 *
 * State held: the session with systemd-logind, the group of pods that is ending, which pods were asked to end.
 * Lost on restart: all of it. The lock stays, since it belongs to the process.
 * Rebuilt from: its own view (since when the machine is going down), the state file after a restart of the daemon, logind, the
 * pod manager's view.
 */

import { fromCallback, fromPromise } from 'xstate';
import { apiAddr } from '../../../machines/api/messages.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { fullName, podRef } from '../../../machines/pod/names.ts';
import { isTerminal } from '../../../machines/pod/phase.ts';
import type { SourceName } from '../../../machines/pod/runtime/seen.ts';
import { evictionOf, isRefused, isWanted, podManagerAddr, podsView, refusedFor } from '../../../machines/pods/manager/messages.ts';
import { podConfigAddr } from '../../../machines/pods/podConfig/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';

import { groupOf, resumedMs, type ShutdownGroup, shutdownGraceSeconds, totalMs } from '../../../machines/reclaim/nodeShutdown/groups.ts';
import {
  CANCELLED_MESSAGE,
  DETECTED_MESSAGE,
  NOT_ADMITTED,
  nodeShutdownView,
  SHUTDOWN_EVENT,
  TERMINATED,
  TERMINATED_MESSAGE,
} from '../../../machines/reclaim/nodeShutdown/messages.ts';
import {
  type Look,
  type NodeShutdownMachineEvent,
  nodeShutdownMachine,
  type Opened,
  type Since,
} from '../../../machines/reclaim/nodeShutdown/nodeShutdownMachine.ts';
import type { ShutdownState } from '../../../machines/reclaim/nodeShutdown/stateFile.ts';
import { because } from '../../../machines/supervision/address.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { InhibitorSession } from '../../../ports/machine/inhibitor.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { shutdownTimes } from './metrics.ts';
import { loadState, storeState } from './stateFile.ts';

export interface NodeShutdownOptions {
  /** Lowest priority first; at least one. */
  groups: readonly ShutdownGroup[];
  rootDir: string;
  /** Gate GracefulNodeShutdownBasedOnPodPriority: the state file and the metrics. */
  recorded: boolean;
  /** There is a node object to report to. */
  cluster: boolean;
}

/** A pod that was asked to end is asked again after this: the pod manager may have forgotten it. */
const ASK_AGAIN_MS = 5_000;

export function nodeShutdownSpec(o: NodeShutdownOptions): ActorSpec {
  return {
    type: 'actor',
    id: 'nodeShutdown',
    backoff: { maxMs: 5_000, jitter: 0.1 },
    start: (ctx) => {
      const manager = new ShutdownManager(ctx, o);
      return {
        logic: provided(nodeShutdownMachine, {
          actors: {
            open: fromPromise<Opened>(({ signal }) => manager.open(signal)),
            watch: fromCallback<NodeShutdownMachineEvent>(({ sendBack }) => manager.watch(sendBack)),
            load: fromPromise<ShutdownState>(() => manager.load()),
            begin: fromPromise<Since, { unfinishedMs: number | null }>(async ({ input }) => manager.begin(input.unfinishedMs)),
            look: fromPromise<Look, { group: number; startedMonoMs: number }>(async ({ input }) => manager.look(input)),
            revive: fromPromise<number>(async () => manager.revive()),
            store: fromPromise<void, { startedMs: number; over: boolean }>(({ input }) => manager.store(input)),
          },
          actions: {
            lost: (_, { why }) => manager.lost(why),
            cancelled: () => manager.cancelled(),
            late: (_, { group }) => manager.late(group),
            release: () => manager.release(),
          },
        }),
        input: { groups: o.groups, goingDown: ctx.registry.read(nodeShutdownView)?.value.active === true },
      };
    },
  };
}

class ShutdownManager {
  readonly #ctx: ActorCtx;
  readonly #o: NodeShutdownOptions;
  readonly #times;
  /** When each life of a pod was asked to end. */
  readonly #asked = new Map<string, { atMs: number; graceSeconds: number }>();
  #complained = '';
  #session: InhibitorSession | null = null;

  constructor(ctx: ActorCtx, o: NodeShutdownOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#times = o.recorded ? shutdownTimes(ctx.ports.metrics) : null;
    if (ctx.registry.read(nodeShutdownView) === undefined)
      ctx.publish(nodeShutdownView, { active: false, startedWallMs: null, startedMonoMs: null });
  }

  async open(signal: AbortSignal): Promise<Opened> {
    const { inhibitor } = this.#ctx.ports;
    if (inhibitor === undefined) throw new Error('this node has no way to systemd-logind');
    const session = await inhibitor.open({ delayMs: totalMs(this.#o.groups), signal });
    if (signal.aborted) session[Symbol.dispose]();
    else this.#session = session;
    const { shuttingDown, held } = session;
    if (this.#complained !== '') this.#ctx.log.info({ held }, 'systemd-logind can be reached again');
    this.#complained = '';
    return { shuttingDown, held };
  }

  watch(send: (event: NodeShutdownMachineEvent) => void): () => void {
    const session = this.#session;
    session?.onShutdown((active) => send({ type: 'logind.shutdown', active }));
    void session?.ended.then((error) => send({ type: 'logind.lost', why: messageOf(error) }));
    return () => session?.[Symbol.dispose]();
  }

  lost(why: string): void {
    if (this.#complained === why) return;
    this.#complained = why;
    this.#ctx.log.warn(
      { why },
      'systemd-logind cannot be reached, so a shutdown of this machine does not wait for its pods; the connection is tried again',
    );
  }

  /** A shutdown goes on where the incarnation or the daemon before left it, if its time is not over. */
  begin(unfinishedMs: number | null): Since {
    const { registry, log, ports } = this.#ctx;
    const { groups } = this.#o;
    this.#asked.clear();
    const known = registry.read(nodeShutdownView)?.value;
    if (known?.active === true && known.startedWallMs !== null && known.startedMonoMs !== null)
      return { startedWallMs: known.startedWallMs, startedMonoMs: known.startedMonoMs };
    const agoMs = resumedMs(groups, { unfinishedMs, wallMs: ports.clock.wallMs() }) ?? 0;
    const since = { startedWallMs: ports.clock.wallMs() - agoMs, startedMonoMs: ports.clock.monoMs() - agoMs };
    this.#ctx.publish(nodeShutdownView, { active: true, ...since });
    log.warn(
      { withinSeconds: (totalMs(groups) - agoMs) / 1000 },
      'THE MACHINE IS GOING DOWN: pods are ended, and no pod is admitted any more',
    );
    this.#say(DETECTED_MESSAGE);
    return since;
  }

  cancelled(): void {
    this.#ctx.publish(nodeShutdownView, { active: false, startedWallMs: null, startedMonoMs: null });
    this.#ctx.log.info(
      {},
      'the shutdown of the machine was cancelled: pods are admitted again, and static pods that were ended begin again',
    );
    this.#say(CANCELLED_MESSAGE);
  }

  /**
   * Pods of files and of the URL have no controller that makes others in their place. One of the API stays Failed, which is
   * final there. A pod manager that was restarted meanwhile knows nothing of what it ended: the status does. Returns how many
   * have still to begin again, and at least 1 while not all sources have delivered.
   */
  revive(): number {
    const { registry, path, ports } = this.#ctx;
    const ended = new Map<SourceName, string[]>();
    const [pods, statuses] = [registry.read(podsView)?.value, registry.read(statusesView)?.value];
    for (const [uid, record] of pods?.records ?? []) {
      const { source } = record;
      if (source !== 'file' && source !== 'http') continue;
      const reason = evictionOf(record)?.reason ?? statuses?.get(uid)?.status.reason;
      const byUs = (isWanted(record) && reason === TERMINATED) || refusedFor(record) === NOT_ADMITTED;
      if (byUs) ended.set(source, [...(ended.get(source) ?? []), uid]);
    }
    const causes = because(undefined, { atMs: ports.clock.wallMs(), by: path, what: 'the shutdown that ended it was cancelled' });
    for (const [source, uids] of ended) registry.send(podConfigAddr, { type: 'pods.again', source, uids, causes });
    return Math.max([...ended.values()].flat().length, pods?.sourcesReady === true ? 0 : 1);
  }

  #say(message: string): void {
    const { registry } = this.#ctx;
    registry.send(eventsAddr, { type: 'event.record', event: { type: 'Normal', reason: SHUTDOWN_EVENT, message } });
    if (this.#o.cluster) registry.send(apiAddr.nodeStatus, { type: 'node.report', why: message });
  }

  release(): void {
    this.#ctx.ports.inhibitor?.release();
    this.#ctx.log.info({}, 'pods have ended as far as their time allowed: this node does not delay the shutdown any more');
  }

  /** Pods that a worker looks after, and pods that wait for one; what ended by itself needs no end. */
  #remaining(upTo: number): readonly Pod[] {
    const pods: Pod[] = [];
    const { registry } = this.#ctx;
    const statuses = registry.read(statusesView)?.value;
    for (const record of registry.read(podsView)?.value.records.values() ?? []) {
      const { pod, worker } = record;
      if (isRefused(record) || worker?.phase === 'finished' || groupOf(this.#o.groups, pod) > upTo) continue;
      const { phase } = statuses?.get(pod.metadata.uid)?.status ?? pod.status;
      if (worker === null && isTerminal(phase)) continue;
      pods.push(pod);
    }
    return pods;
  }

  look({ group, startedMonoMs }: { group: number; startedMonoMs: number }): Look {
    const { registry, ports } = this.#ctx;
    const monoMs = ports.clock.monoMs();
    this.#end(group, Math.max(0, startedMonoMs + totalMs(this.#o.groups) - monoMs));
    const known = registry.read(podsView)?.value.sourcesReady === true;
    return { monoMs, known, remaining: this.#remaining(group).length };
  }

  #end(upTo: number, leftMs: number): void {
    const { registry, path, ports, log } = this.#ctx;
    const pods = registry.read(podsView)?.value;
    const nowMs = ports.clock.monoMs();
    for (const pod of this.#remaining(upTo)) {
      const { uid } = pod.metadata;
      const group = this.#o.groups[groupOf(this.#o.groups, pod)];
      const record = pods?.records.get(uid);
      if (group === undefined || record?.worker == null) continue;
      const key = `${pods?.epoch ?? 1} ${record.life ?? 0} ${uid}`;
      const asked = this.#asked.get(key);
      if (asked !== undefined && nowMs - asked.atMs < ASK_AGAIN_MS) continue;
      // The same as before: less would interrupt the stop that is under way.
      const graceSeconds = asked?.graceSeconds ?? shutdownGraceSeconds(pod, group, leftMs);
      if (asked === undefined) log.info({ ...podRef(pod), group: group.priority, graceSeconds }, 'ending a pod: the machine is going down');
      this.#asked.set(key, { atMs: nowMs, graceSeconds });
      registry.send(podManagerAddr, {
        type: 'pods.evict',
        uid,
        eviction: { reason: TERMINATED, message: TERMINATED_MESSAGE, graceSeconds, disruption: TERMINATED_MESSAGE },
        hurry: true,
        causes: because(undefined, { atMs: ports.clock.wallMs(), by: path, what: 'the machine is going down' }),
      });
    }
  }

  late(upTo: number): void {
    const pods = this.#remaining(upTo).map(fullName);
    this.#ctx.log.warn(
      { pods, group: this.#o.groups[upTo]?.priority },
      'pods did not end within their time: the shutdown goes on without them',
    );
  }

  async load(): Promise<ShutdownState> {
    const state = await loadState(this.#ctx, this.#o);
    this.#times?.(state);
    return state;
  }
  store({ startedMs, over }: { startedMs: number; over: boolean }): Promise<void> {
    const state = { startedMs, endedMs: over ? this.#ctx.ports.clock.wallMs() : null };
    this.#times?.(state);
    return storeState(this.#ctx, this.#o, state);
  }
}
