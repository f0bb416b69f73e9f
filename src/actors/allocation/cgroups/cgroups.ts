/**
 * The cgroups of this node: `kubepods`, one per class, one per pod (resources 1.4 to 1.8).
 *
 * State held: which driver the groups are made with, which pods were told to come later.
 * Lost on restart: nothing that counts: every value is written again from what is wanted, and such pods come again by themselves.
 * Rebuilt from: the configuration, the link to the runtime, the pod manager's view, the kernel.
 */

import { fromCallback, fromPromise } from 'xstate';
import { cgroupsMachine, type Prepared } from '../../../machines/allocation/cgroups/cgroupsMachine.ts';
import { type GroupLayout, groupWrites, presentValues, usageFile, valueFiles } from '../../../machines/allocation/cgroups/files.ts';
import { missingGroup } from '../../../machines/allocation/cgroups/hierarchies.ts';
import { type CgroupsEvent, cgroupsAddress, type GroupAnswer, type GroupRequest } from '../../../machines/allocation/cgroups/messages.ts';
import {
  configuredName,
  type GroupName,
  groupPath,
  kubepodsName,
  podGroupName,
  rootName,
  TIERS,
  tierName,
} from '../../../machines/allocation/cgroups/names.ts';
import {
  atLeast,
  type GroupValues,
  inFull,
  kubepodsValues,
  LEAST_BYTES,
  type MachineCapacity,
  type PodGroupRules,
  podValues,
  type Reservations,
  reservableBytes,
  reservedValues,
  tierValues,
} from '../../../machines/allocation/cgroups/values.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { GroupDriver } from '../../../machines/nodeFacts.ts';
import { isRefused, type PodRecord, podsView } from '../../../machines/pods/manager/messages.ts';
import { allocationOf, isInForce } from '../../../machines/pods/resize/allocation.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { keptMemory } from './measured.ts';

export interface CgroupsOptions {
  /** What the runtime said, or else the configuration; undefined until the runtime was asked. */
  driver(): GroupDriver | undefined;
  /** cgroupRoot; '/' or '' is the root of the hierarchies. */
  root: string;
  rules: Omit<PodGroupRules, 'pageSizes'>;
  /** `qosReserved.memory`; null: nothing is kept from lesser classes. */
  qosReservedPercent: number | null;
  reservations: Reservations;
  machine: Omit<MachineCapacity, 'pids'>;
  /** Paths of groups that are not ours and may be limited to what is reserved for them; '' = none. */
  systemReservedCgroup: string;
  kubeReservedCgroup: string;
}

/** The groups are there within moments, unless the runtime is away: pods that come before they are made are told so, and woken. */
const READY_MS = 30_000;
const BEGINNING: readonly unknown[] = ['preparing', 'enforcing'];
const EVENT_FAILED = 'FailedNodeAllocatableEnforcement';
const EVENT_ENFORCED = 'NodeAllocatableEnforced';

/** @throws where the node cannot speak to them. */
export function cgroupsOf({ cgroups }: Pick<Ports, 'cgroups'>): Cgroups {
  if (cgroups === undefined) throw new Error('this node has no way to the cgroups of its machine');
  return cgroups;
}

export function cgroupsSpec(o: CgroupsOptions): ActorSpec<CgroupsEvent> {
  return {
    type: 'actor',
    id: cgroupsAddress.path.split('/').at(-1) ?? 'cgroups',
    mailbox: { capacity: 1024, key: (e) => (e.type === 'cgroups.look' ? 'look' : undefined) },
    ready: { when: (s) => !BEGINNING.includes((s as { value: unknown }).value), timeoutMs: READY_MS },
    start: (ctx) => {
      const groups = new Groups(ctx, { ...o, port: cgroupsOf(ctx.ports) });
      return {
        logic: provided(cgroupsMachine, {
          actors: {
            prepare: fromPromise(() => groups.prepare()),
            enforce: fromPromise(() => groups.enforce()),
            renew: fromPromise(() => groups.renewAll()),
            watchDriver: fromCallback(({ sendBack }) => {
              const watch = ctx.registry.watch(criView, () => {
                if (groups.isOutdated()) sendBack({ type: 'driver.changed' });
              });
              return () => watch[Symbol.dispose]();
            }),
          },
          actions: {
            serve: (_, { request, failing }) => groups.serve(request, failing),
            wake: () => groups.wake(),
            sayEnforced: () => groups.say('Normal', EVENT_ENFORCED, 'Updated Node Allocatable limit across pods'),
            sayNotEnforced: (_, { message }) => groups.say('Warning', EVENT_FAILED, message),
          },
        }),
      };
    },
  };
}

class Groups {
  readonly #ctx: ActorCtx<CgroupsEvent>;
  readonly #o: CgroupsOptions & { port: Cgroups };
  readonly #kubepods: GroupName;
  /** Pods that were told to come later. */
  readonly #waiting = new Set<string>();
  #layout: GroupLayout | null = null;
  #driver: GroupDriver | null = null;
  /** With the gate MemoryQoS. */
  readonly #tellKept: ReturnType<typeof keptMemory> | undefined;

