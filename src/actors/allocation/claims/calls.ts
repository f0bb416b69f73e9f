/** What drivers are asked. Each claim is a call of its own, so one that fails fails alone. */

import type { ConnectionEvent, HealthEvent } from '../../../machines/allocation/claims/driverMachine.ts';
import type { DraDriver } from '../../../machines/allocation/claims/messages.ts';
import {
  type ClaimRecord,
  claimKey,
  type DeviceHealth,
  deviceKey,
  HEALTH_MAX,
  type PreparedDevice,
} from '../../../machines/allocation/claims/types.ts';
import { type PeerCall, peerViews, whyUnregistered } from '../../../machines/pod/peers/peers.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Dra, DraCall, DraConnection } from '../../../ports/sockets/dra.ts';
import { type PeerCalls, peerCalls } from '../../foundation/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { newestOnly } from '../newest.ts';
import type { ClaimMetrics } from './metrics.ts';
import type { ClaimSteps } from './steps.ts';

/** Deadline of a call, from the reference. */
const CALL_TIMEOUT_MS = 45_000;

interface DraCallsOptions {
  dra: Dra;
  metrics: ClaimMetrics;
  steps: ClaimSteps;
}
interface Connected {
  driver: string;
  connection: DraConnection;
  connected: boolean;
}
type Method = 'NodePrepareResources' | 'NodeUnprepareResources';

export class DraCalls {
  readonly #ctx: Pick<ActorCtx, 'ports' | 'log' | 'publish' | 'registry'>;
  readonly #o: DraCallsOptions;
  readonly #calls: PeerCalls;
  /** By stamp, in the order in which they registered. */
  readonly #connections = new Map<string, Connected>();

  constructor(ctx: Pick<ActorCtx, 'ports' | 'log' | 'publish' | 'registry'>, o: DraCallsOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#calls = peerCalls(ctx, peerViews.claims);
  }

  /** Until the function it gives is called. */
  connect({ driver, endpoint, service, stamp }: DraDriver, send: (event: ConnectionEvent) => void): () => void {
    const of: Omit<Connected, 'connection'> = { driver, connected: false };
    const changed = (connected: boolean) => {
      if (of.connected === connected) return;
      of.connected = connected;
      this.#ctx.log.info({ driver, endpoint, connected }, 'the connection to a DRA driver changed');
      const about = driverCall(driver, 'connection');
      if (connected) this.#calls.settled(about);
      else this.#calls.failed(about, `${endpoint} does not answer`);
      send({ type: 'connection.changed', connected });
    };
    const connection = this.#o.dra.connect(endpoint, { service, changed });
    this.#connections.set(stamp, Object.assign(of, { connection }));
    return () => {
      this.#connections.delete(stamp);
      connection.close();
      if (!this.has(driver)) this.#calls.forget(driverCall(driver, '').peer);
    };
  }

  watchHealth({ stamp }: DraDriver, send: (event: HealthEvent) => void): () => void {
    const held = this.#connections.get(stamp);
    if (held === undefined) throw new Error('a DRA driver is watched that is not connected');
    // Each list is a part: a driver that tells of one device after the other is heard of all of them together.
    const told = newestOnly<Map<string, DeviceHealth>>(
      this.#ctx.ports,
      (said) => send({ type: 'health.listed', devices: [...said.values()] }),
      (before, word) => {
        for (const [key, said] of word) if (before.has(key) || before.size < HEALTH_MAX) before.set(key, said);
        return before;
      },
    );
    const about = driverCall(held.driver, 'NodeWatchResources');
    const end = held.connection.watchHealth({
      devices: (devices) => {
        this.#calls.settled(about);
        told.put(new Map(devices.map((said) => [deviceKey(said), said])));
      },
      end: (why, never) => {
        if (!never) this.#calls.failed(about, why);
        send({ type: 'health.ended', why, never });
      },
    });
    return () => {
      told.drop();
      end();
    };
  }

  has(driver: string): boolean {
    return this.#of(driver) !== undefined;
  }

  /** What to say of a driver that is not there, and why it is not. */
  missing(driver: string): string {
    const why = whyUnregistered(this.#ctx.registry.read(peerViews.plugins)?.value, driver);
    return `DRA driver ${driver} is not registered${why === '' ? '' : `; it cannot be registered: ${why}`}`;
  }

  /** The newest registration that is connected, else the newest. */
  #of(driver: string): DraConnection | undefined {
    const all = [...this.#connections.values()].filter((c) => c.driver === driver).reverse();
    return (all.find((c) => c.connected) ?? all[0])?.connection;
  }

  /** What each driver prepared. Rejects with what one of them says. */
  async prepare(record: ClaimRecord, signal: AbortSignal): Promise<ReadonlyMap<string, readonly PreparedDevice[]>> {
    const devices = await this.#each(record, 'NodePrepareResources', async (driver) => {
      const answers = await this.#call(driver, 'NodePrepareResources', (at, call) => at.prepare([record], call), signal);
      return answerOf(answers, 'NodePrepareResources', record).devices;
    });
    return new Map(devices);
  }

  async unprepare(record: ClaimRecord, signal: AbortSignal): Promise<void> {
    await this.#each(record, 'NodeUnprepareResources', async (driver) => {
      const answers = await this.#call(driver, 'NodeUnprepareResources', (at, call) => at.unprepare([record], call), signal);
      answerOf(answers, 'NodeUnprepareResources', record);
    });
  }

  /** All drivers at once. One that fails is told when every other has answered. */
  async #each<T>(record: ClaimRecord, method: Method, work: (driver: string) => Promise<T>): Promise<(readonly [string, T])[]> {
    const [uid = ''] = record.pods;
    const of = { about: `ResourceClaim ${claimKey(record)}`, uid };
    const followed = (driver: string) => this.#calls.during({ ...driverCall(driver, method), ...of }, () => work(driver));
    const ask = (driver: string) => this.#o.steps.during(record, `${method} of DRA driver ${driver}`, () => followed(driver));
    const results = await Promise.allSettled([...record.drivers.keys()].map(async (driver) => [driver, await ask(driver)] as const));
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }

  async #call<T>(driver: string, method: Method, ask: (at: DraConnection, call: DraCall) => Promise<T>, signal: AbortSignal): Promise<T> {
    const at = this.#of(driver);
    if (at === undefined) throw new Error(this.missing(driver));
    const { clock } = this.#ctx.ports;
    const since = clock.monoMs();
    try {
      const answer = await ask(at, { timeoutMs: CALL_TIMEOUT_MS, signal });
      this.#o.metrics.call(driver, method, clock.monoMs() - since, null);
      return answer;
    } catch (error) {
      this.#o.metrics.call(driver, method, clock.monoMs() - since, error);
      throw new Error(`${method}: ${driver}: ${messageOf(error)}`);
    }
  }
}

function driverCall(driver: string, method: string): PeerCall {
  return { peer: `DRA driver ${driver}`, name: driver, call: method };
}

/** What it says of the one claim that it was asked about, in the words of the reference. */
function answerOf<T extends { error: string }>(answers: Readonly<Record<string, T>>, method: Method, { uid, name }: ClaimRecord): T {
  const other = Object.keys(answers).find((key) => key !== uid);
  if (other !== undefined) throw new Error(`${method} returned result for unknown claim UID ${other.slice(0, 100)}`);
  const answer = Object.hasOwn(answers, uid) ? answers[uid] : undefined;
  if (answer === undefined) throw new Error(`${method} skipped 1 ResourceClaims`);
  if (answer.error !== '') throw new Error(`${method} failed for ResourceClaim ${name}: ${answer.error}`);
  return answer;
}
