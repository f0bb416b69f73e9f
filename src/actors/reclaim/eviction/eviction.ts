/**
 * State held: which thresholds are met and since when, what the node says it is short of, which pod is being evicted.
 * Lost on restart: the reading and the wait for a pod's end; both are begun again.
 * Rebuilt from: its own view (the rest), the ports, the pod manager's view. After a restart of the daemon nothing is short
 * until the first look says so.
 */

import { fromCallback, fromPromise } from 'xstate';
import { apiAddr } from '../../../machines/api/messages.ts';
import { SIGNAL_FACTS, type Signal } from '../../../machines/config/evictionSignals.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { podRef } from '../../../machines/pod/names.ts';
import { isCritical, isTerminal } from '../../../machines/pod/phase.ts';
import { type Eviction, isWanted, podManagerAddr, podsView, verdictOf } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { countedParts, type DiskLayout, garbageOf, layersElsewhere } from '../../../machines/reclaim/eviction/disks.ts';
import {
  type EvictionContext,
  type EvictionFacts,
  type EvictionMachineEvent,
  evictionMachine,
  isLookDue,
  MEMORY_EVERY_MS,
  type Measured,
  type Offender,
  type Victim,
} from '../../../machines/reclaim/eviction/evictionMachine.ts';
import { exceeded, hasStorageLimits } from '../../../machines/reclaim/eviction/limits.ts';
import { EVICTED, pressureView } from '../../../machines/reclaim/eviction/messages.ts';
import { EMPTY_LEDGER, type Met, memoryCrossed, metText, type Pass } from '../../../machines/reclaim/eviction/pass.ts';
import { HARD_GRACE_SECONDS } from '../../../machines/reclaim/eviction/rank.ts';
import { isMemorySignal, type Threshold } from '../../../machines/reclaim/eviction/thresholds.ts';
import { containerGcAddr, type ImageGcEvent, imageGcAddr } from '../../../machines/reclaim/messages.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { because, type ReplyTo } from '../../../machines/supervision/address.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { criClient } from '../../runtime/client.ts';
import { lookout } from '../../supervision/looks/lookout.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { Readings } from './readings.ts';
import { measure, measureStorage } from './usage.ts';

/** Removing images may take as long as this, then it looks all the same. */
const FREE_IMAGES_MS = 60_000;

export interface EvictionOptions {
  thresholds: readonly Threshold[];
  /** Configuration fields of thresholds that this node cannot observe. */
  unseen: readonly string[];
  /** Words about thresholds that follow those of another file system. */
  conflicting: readonly string[];
  /** PodAndContainerStatsFromCRI. */
  fromCri: boolean;
  /** KubeletSeparateDiskGC. */
  separateDisks: boolean;
  /** evictionPressureTransitionPeriod. */
  transitionMs: number;
  /** evictionMaxPodGracePeriod. */
  maxGraceSeconds: number;
  rootDir: string;
  podLogsDir: string;
  /** Path of the group of all pods; undefined where there is none, or the runtime has not said its driver. */
  podsGroup(): string | undefined;
  /** The same of one pod. */
  podGroup(pod: Pod): string | undefined;
  /** localStorageCapacityIsolation: pods are held to the limits of what they may write. */
  limits: boolean;
  /** kernelMemcgNotification: memory is looked at often, and not every 10 s alone. */
  watchMemory: boolean;
  /** There is a node object to report to. */
  cluster: boolean;
}

export function evictionSpec(o: EvictionOptions): ActorSpec {
  return {
    type: 'actor',
    id: 'eviction',
    backoff: { minMs: 1_000, maxMs: 30_000, jitter: 0.1 },
    start: (ctx) => {
      const manager = new EvictionManager(ctx, o);
      return {
        logic: logicOf(manager, ctx, o.watchMemory),
        input: {
          thresholds: o.thresholds,
          transitionMs: o.transitionMs,
          maxGraceSeconds: o.maxGraceSeconds,
          ledger: ctx.registry.read(pressureView)?.value.ledger ?? EMPTY_LEDGER,
          limits: o.limits,
        },
      };
    },
  };
}

function logicOf(manager: EvictionManager, ctx: ActorCtx, watches: boolean) {
  const moment = (): EvictionMoment => new EvictionMoment(ctx, manager);
  return provided(
    evictionMachine,
    {
      actors: {
        observe: fromPromise(({ signal }) => manager.readings.observe(signal)),
        lookout: lookout<EvictionContext>(ctx.ports.clock, (context) => isLookDue(context, moment())),
        watchMemory: fromCallback<EvictionMachineEvent, { last: Pass }>(({ input, sendBack }) =>
          watches ? manager.watchMemory(input.last, () => sendBack({ type: 'memory.crossed' })) : undefined,
        ),
        checkLimits: fromPromise(({ signal }) => manager.checkLimits(signal)),
        freeImages: fromPromise<void, { met: Met | undefined }>(({ input, signal }) => manager.freeImages(input.met, signal)),
        measure: fromPromise<Measured, { met: Met | undefined }>(({ input, signal }) => manager.measure(input.met, signal)),
      },
      actions: {
        publish: (_, { last }) => manager.publish(last),
        sayAttempt: (_, { met }) => manager.sayAttempt(met),
        collect: () => void ctx.registry.send(containerGcAddr, { type: 'gc.run', why: 'the disk is nearly full', urgent: true }),
        evict: (_, { victim }) => manager.evict(victim),
        evictOffenders: (_, { offenders }) => manager.evictOffenders(offenders),
        sayNobody: (_, { met }) => manager.sayNobody(met),
      },
    },
    moment,
  );
}