  constructor(ctx: ActorCtx<CgroupsEvent>, o: CgroupsOptions & { port: Cgroups }) {
    this.#ctx = ctx;
    this.#o = o;
    this.#kubepods = kubepodsName(o.root);
    if (o.rules.memoryFloors !== undefined) this.#tellKept = keptMemory(ctx.ports);
  }

  /** @throws Error that says what is missing. */
  async prepare(): Promise<Prepared> {
    const { port, root } = this.#o;
    this.#layout = null;
    const driver = this.#o.driver();
    if (driver === undefined) return 'noDriver';
    const layout = await port.detect(driver);
    const rootPath = groupPath(rootName(root), driver);
    if (!(await port.exists(rootPath))) throw new Error(`cgroupRoot ${missingGroup(rootPath)}`);
    if (this.#driver !== driver) this.#ctx.log.info({ driver, version: layout.version, root: rootPath }, 'cgroups');
    this.#driver = driver;
    await this.#makeClasses();
    this.#layout = layout;
    return 'prepared';
  }

  wake(): void {
    const why = 'the cgroups of this node are there';
    for (const uid of this.#waiting) this.#ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why, awaited: true });
    this.#waiting.clear();
  }

  /** Changes nothing where they are there. */
  async #makeClasses(): Promise<void> {
    for (const name of [this.#kubepods, ...TIERS.map((tier) => tierName(this.#kubepods, tier))])
      await this.#o.port.create(this.#path(name));
  }

  /** The runtime is there only now, or has another driver than before: groups elsewhere are none to it. */
  isOutdated(): boolean {
    const driver = this.#o.driver();
    return driver !== undefined && driver !== this.#driver;
  }

  /** @throws Error that says what could not be set, and to what. */
  async enforce(): Promise<void> {
    // Another program may have removed a class that no pod was in.
    await this.#makeClasses();
    await this.renew();
    const { port, reservations, machine, systemReservedCgroup, kubeReservedCgroup } = this.#o;
    const layout = this.#known();
    const { tasks } = this.#ctx.ports.host;
    const whole = { ...machine, pids: tasks === undefined ? null : tasks().max };
    const to = this.#path(this.#kubepods);
    try {
      await port.apply(to, groupWrites(kubepodsValues(whole, reservations, layout.pageSizes), layout));
    } catch (error) {
      throw new Error(`Failed to update Node Allocatable Limits ${JSON.stringify(to)}: ${messageOf(error)}`);
    }
    const { enforceNodeAllocatable: enforce, systemReserved, kubeReserved } = reservations;
    for (const [key, group, reserved] of [
      ['system-reserved', systemReservedCgroup, systemReserved],
      ['kube-reserved', kubeReservedCgroup, kubeReserved],
    ] as const) {
      const values = reservedValues(reserved, { enforce, key, memoryFloors: this.#rules(layout).memoryFloors === true });
      if (values === null || group === '') continue;
      const at = this.#path(configuredName(group, this.#driver ?? 'cgroupfs'));
      const what = key === 'system-reserved' ? 'System Reserved' : 'Kube Reserved';
      try {
        if (!(await port.exists(at))) throw new Error('it does not exist');
        await port.apply(at, groupWrites(values, layout));
      } catch (error) {
        throw new Error(`Failed to enforce ${what} Cgroup Limits on ${JSON.stringify(at)}: ${messageOf(error)}`);
      }
    }
  }

  /** The classes, by the pods that are at work. */
  async renew(and?: Pod): Promise<void> {
    const layout = this.#known();
    const pods = [...(this.#ctx.registry.read(podsView)?.value.records.values() ?? [])].filter(atWork).map((r) => r.pod);
    const all = and === undefined ? pods : [...pods.filter((p) => p.metadata.uid !== and.metadata.uid), and];
    const { machine, reservations, qosReservedPercent: percent } = this.#o;
    const { pageSizes, memoryFloors } = this.#rules(layout);
    const reserve = percent === null ? {} : { reserve: { percent, allocatableBytes: reservableBytes(machine, reservations) } };
    const values = tierValues(all, { pageSizes, ...(memoryFloors === undefined ? {} : { memoryFloors }), ...reserve });
    this.#tellKept?.({ minBytes: values.kubepods.memoryMinBytes ?? 0, lowBytes: values.burstable.memoryLowBytes ?? 0 });
    await this.#o.port.apply(this.#path(this.#kubepods), groupWrites(values.kubepods, layout));
    for (const tier of TIERS) {
      const at = this.#path(tierName(this.#kubepods, tier));
      const held = () => this.#holdAt(at, values[tier], layout);
      if (values[tier].memoryBytes === LEAST_BYTES) await held();
      else
        await this.#o.port.apply(at, groupWrites(values[tier], layout)).catch((error: unknown) => {
          if (percent === null) throw error;
          return held();
        });
    }
  }

  /** A class that has more than it may keep gets no more than it has. */
  async #holdAt(at: string, values: GroupValues, layout: GroupLayout): Promise<void> {
    const { port } = this.#o;
    const [usage = ''] = await port.read(at, [usageFile(layout.version)]);
    const memoryBytes = Math.max(values.memoryBytes ?? 0, Number(usage.trim()) || 0);
    await port.apply(at, groupWrites({ ...values, memoryBytes }, layout));
  }

  /** Also what a change of resources left: a group stays raised where a container shrank by starting anew. */
  async renewAll(): Promise<void> {
    await this.renew();
    const { registry } = this.#ctx;
    const layout = this.#known();
    const rules = this.#rules(layout);
    for (const uid of registry.read(podsView)?.value.records.keys() ?? []) {
      const record = registry.read(podsView)?.value.records.get(uid);
      const status = registry.read(statusesView)?.value.get(uid)?.status;
      if (record === undefined || status === undefined || !atWork(record) || !isInForce(status, allocationOf(record.pod))) continue;
      const at = this.#podPath(record.pod);
      // Nothing is waited for between the judgement and the call, which overtakes no other.
      await this.#o.port.apply(at, groupWrites(inFull(podValues(record.pod, rules), rules), layout)).catch((error: unknown) => {
        // A pod whose sandbox is older than its group has none.
        if (codeOf(error) === 'ENOENT') return;
        this.#ctx.log.warn(
          { err: messageOf(error), uid, cgroup: at },
          "a pod's cgroup cannot be set to what the pod was granted; tried again in a minute",
        );
      });
    }
  }

  serve(request: GroupRequest, failing: string): void {
    const { pod, replyTo } = request;
    if (this.#layout === null) {
      this.#waiting.add(pod.metadata.uid);
      const why =
        failing !== '' ? failing : this.#o.driver() === undefined ? 'the container runtime has not said its cgroup driver yet' : '';
      const message = `the cgroups of this node are not made yet${why === '' ? '' : `: ${why}`}`;
      replyTo({ ok: false, message, later: { failing: failing !== '' } } satisfies GroupAnswer);
      return;
    }
    const work = request.type === 'cgroups.ensure' ? this.#ensure(pod) : this.#resize(pod, request.how);
    work.then(
      () => replyTo({ ok: true }),
      (error: unknown) => replyTo({ ok: false, message: messageOf(error) } satisfies GroupAnswer),
    );
  }

  say(type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (type === 'Warning')
      this.#ctx.log.warn({ err: message }, 'what pods may use of the node is not limited as configured; tried again each minute');
    this.#ctx.registry.send(eventsAddr, { type: 'event.record', event: { type, reason, message } });
  }

  /** Values are written also where it is there already: it may be left of an earlier life of this UID, with hardly any weight. */
  async #ensure(pod: Pod): Promise<void> {
    const layout = this.#known();
    const at = this.#podPath(pod);
    const { port } = this.#o;
    if (!(await port.exists(at))) {
      try {
        await this.renew(pod);
      } catch (error) {
        this.#ctx.log.warn({ err: messageOf(error), uid: pod.metadata.uid }, 'the classes could not be weighed anew before a pod came');
      }
      await port.create(at);
    }
    await port.apply(at, groupWrites(podValues(pod, this.#rules(layout)), layout));
  }

  async #resize(pod: Pod, how: 'raise' | 'exact'): Promise<void> {
    const layout = this.#known();
    const at = this.#podPath(pod);
    const { port } = this.#o;
    if (!(await port.exists(at))) return;
    const rules = this.#rules(layout);
    const wanted = inFull(podValues(pod, rules), rules);
    const present = presentValues(layout.version, await port.read(at, valueFiles(layout.version)));
    await port.apply(at, groupWrites(how === 'raise' ? atLeast(wanted, present) : wanted, layout));
  }

  #podPath(pod: Pod): string {
    return this.#path(podGroupName(this.#kubepods, pod));
  }

  #rules(layout: GroupLayout): PodGroupRules {
    const { memoryFloors, ...rules } = this.#o.rules;
    const floors = memoryFloors === undefined || layout.version === 1 ? {} : { memoryFloors };
    return { ...rules, ...floors, pageSizes: layout.pageSizes };
  }

  #known(): GroupLayout {
    if (this.#layout === null) throw new Error('the cgroups of this node are not prepared yet');
    return this.#layout;
  }

  #path(name: GroupName): string {
    return groupPath(name, this.#driver ?? 'cgroupfs');
  }
}

/** What weighs: not what has ended, is refused, or only waits for its volumes to go. */
export function atWork(record: Pick<PodRecord, 'state' | 'worker'>): boolean {
  const { worker } = record;
  if (worker === null) return !isRefused(record);
  return worker.phase !== 'terminated' && worker.phase !== 'finished';
}
