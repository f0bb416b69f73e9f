/** Gives devices to containers: decisions are `machines/allocation/devices`, what plugins are asked is here. */

import {
  type AllocationPlan,
  allocationOf,
  allocationOrder,
  byNode,
  chooseDevices,
  type DeviceRequest,
  deviceRequests,
  planAllocation,
} from '../../../machines/allocation/devices/allocate.ts';
import { deviceHints, nearFirst } from '../../../machines/allocation/devices/hints.ts';
import { mergeResponses } from '../../../machines/allocation/devices/responses.ts';
import { type DeviceLedger, deviceIds, NO_DEVICES, type PluginOptions } from '../../../machines/allocation/devices/types.ts';
import { mayLeave } from '../../../machines/allocation/leaving.ts';
import {
  type Affinities,
  type AllocationAnswer,
  type ContainerShare,
  NO_SHARE,
  type ProviderHints,
} from '../../../machines/allocation/messages.ts';
import { apiView } from '../../../machines/api/messages.ts';
import { own } from '../../../machines/data/own.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Container } from '../../../machines/kube/podTable.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { podRef } from '../../../machines/pod/names.ts';
import type { PeerCall } from '../../../machines/pod/peers/peers.ts';
import { isTerminal } from '../../../machines/pod/phase.ts';
import { unsupported } from '../../../machines/pods/admission/admission.ts';
import { waitingPodsView } from '../../../machines/pods/admission/messages.ts';
import { isRefused, podsView } from '../../../machines/pods/manager/messages.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { PluginConnection } from '../../../ports/sockets/devicePlugins.ts';
import { inTurn } from '../../../ports/turns.ts';
import type { PeerCalls } from '../../foundation/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** PreStartContainer's, of the reference; Allocate has none there. */
const PRE_START_TIMEOUT_MS = 30_000;
const ALLOCATE_TIMEOUT_MS = null;
/** A plugin that takes longer is told of in the events of the pod. */
const SLOW_MS = 60_000;
const SAVE_AGAIN_MS = 10_000;
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

type Outcome =
  | { kind: 'held' }
  | { kind: 'none' }
  | { kind: 'wait'; message: string }
  | { kind: 'refused'; message: string; reason?: string };
interface Turn extends DeviceRequest {
  pod: Pod;
  container: Container;
  signal: AbortSignal;
  /** NUMA nodes that the topology manager chose; null: any. */
  nodes: readonly number[] | null;
}

interface AllocatorOptions {
  /** The machine's NUMA nodes. */
  nodes: readonly number[];
  calls: PeerCalls;
  persist(ledger: DeviceLedger): Promise<void>;
  /** The ledger is another. */
  changed(): void;
}

export class DeviceAllocator {
  private readonly ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal'>;
  private readonly o: AllocatorOptions;
  private readonly duration: ReturnType<Ports['metrics']['histogram']>;
  /** Plugins that can be asked, by resource. */
  readonly plugins = new Map<string, { connection: PluginConnection; options: PluginOptions }>();
  /** What the plugin of a resource said of itself, also when it is gone by now. */
  readonly options = new Map<string, PluginOptions>();
  ledger: DeviceLedger = NO_DEVICES;
  /** Devices that are being given just now, by resource. */
  private readonly reserved = new Map<string, Set<string>>();
  /** The record on disk is older than the ledger. */
  private unsaved = false;
  /** When that is tried again. */
  private again: ReturnType<Ports['clock']['setTimeout']>;

  constructor(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal'>, o: AllocatorOptions) {
    this.ctx = ctx;
    this.o = o;
    this.duration = ctx.ports.metrics.histogram(
      'kubelet_device_plugin_alloc_duration_seconds',
      'Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.',
      SECONDS,
      ['resource_name'],
    );
  }

