/**
 * State held: which pods use which ResourceClaims, what drivers prepared, connections to drivers, health of their devices.
 * Lost on restart: connections, and health until drivers say it again; calls under way are repeated.
 * Rebuilt from: `<root-dir>/dra_manager_state`, the view of drivers, the questions of pod workers.
 */

import { fromCallback, fromPromise } from 'xstate';
import { claimMachine, type Look } from '../../../machines/allocation/claims/claimMachine.ts';
import { type ClaimUser, checkClaim } from '../../../machines/allocation/claims/claimRules.ts';
import { type ClaimsFacts, claimsMachine } from '../../../machines/allocation/claims/claimsMachine.ts';
import { type ConnectionEvent, driverMachine, type HealthEvent } from '../../../machines/allocation/claims/driverMachine.ts';
import {
  type ClaimsEvent,
  claimHealthView,
  claimsAddr,
  claimsView,
  type DraDriver,
  draDriversView,
  draLeavingView,
  type HealthView,
} from '../../../machines/allocation/claims/messages.ts';
import { podsWith } from '../../../machines/allocation/claims/share.ts';
import { slicesMachine } from '../../../machines/allocation/claims/slicesMachine.ts';
import {
  type ClaimRecord,
  type DeviceHealth,
  deviceKey,
  HEALTH_MAX,
  type PreparedDevice,
  splitKey,
} from '../../../machines/allocation/claims/types.ts';
import { failureText, kubePath } from '../../../machines/kube/request.ts';
import { podManagerAddr, podsView } from '../../../machines/pods/manager/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Dra } from '../../../ports/sockets/dra.ts';
import { API_TIMEOUT_MS, type KubeClient, kubeClient } from '../../api/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { DraCalls } from './calls.ts';
import { claimMetrics } from './metrics.ts';
import { ClaimRecords } from './records.ts';
import { ClaimSteps } from './steps.ts';

export interface ClaimsOptions {
  rootDir: string;
  nodeName(): string;
}

const READY_TIMEOUT_MS = 60_000;

export function claimsSpec(o: ClaimsOptions): ActorSpec<ClaimsEvent> {
  return {
    type: 'actor',
    id: claimsAddr.path.split('/').at(-1) ?? 'claims',
    mailbox: { capacity: 4096 },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => {
      const { dra } = ctx.ports;
      if (dra === undefined) throw new Error('this node cannot speak to drivers of dynamic resources');
      return { logic: logicOf(ctx, new ClaimManager(ctx, o, dra)), input: startOf(ctx) };
    },
  };
}

function startOf({ incarnation, registry }: ActorCtx<ClaimsEvent>) {
  return { starts: incarnation === 1, leaving: registry.read(draLeavingView)?.value ?? new Set<string>() };
}

