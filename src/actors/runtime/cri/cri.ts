/**
 * State held: whether the runtime answers, its name, version and cgroup driver, which pod UIDs have a mutating call in flight.
 * Lost on restart: all of it; calls in flight are cancelled and their askers told `lost` (outcome unknown).
 * Rebuilt from: Version, RuntimeConfig and Status of the runtime; fences begin empty, workers inspect before they act again.
 */

import { fromPromise } from 'xstate';
import type { GroupDriver } from '../../../machines/nodeFacts.ts';
import { peerViews } from '../../../machines/pod/peers/peers.ts';
import {
  criLinkMachine,
  type LinkEvent,
  type RuntimeIdentity,
  readCgroupDriver,
  readStatus,
  type StatusReading,
} from '../../../machines/runtime/cri/criLinkMachine.ts';
import { RUNTIME_REQUEST_TIMEOUT_MS } from '../../../machines/runtime/cri/deadlines.ts';
import { type CriEvent, criView, runtimeBusy } from '../../../machines/runtime/cri/messages.ts';
import { placesFor } from '../../../machines/runtime/cri/startGate.ts';
import { plegAddr } from '../../../machines/runtime/pleg/messages.ts';
import type { CriMethod, CriRequest, CriResponse } from '../../../machines/wire/criCalls.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { CriError, type Ports } from '../../../ports/ports.ts';
import { type PeerCalls, peerCalls } from '../../foundation/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { LinkLog } from './linkLog.ts';
import { type OperationMetrics, operationMetrics } from './metrics.ts';
import { CriServer } from './server.ts';

/** A runtime that does not answer Status for this long counts as lost; its calls in flight keep their own deadlines. */
const STATUS_TIMEOUT_MS = 15_000;
/** What the kubelet asks for; runtimes answer with their own version. */
const CRI_VERSION_ASKED = '0.1.0';
/** gRPC's code of a call that the runtime does not know. */
const UNIMPLEMENTED = 12;

export interface CriLinkOptions {
  /** Config field runtimeRequestTimeout, milliseconds; bounds the Status poll when it is shorter than 15 s. */
  runtimeRequestTimeoutMs?: number;
}

function linkActor(ctx: ActorCtx<CriEvent>, o: CriLinkOptions) {
  const metrics = operationMetrics(ctx.ports.metrics);
  const timeoutMs = Math.min(STATUS_TIMEOUT_MS, o.runtimeRequestTimeoutMs ?? RUNTIME_REQUEST_TIMEOUT_MS);
  const calls = new LinkCalls(ctx.ports, metrics, timeoutMs);
  const peers = peerCalls(ctx, peerViews.runtime);
  const log = new LinkLog(ctx);
  const { cpus } = ctx.ports.host.capacity();
  let server: CriServer | undefined;
  // Calls of an earlier incarnation are over.
  ctx.publish(runtimeBusy, false);

  return provided(criLinkMachine, {
    actors: {
      dial: fromPromise(({ signal }) => calls.dial(signal)),
      poll: fromPromise(({ signal }) => calls.status(signal)),
    },
    actions: {
      serve: ({ self }, { call }) => {
        server ??= serverOf(ctx, { metrics, calls: peers, cpus, self });
        server.call(call);
      },
      fence: ({ self }, { fence }) => {
        server ??= serverOf(ctx, { metrics, calls: peers, cpus, self });
        server.fence(fence);
      },
      announce: (_, { view }) => {
        log.say(view);
        ctx.publish(criView, view);
      },
      reportReady: () => {
        ctx.registry.send(plegAddr, { type: 'cri.ready' });
      },
      reportLost: () => {
        ctx.registry.send(plegAddr, { type: 'cri.lost' });
      },
    },
  });
}

/** The calls of the link itself, each within one deadline. */
class LinkCalls {
  readonly #ports: Pick<Ports, 'cri' | 'clock'>;
  readonly #metrics: OperationMetrics;
  readonly #timeoutMs: number;

  constructor(ports: Pick<Ports, 'cri' | 'clock'>, metrics: OperationMetrics, timeoutMs: number) {
    this.#ports = ports;
    this.#metrics = metrics;
    this.#timeoutMs = timeoutMs;
  }

  async dial(signal: AbortSignal): Promise<{ identity: RuntimeIdentity; reading: StatusReading }> {
    this.#ports.cri.reconnect();
    const [version, cgroupDriver] = await Promise.all([
      this.#ask('Version', { version: CRI_VERSION_ASKED }, signal),
      this.#cgroupDriver(signal),
    ]);
    const identity = { name: version.runtimeName, version: version.runtimeVersion, cgroupDriver };
    return { identity, reading: await this.status(signal) };
  }

  async status(signal: AbortSignal): Promise<StatusReading> {
    const atMonoMs = this.#ports.clock.monoMs();
    return readStatus(await this.#ask('Status', {}, signal), atMonoMs);
  }

  async #cgroupDriver(signal: AbortSignal): Promise<GroupDriver | null> {
    try {
      return readCgroupDriver(await this.#ask('RuntimeConfig', {}, signal));
    } catch (error) {
      if (error instanceof CriError && error.code === UNIMPLEMENTED) return null;
      throw error;
    }
  }

  async #ask<M extends CriMethod>(method: M, request: CriRequest<M>, signal: AbortSignal): Promise<CriResponse<M>> {
    const { cri, clock } = this.#ports;
    const began = clock.monoMs();
    let ok = false;
    try {
      const value = await cri.call(method, request, { timeoutMs: this.#timeoutMs, signal });
      ok = true;
      return value;
    } finally {
      this.#metrics.ended(method, (clock.monoMs() - began) / 1000, ok);
    }
  }
}

/** Serves the calls of every other actor. What it finds wrong with the runtime or with itself goes to the link. */
function serverOf(
  ctx: ActorCtx<CriEvent>,
  o: { metrics: OperationMetrics; calls: PeerCalls; cpus: number; self: { send(event: LinkEvent): void } },
): CriServer {
  const { cri, clock, host, observer } = ctx.ports;
  const { metrics, calls, cpus, self } = o;
  return new CriServer({
    cri,
    clock,
    metrics,
    calls,
    // A call that waits for another kubelet is no work for the runtime.
    startsAtOnce: observer === undefined ? placesFor(cpus) : Number.POSITIVE_INFINITY,
    processors: { count: cpus, ...(host.idleMs === undefined ? {} : { idleMs: () => host.idleMs?.() ?? 0 }) },
    signal: ctx.signal,
    onBusy: (busy) => ctx.publish(runtimeBusy, busy),
    onUnavailable: () => self.send({ type: 'cri.check' }),
    onBroken: (error) => self.send({ type: 'server.broken', error }),
  });
}

export function criLinkSpec(o: CriLinkOptions = {}): ActorSpec<CriEvent> {
  return {
    type: 'actor',
    id: 'cri',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: {
      capacity: 8192,
      lane: (e) => (e.type === 'cri.call' ? 'data' : 'control'),
      key: (e) => (e.type === 'cri.check' ? 'check' : undefined),
      overflow: 'reject',
    },
    start: (ctx) => ({ logic: linkActor(ctx, o) }),
  };
}