  /** `active`: pods that may have devices although no view shows them yet. Aborted with `signal` it is as not asked, but for what was given by then. */
  admit(pod: Pod, o: { active: ReadonlySet<string>; affinity?: Affinities; signal: AbortSignal }): Promise<AllocationAnswer> {
    const { uid } = pod.metadata;
    const signal = AbortSignal.any([o.signal, this.ctx.signal]);
    return inTurn(this, uid, async () => {
      this.free((holder) => holder === uid || o.active.has(holder));
      for (const { container } of allocationOrder(pod)) {
        if (o.affinity?.has(container.name) === false) continue;
        const nodes = o.affinity?.get(container.name)?.nodes ?? null;
        for (const request of deviceRequests(container)) {
          const outcome = await this.give({ pod, container, signal, nodes, ...request });
          if (outcome.kind === 'none' && !this.isOfOthers(request.resource)) {
            const refusal = unsupported(pod, { podGroups: true, extendedResources: false });
            if (refusal !== null) return { kind: 'refused', reason: refusal.reason, message: refusal.message };
          }
          if (outcome.kind === 'wait') return { kind: 'later', why: outcome.message };
          if (outcome.kind === 'refused') {
            const { reason, message } = outcome;
            if (reason !== undefined) return { kind: 'refused', reason, message };
            const why = `Allocate failed due to ${message}, which is unexpected`;
            return { kind: 'refused', reason: 'UnexpectedAdmissionError', message: why };
          }
        }
      }
      const unsaved = await this.save();
      return unsaved === null ? { kind: 'granted' } : { kind: 'later', why: unsaved };
    });
  }

  /** Counted by an administrator for this node: there is nothing to hand in. */
  private isOfOthers(resource: string): boolean {
    const amount = own(this.ctx.registry.read(apiView.placement)?.value.extended ?? {}, resource);
    return amount !== undefined && amount !== '0';
  }

  /** It was not let in after all: what it was given is free. The pod manager has given that up. */
  forget(uid: string): void {
    void inTurn(this, uid, async () => {
      if (this.isOver(uid)) this.release(new Set([uid]));
      this.saveSoon();
    });
  }

  /**
   * Takes back what pods hold that are over as soon as all is heard, and whenever it is heard anew. That a pod was given up is said
   * once, and this manager or the pod manager may have been away then.
   */
  keepTidy(): void {
    const { registry, signal } = this.ctx;
    let was = false;
    const look = (): void => {
      const isNews = this.isHeard() && !was;
      was = this.isHeard();
      if (!isNews) return;
      this.free((uid) => registry.read(waitingPodsView)?.value.has(uid) === true);
      this.saveSoon();
    };
    for (const view of [podsView, runtimePodsView]) {
      const watch = registry.watch<unknown>(view, look);
      signal.addEventListener('abort', () => watch[Symbol.dispose](), { once: true });
    }
    look();
  }

  start(pod: Pod, o: { container: Container; signal: AbortSignal }): Promise<Built<ContainerShare>> {
    const { container } = o;
    const signal = AbortSignal.any([o.signal, this.ctx.signal]);
    return inTurn(this, pod.metadata.uid, async () => {
      const answers = [];
      for (const request of deviceRequests(container)) {
        const { resource } = request;
        const of = { container: container.name, resource };
        const before = allocationOf(this.ledger, pod.metadata.uid, of);
        if (before === undefined || this.ledger.resources.get(resource)?.returning === true) {
          const outcome = await this.give({ pod, container, signal, nodes: null, ...request });
          if (outcome.kind === 'none' && this.isOfOthers(resource)) continue;
          if (outcome.kind === 'none') return refused(`no plugin of ${resource} has registered at this node`);
          if (outcome.kind !== 'held') return refused(outcome.message);
        }
        const held = allocationOf(this.ledger, pod.metadata.uid, of);
        if (held === undefined) return refused(`the devices of ${resource} were taken back meanwhile; they are asked for again`);
        const unready = await this.preStart({ pod, container, resource, signal }, deviceIds(held));
        if (unready !== null) return refused(unready);
        answers.push({ resource, response: held.response });
      }
      const unsaved = await this.save();
      if (unsaved !== null) return refused(unsaved);
      if (answers.length === 0) return built(NO_SHARE);
      const { share, conflicts } = mergeResponses(answers);
      if (conflicts.length > 0) {
        const where = { ...podRef(pod), container: container.name, conflicts };
        this.ctx.log.warn(where, 'device plugins say different things about the same: the first word counts');
      }
      return built(share);
    });
  }

  /** Writes what has changed. Null, or why it is not on disk. */
  async save(): Promise<string | null> {
    if (!this.unsaved) return null;
    this.unsaved = false;
    try {
      await this.o.persist(this.ledger);
      return null;
    } catch (error) {
      this.unsaved = true;
      return `the record of devices cannot be written: ${messageOf(error)}`;
    }
  }

  /** Writes what has changed, and tries again until it is on disk. */
  saveSoon(): void {
    void this.save().then((unsaved) => {
      const { ports, log, signal } = this.ctx;
      if (unsaved === null || signal.aborted) return;
      log.warn({ retryMs: SAVE_AGAIN_MS }, unsaved);
      ports.clock.clearTimeout(this.again);
      this.again = ports.clock.setTimeout(() => signal.aborted || this.saveSoon(), SAVE_AGAIN_MS);
    });
  }