function logicOf(ctx: ActorCtx<ClaimsEvent>, manager: ClaimManager) {
  const { registry } = ctx;
  const facts = (): ClaimsFacts => ({
    drivers: registry.read(draDriversView)?.value ?? new Map(),
    pods: registry.read(podsView)?.value,
    listing: registry.read(runtimePodsView)?.value,
    records: manager.records.all,
  });
  const claim = provided(claimMachine, {
    actors: {
      look: fromPromise<Look, { namespace: string; name: string; uses: readonly { ask: number; user: ClaimUser }[] }>(({ input, signal }) =>
        manager.look(input, signal),
      ),
      save: fromPromise<void, { key: string; record: ClaimRecord | null }>(({ input }) => manager.save(input.key, input.record)),
      prepare: fromPromise<ReadonlyMap<string, readonly PreparedDevice[]>, { record: ClaimRecord }>(({ input, signal }) =>
        manager.calls.prepare(input.record, signal),
      ),
      unprepare: fromPromise<void, { record: ClaimRecord }>(({ input, signal }) => manager.calls.unprepare(input.record, signal)),
    },
    actions: { tellDoubted: (_, { key, record }) => manager.doubt(key, record) },
  });
  const driver = provided(driverMachine, {
    actors: {
      connection: fromCallback<ConnectionEvent, DraDriver>(({ input, sendBack }) => manager.connect(input, sendBack)),
      health: fromCallback<HealthEvent, DraDriver>(({ input, sendBack }) => manager.calls.watchHealth(input, sendBack)),
    },
    actions: {
      takeHealth: (_, { driver: name, devices }) => manager.heard(name, devices),
      dropHealth: (_, { driver: name }) => manager.unheard(name),
    },
  });
  const remove = fromPromise<void, { driver: string }>(({ input, signal }) => manager.removeSlices(input.driver, signal));
  const slices = provided(slicesMachine, { actors: { remove } }, momentOf(ctx.ports));
  return provided(
    claimsMachine,
    {
      actors: { claim, driver, slices, load: fromPromise(() => manager.load()) },
      actions: {
        hold: (_, { ask, event }) => manager.hold(ask, event),
        reply: (_, { ask, error }) => manager.reply(ask, error),
        tellLeaving: (_, { drivers }) => ctx.publish(draLeavingView, drivers),
        refuse: (_, { event, why }) => event.replyTo.refuse(why),
        sayFailed: (_, { error }) =>
          ctx.log.warn({ file: manager.records.file, err: error }, 'the records of ResourceClaims cannot be read'),
      },
    },
    facts,
  );
}

/** A question of a pod worker. */
interface Held {
  uid: string;
  replyTo: ReplyTo<Built<null>>;
  operation: 'PrepareResources' | 'UnprepareResources';
  sinceMonoMs: number;
}

class ClaimManager {
  readonly records: ClaimRecords;
  readonly calls: DraCalls;
  readonly #steps: ClaimSteps;
  readonly #ctx: ActorCtx<ClaimsEvent>;
  readonly #nodeName: () => string;
  readonly #client: KubeClient;
  readonly #metrics: ReturnType<typeof claimMetrics>;
  readonly #held = new Map<number, Held>();
  /** Pods whose claims could not be prepared so far. */
  readonly #refused = new Set<string>();
  #health: HealthView;