class EvictionMoment extends LazyMoment implements EvictionFacts {
  readonly #ctx: ActorCtx;
  readonly #manager: EvictionManager;

  constructor(ctx: ActorCtx, manager: EvictionManager) {
    super(ctx.ports);
    this.#ctx = ctx;
    this.#manager = manager;
  }
  get candidates(): readonly Pod[] {
    return this.#manager.candidates();
  }
  get records(): EvictionFacts['records'] {
    return this.#ctx.registry.read(podsView)?.value.records;
  }
  get layout(): DiskLayout {
    return this.#manager.readings.disks.layout;
  }
}

class EvictionManager {
  readonly readings: Readings;
  readonly #ctx: ActorCtx;
  readonly #o: EvictionOptions;
  readonly #evictions;
  /** Signals that some threshold is about. */
  readonly #memorySignals: readonly Signal[];
  #nobodyFor = '';

  constructor(ctx: ActorCtx, o: EvictionOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#memorySignals = [...new Set(o.thresholds.map((t) => t.signal))].filter(isMemorySignal);
    this.readings = new Readings({
      ports: ctx.ports,
      cri: criClient(ctx.registry),
      runtimeUp: () => ctx.registry.read(criView)?.value.state === 'ready',
      log: ctx.log,
      rootDir: o.rootDir,
      thresholds: o.thresholds,
      separateDisks: o.separateDisks,
      podsGroup: o.podsGroup,
    });
    this.#evictions = ctx.ports.metrics.counter('kubelet_evictions', 'Cumulative number of pod evictions by eviction signal', [
      'eviction_signal',
    ]);
    if (o.conflicting.length > 0 && ctx.incarnation === 1)
      ctx.log.warn({ err: o.conflicting.join('; ') }, 'found conflicting containerfs eviction. Ignoring: it follows nodefs or imagefs');
    if (o.unseen.length > 0 && ctx.incarnation === 1)
      ctx.log.warn({ fields: o.unseen }, 'this node has no way to observe what these thresholds are about; they are passed over');
  }

  /** Until it is called off. What cannot be read is said by the next look at everything. */
  watchMemory(last: Pass, crossed: () => void): () => void {
    const { clock } = this.#ctx.ports;
    const ending = new AbortController();
    let timer: unknown;
    const look = async (): Promise<void> => {
      for (const signal of this.#memorySignals) {
        const reading = await this.#readMemory(signal, ending.signal);
        if (ending.signal.aborted) return;
        if (reading !== undefined && memoryCrossed(last, this.#o.thresholds, { ...reading, signal })) return crossed();
      }
      timer = clock.setTimeout(look, MEMORY_EVERY_MS);
    };
    timer = clock.setTimeout(look, MEMORY_EVERY_MS);
    return () => {
      ending.abort();
      clock.clearTimeout(timer);
    };
  }

  /** Undefined: it cannot be read, or there is no limit. */
  async #readMemory(signal: Signal, ending: AbortSignal): Promise<{ available: number; capacity: number } | undefined> {
    try {
      return await this.readings.read(signal, ending);
    } catch (error) {
      this.#ctx.log.debug({ err: messageOf(error), signal }, 'available memory cannot be read');
      return undefined;
    }
  }

  publish({ ledger, pressures, met }: Pass): void {
    const { registry, log } = this.#ctx;
    const before = registry.read(pressureView)?.value.pressures ?? [];
    this.#ctx.publish(pressureView, { pressures, ledger });
    if (met.length === 0) this.#nobodyFor = '';
    if (before.length === pressures.length && before.every((p, i) => p === pressures[i])) return;
    if (pressures.length === 0) log.info({ was: before }, 'the node is under no pressure any more');
    else
      log.warn(
        { pressures, why: met.map(metText) },
        'THE NODE IS UNDER PRESSURE: pods of the API are refused or evicted until more is left; thresholds are set with evictionHard and evictionSoft',
      );
    if (this.#o.cluster) registry.send(apiAddr.nodeStatus, { type: 'node.report', why: 'what the node is short of has changed' });
  }

  sayAttempt(met: Met | undefined): void {
    if (met === undefined) return;
    this.#ctx.log.info({ why: metText(met) }, 'reclaiming what the node is short of');
    this.#ctx.registry.send(eventsAddr, {
      type: 'event.record',
      event: {
        type: 'Warning',
        reason: 'EvictionThresholdMet',
        message: `Attempting to reclaim ${SIGNAL_FACTS[met.threshold.signal].resource}`,
      },
    });
  }

  sayNobody(met: Met | undefined): void {
    if (met === undefined || this.#nobodyFor === met.threshold.signal) return;
    this.#nobodyFor = met.threshold.signal;
    this.sayAttempt(met);
    this.#ctx.log.warn({ why: metText(met) }, 'no pod of this node may be evicted: static pods and critical ones are left alone');
  }

  /**
   * Pods that run and are nobody's idea of critical; what has ended by itself gives nothing back, and keeps the end it came to.
   * A deleted pod may run on for a long grace period: eviction shortens it, where another pod would have to go instead.
   */
  candidates(): readonly Pod[] {
    const pods: Pod[] = [];
    const statuses = this.#ctx.registry.read(statusesView)?.value;
    const listed = this.#ctx.registry.read(runtimePodsView)?.value.pods;
    const runs = ({ metadata: { uid } }: Pod) => listed?.get(uid)?.containers.some((c) => c.state === 'running') === true;
    for (const record of this.#ctx.registry.read(podsView)?.value.records.values() ?? []) {
      const { pod, worker } = record;
      const { phase } = statuses?.get(pod.metadata.uid)?.status ?? pod.status;
      const active = worker === null || worker.phase === 'syncing' || (worker.phase === 'terminating' && runs(pod));
      if (isWanted(record) && verdictOf(record) === null && active && !isTerminal(phase) && !isCritical(pod)) pods.push(pod);
    }
    return pods;
  }

  measure(met: Met | undefined, signal: AbortSignal): Promise<Measured> {
    if (met === undefined) return Promise.resolve(new Map());
    const { rootDir, podLogsDir, fromCri } = this.#o;
    return measure(this.candidates(), met.threshold.signal, {
      ports: this.#ctx.ports,
      cri: criClient(this.#ctx.registry),
      fromCri,
      rootDir,
      podLogsDir,
      parts: countedParts(this.readings.disks.layout, met.threshold.signal),
      podGroup: (pod) => this.#o.podGroup(pod),
      signal,
    });
  }

  /** Where images take the room that is short; the collector says itself what went wrong. */
  async freeImages(met: Met | undefined, signal: AbortSignal): Promise<void> {
    if (met === undefined || !garbageOf(this.readings.disks.layout, met.threshold.signal).images) return;
    const free = (replyTo: ReplyTo<{ freedBytes: number }>): ImageGcEvent => ({ type: 'images.free', replyTo });
    await this.#ctx.registry.ask(imageGcAddr, free, { timeoutMs: FREE_IMAGES_MS, signal });
  }

  /** All at once: each is evicted for its own doing. */
  async checkLimits(signal: AbortSignal): Promise<readonly Offender[]> {
    const limited = this.candidates().filter(hasStorageLimits);
    if (limited.length === 0) return [];
    const { rootDir, podLogsDir, fromCri } = this.#o;
    await this.readings.findDisks(signal);
    const dedicatedImageFs = layersElsewhere(this.readings.disks.layout);
    const cri = criClient(this.#ctx.registry);
    const use = await measureStorage(limited, { ports: this.#ctx.ports, cri, fromCri, rootDir, podLogsDir, signal });
    return limited.flatMap((pod) => {
      const used = use.get(pod.metadata.uid);
      const found = used === undefined ? null : exceeded(pod, used, { dedicatedImageFs });
      return found === null ? [] : [{ pod, exceeded: found }];
    });
  }

  evictOffenders(offenders: readonly Offender[]): void {
    for (const { pod, exceeded: found } of offenders) {
      const eviction = { reason: EVICTED, message: found.message, graceSeconds: HARD_GRACE_SECONDS };
      this.#evict(pod, { eviction, signal: found.signal, why: found.message.trim() });
    }
  }

  evict(victim: Victim | null): void {
    if (victim === null) return;
    const { pod, met, message, graceSeconds } = victim;
    const eviction = { reason: EVICTED, message, graceSeconds, disruption: message };
    this.#evict(pod, { eviction, signal: met.threshold.signal, why: metText(met) });
  }

  #evict(pod: Pod, { eviction, signal, why }: { eviction: Eviction; signal: string; why: string }): void {
    const { message, graceSeconds } = eviction;
    const { registry, path, ports, log } = this.#ctx;
    log.warn({ ...podRef(pod), why, graceSeconds }, 'evicting a pod');
    registry.send(podManagerAddr, {
      type: 'pods.evict',
      uid: pod.metadata.uid,
      eviction,
      causes: because(undefined, { atMs: ports.clock.wallMs(), by: path, what: `evicted: ${why}` }),
    });
    registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason: EVICTED, message, pod: podRef(pod) } });
    this.#evictions.inc({ eviction_signal: signal });
  }
}