  change(ledger: DeviceLedger): void {
    this.ledger = ledger;
    this.unsaved = true;
    this.o.changed();
  }

  /** What pods hold that are over. */
  private free(isActive: (uid: string) => boolean): void {
    const holders = this.ledger.allocations.map((a) => a.uid);
    this.release(new Set(holders.filter((uid) => !isActive(uid) && this.isOver(uid))));
  }

  private release(uids: ReadonlySet<string>): void {
    const allocations = this.ledger.allocations.filter((a) => !uids.has(a.uid));
    if (allocations.length < this.ledger.allocations.length) this.change({ ...this.ledger, allocations });
  }

  /** Every source has said what it has, and the runtime what runs. */
  private isHeard(): boolean {
    const { registry } = this.ctx;
    return registry.read(podsView)?.value.sourcesReady === true && registry.read(runtimePodsView) !== undefined;
  }

  /**
   * Nobody before every source was heard. Of whom no worker has verified that nothing runs: never as long as a container may
   * be using what it has. One that was created late, and will not be started, uses nothing.
   */
  private isOver(uid: string): boolean {
    const { registry } = this.ctx;
    if (!this.isHeard()) return false;
    const record = registry.read(podsView)?.value.records.get(uid);
    const phase = record?.worker?.phase;
    if (phase === 'finished' || phase === 'terminated') return true;
    const listed = registry.read(runtimePodsView)?.value.pods.get(uid)?.containers ?? [];
    if (listed.some((c) => c.state !== 'exited')) return false;
    return record === undefined || isRefused(record) || (phase === undefined && isTerminal(record.pod.status.phase));
  }

  private async give(turn: Turn): Promise<Outcome> {
    const { pod, container, resource, signal } = turn;
    const plan = this.planNear(turn);
    if (plan.kind !== 'choose') return this.soon(turn, plan);
    const plugin = this.plugins.get(resource);
    if (plugin === undefined) return { kind: 'refused', message: `can't allocate unregistered device ${resource}` };
    try {
      const preferred = await this.preferred(plugin, { plan, turn });
      // Other pods may have been given some of them meanwhile.
      const now = this.planNear(turn);
      if (now.kind !== 'choose') return this.soon(turn, now);
      const ids = chooseDevices(now, preferred);
      const response = await this.reserving(resource, ids, () =>
        this.timed(resource, () => this.asked(turn, 'Allocate', () => plugin.connection.allocate(ids, call(signal)))),
      );
      const state = this.ledger.resources.get(resource);
      const given = { uid: pod.metadata.uid, container: container.name, resource, devices: byNode(state, ids), response };
      this.change({ ...this.ledger, allocations: [...this.ledger.allocations, given] });
      this.ctx.log.info({ ...podRef(pod), container: container.name, resource, devices: ids }, 'devices were given to a container');
      return { kind: 'held' };
    } catch (error) {
      // It has gone, or another took its place: what that one can give is another question.
      const kind = this.plugins.get(resource) === plugin ? 'refused' : 'wait';
      return { kind, message: messageOf(error) };
    }
  }

  private plan({ pod, container, resource, count }: Turn, ledger = this.ledger): AllocationPlan {
    const listed = this.ctx.registry.read(runtimePodsView)?.value.pods.get(pod.metadata.uid)?.containers ?? [];
    const running = listed.some((c) => c.name === container.name && c.state === 'running');
    const reserved = this.reserved.get(resource) ?? new Set<string>();
    return planAllocation(ledger, { resource, count, pod, container: container.name, running, reserved });
  }

  private planNear(turn: Turn): AllocationPlan {
    const plan = this.plan(turn);
    return plan.kind === 'choose' ? nearFirst(plan, this.ledger.resources.get(turn.resource), turn.nodes) : plan;
  }

  /** For the topology manager. */
  hints(pod: Pod, { container, active }: { container: string | null; active: ReadonlySet<string> }): ProviderHints {
    const { uid } = pod.metadata;
    this.free((holder) => holder === uid || active.has(holder));
    const place = { container, nodes: this.o.nodes, reserved: this.reserved };
    return { now: deviceHints(this.ledger, pod, place), soon: deviceHints(this.withoutLeaving(uid), pod, place) };
  }