  constructor(ctx: ActorCtx<ClaimsEvent>, { rootDir, nodeName }: ClaimsOptions, dra: Dra) {
    this.#ctx = ctx;
    this.#nodeName = nodeName;
    this.#client = kubeClient(ctx);
    this.#metrics = claimMetrics(ctx.ports.metrics);
    this.records = new ClaimRecords(ctx, rootDir);
    this.#steps = new ClaimSteps(ctx);
    this.calls = new DraCalls(ctx, { dra, metrics: this.#metrics, steps: this.#steps });
    this.#health = ctx.registry.read(claimHealthView)?.value ?? new Map();
  }

  /** Pods that a driver was not there for ask again when one has come. */
  connect(of: DraDriver, send: (event: ConnectionEvent) => void): () => void {
    const wake = (): void => {
      const why = `DRA driver ${of.driver} is there`;
      for (const uid of this.#refused) this.#ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why, awaited: true });
      this.#refused.clear();
    };
    const end = this.calls.connect(of, (event) => {
      send(event);
      if (event.connected) wake();
    });
    wake();
    return end;
  }

  async load(): Promise<ReadonlyMap<string, ClaimRecord>> {
    await this.records.read();
    this.#publish();
    return this.records.all;
  }

  async look(
    of: { namespace: string; name: string; uses: readonly { ask: number; user: ClaimUser }[] },
    signal: AbortSignal,
  ): Promise<Look> {
    const path = kubePath.resourceClaim(of.namespace, of.name);
    const ask = () => this.#client.request({ verb: 'GET', path }, { signal, timeoutMs: API_TIMEOUT_MS });
    const answer = await this.#steps.during(of, 'GET of the ResourceClaim from the API server', ask);
    if (!answer.ok) throw new Error(`fetch ResourceClaim ${of.name}: ${failureText({ verb: 'GET', path }, answer.failure)}`);
    return of.uses.map(({ ask, user }) => {
      const found = checkClaim(answer.body, user);
      // Nothing is recorded of a claim whose driver is not there: the pod can go without it.
      const missing = found.ok ? found.value.drivers.find((driver) => !this.calls.has(driver)) : undefined;
      return { ask, found: missing === undefined ? found : refused(this.calls.missing(missing)) };
    });
  }

  async save(key: string, record: ClaimRecord | null): Promise<void> {
    await this.#steps.during(splitKey(key), `write of ${this.records.file}`, () => this.records.put(key, record));
    this.#publish();
  }

  doubt(key: string, record: ClaimRecord): void {
    this.#ctx.log.warn({ claim: key }, 'the runtime could not find a device of a ResourceClaim: its driver is asked to prepare it again');
    this.records.note(key, record);
    this.#publish();
  }

  hold(ask: number, event: Extract<ClaimsEvent, { type: 'claims.prepare' | 'claims.release' }>): void {
    const operation = event.type === 'claims.prepare' ? 'PrepareResources' : 'UnprepareResources';
    const uid = event.type === 'claims.prepare' ? event.pod.metadata.uid : event.uid;
    this.#refused.delete(uid);
    this.#held.set(ask, { uid, replyTo: event.replyTo, operation, sinceMonoMs: this.#ctx.ports.clock.monoMs() });
  }

  reply(ask: number, error: string | null): void {
    const held = this.#held.get(ask);
    if (held === undefined) return;
    this.#held.delete(ask);
    if (error !== null && held.operation === 'PrepareResources') this.#refused.add(held.uid);
    this.#metrics.operation(held.operation, this.#ctx.ports.clock.monoMs() - held.sinceMonoMs, error !== null);
    held.replyTo(error === null ? built(null) : refused(error));
  }

  async removeSlices(driver: string, signal: AbortSignal): Promise<void> {
    const path = kubePath.resourceSlices;
    const fieldSelector = [`spec.nodeName=${this.#nodeName()}`, ...(driver === '' ? [] : [`spec.driver=${driver}`])].join(',');
    const answer = await this.#client.request({ verb: 'DELETE', path, query: { fieldSelector } }, { signal, timeoutMs: API_TIMEOUT_MS });
    if (!answer.ok && answer.failure.code !== 404) throw new Error(failureText({ verb: 'DELETE', path }, answer.failure));
    this.#ctx.log.debug({ driver, fieldSelector }, 'ResourceSlices deleted');
  }

  /** A list of a driver changes what it names; the rest holds until its time is over, and is forgotten then. */
  heard(driver: string, devices: readonly DeviceHealth[]): void {
    const atWallMs = this.#ctx.ports.clock.wallMs();
    const held = [...(this.#health.get(driver) ?? [])].filter(([, said]) => atWallMs - said.atWallMs <= said.timeoutMs);
    const known = new Map(held);
    const changed = new Set<string>();
    for (const said of devices) {
      const key = deviceKey(said);
      const before = known.get(key);
      if (before === undefined && known.size >= HEALTH_MAX) continue;
      if (before?.health !== said.health || before.message !== said.message || before.timeoutMs !== said.timeoutMs) changed.add(key);
      known.set(key, { ...said, atWallMs });
    }
    this.#tell(driver, { known, changed });
  }

  unheard(driver: string): void {
    const known = this.#health.get(driver);
    if (known !== undefined) this.#tell(driver, { known: null, changed: new Set(known.keys()) });
  }

  #tell(
    driver: string,
    { known, changed }: { known: Map<string, DeviceHealth & { atWallMs: number }> | null; changed: Set<string> },
  ): void {
    const health = new Map(this.#health);
    if (known === null) health.delete(driver);
    else health.set(driver, known);
    this.#health = health;
    this.#ctx.publish(claimHealthView, health);
    for (const uid of podsWith(this.records.all, driver, changed))
      this.#ctx.registry.send(podManagerAddr, { type: 'pods.dirty', uid, why: `DRA driver ${driver} told of the health of its devices` });
  }

  #publish(): void {
    this.#ctx.publish(claimsView, this.records.all);
    this.#metrics.inUse(this.records.all);
  }
}