  /** A pod is not refused for what others release soon. */
  private soon(turn: Turn, plan: Exclude<AllocationPlan, { kind: 'choose' }>): Outcome {
    if (plan.kind !== 'refused') return plan;
    if (this.plan(turn, this.withoutLeaving(turn.pod.metadata.uid)).kind !== 'choose') return plan;
    return { kind: 'wait', message: `${plan.message}; pods that are on their way out still have some` };
  }

  /** A pod that waits to be let in does not leave: two that have a part each would wait for each other. */
  private withoutLeaving(uid: string): DeviceLedger {
    const { registry } = this.ctx;
    const [pods, waiting] = [registry.read(podsView)?.value, registry.read(waitingPodsView)?.value];
    const allocations = this.ledger.allocations.filter((a) => a.uid === uid || waiting?.has(a.uid) === true || !mayLeave(a.uid, pods));
    return { ...this.ledger, allocations };
  }

  /** None where the plugin has no say, or there is no choice. */
  private async preferred(
    { connection, options }: { connection: PluginConnection; options: PluginOptions },
    { plan, turn }: { plan: Extract<AllocationPlan, { kind: 'choose' }>; turn: Turn },
  ): Promise<readonly string[]> {
    const { must, available, count } = plan;
    if (!options.getPreferredAllocationAvailable || must.length >= count) return [];
    const request = { available: [...new Set([...available, ...must])].sort(), mustInclude: must, size: count };
    return this.asked(turn, 'GetPreferredAllocation', () => connection.preferred(request, call(turn.signal)));
  }

  private async reserving<T>(resource: string, ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const held = this.reserved.get(resource) ?? new Set<string>();
    this.reserved.set(resource, held);
    for (const id of ids) held.add(id);
    try {
      return await work();
    } finally {
      for (const id of ids) held.delete(id);
    }
  }

  /** `of`: for which container. */
  private asked<T>(of: Pick<Turn, 'pod' | 'container' | 'resource' | 'signal'>, method: string, work: () => Promise<T>): Promise<T> {
    const { pod, container, resource, signal } = of;
    const about = { ...pluginCall(resource, method), about: `container ${container.name}`, uid: pod.metadata.uid };
    const slow = this.ctx.ports.clock.setTimeout(() => this.saySlow(of, method), SLOW_MS);
    return this.o.calls.during(about, work, { signal }).finally(() => this.ctx.ports.clock.clearTimeout(slow));
  }

  /** Allocate has no deadline: without a word the pod would wait for no reason that its owner can see. */
  private saySlow({ pod, container, resource }: Pick<Turn, 'pod' | 'container' | 'resource'>, method: string): void {
    const message = `the device plugin of ${resource} has not answered ${method} of container ${container.name} for ${SLOW_MS / 1000} s`;
    const event = { type: 'Warning', reason: 'DevicePluginNotAnswering', message, pod: podRef(pod) } as const;
    this.ctx.registry.send(eventsAddr, { type: 'event.record', event });
  }

  private timed<T>(resource: string, work: () => Promise<T>): Promise<T> {
    const { clock } = this.ctx.ports;
    const startedMs = clock.monoMs();
    return work().finally(() => this.duration.observe((clock.monoMs() - startedMs) / 1000, { resource_name: resource }));
  }

  /** Null where they are ready, or nobody wants to make them so. A plugin that is gone may want to, and cannot. */
  private async preStart(of: Pick<Turn, 'pod' | 'container' | 'resource' | 'signal'>, ids: readonly string[]): Promise<string | null> {
    const { resource, signal } = of;
    const options = this.options.get(resource);
    // After a restart nobody has said yet what these devices need; the reference fails such a start, too.
    if (options === undefined)
      return `no plugin of ${resource} has registered yet, which may have to prepare its devices; it is tried again`;
    if (!options.preStartRequired) return null;
    const plugin = this.plugins.get(resource);
    if (plugin === undefined)
      return `the plugin of ${resource} is gone, and nobody else can prepare its devices before a start; it is tried again`;
    try {
      const limit = { timeoutMs: PRE_START_TIMEOUT_MS, signal };
      await this.asked(of, 'PreStartContainer', () => plugin.connection.preStart(ids, limit));
      return null;
    } catch (error) {
      return `PreStartContainer of ${resource} failed: ${messageOf(error)}`;
    }
  }
}

export function pluginCall(resource: string, method: string): PeerCall {
  return { peer: `device plugin of ${resource}`, name: resource, call: method };
}

function call(signal: AbortSignal) {
  return { timeoutMs: ALLOCATE_TIMEOUT_MS, signal };
}
