/**
 * State held: whether the runtime answers, its name, version and cgroup driver, which pod UIDs have a mutating call in flight.
 * Lost on restart: all of it; calls in flight are cancelled and their askers told `lost` (outcome unknown).
 * Rebuilt from: Version, RuntimeConfig and Status of the runtime; fences begin empty, workers inspect before they act again.
 */
import { fromPromise } from 'xstate';
import type { CriMethod, CriRequest, CriResponse } from '../../../machines/cri.ts';
import { addr, type CriEvent, type CriView, view } from '../../../machines/protocol.ts';
import { criLinkMachine, linkView, readCgroupDriver, readStatus } from '../../../machines/runtime/cri/criLinkMachine.ts';
import { RUNTIME_REQUEST_TIMEOUT_MS } from '../../../machines/runtime/cri/deadlines.ts';
import { placesFor, runtimeBusy } from '../../../machines/runtime/cri/startGate.ts';
import { shortDuration } from '../../../machines/text/duration.ts';
import { CriError } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type OperationMetrics, operationMetrics } from './metrics.ts';
import { CriServer } from './server.ts';

/** A runtime that does not answer Status for this long counts as lost; its calls in flight keep their own deadlines. */
const STATUS_TIMEOUT_MS = 15_000;
/** What the kubelet asks for; runtimes answer with their own version. */
const CRI_VERSION_ASKED = '0.1.0';
/** gRPC's code of a call that the runtime does not know. */
const UNIMPLEMENTED = 12;

/** While the runtime stays away, the log says so again this often; dials fail four times a second. */
const LOST_AGAIN_MS = 300_000;

export interface CriLinkOptions {
  /** Config field runtimeRequestTimeout, milliseconds; bounds the Status poll when it is shorter than 15 s. */
  runtimeRequestTimeoutMs?: number;
}

function linkActor(ctx: ActorCtx<CriEvent>, o: CriLinkOptions) {
  const { cri, clock } = ctx.ports;
  const metrics: OperationMetrics = operationMetrics(ctx.ports.metrics);
  const timeoutMs = Math.min(STATUS_TIMEOUT_MS, o.runtimeRequestTimeoutMs ?? RUNTIME_REQUEST_TIMEOUT_MS);

  async function ask<M extends CriMethod>(method: M, request: CriRequest<M>, signal: AbortSignal): Promise<CriResponse<M>> {
    const began = clock.monoMs();
    let ok = false;
    try {
      const value = await cri.call(method, request, { timeoutMs, signal });
      ok = true;
      return value;
    } finally {
      metrics.ended(method, (clock.monoMs() - began) / 1000, ok);
    }
  }
  async function cgroupDriver(signal: AbortSignal) {
    try {
      return readCgroupDriver(await ask('RuntimeConfig', {}, signal));
    } catch (error) {
      if (error instanceof CriError && error.code === UNIMPLEMENTED) return null;
      throw error;
    }
  }
  async function status(signal: AbortSignal) {
    const atMonoMs = clock.monoMs();
    return readStatus(await ask('Status', {}, signal), atMonoMs);
  }

  let server: CriServer | undefined;
  const { host } = ctx.ports;
  const { cpus } = host.capacity();
  const serverFor = (send: (event: { type: 'cri.check' } | { type: 'server.broken'; error: Error }) => void): CriServer => {
    server ??= new CriServer({
      cri,
      clock,
      metrics,
      startsAtOnce: placesFor(cpus),
      processors: { count: cpus, ...(host.idleMs === undefined ? {} : { idleMs: () => host.idleMs?.() ?? 0 }) },
      signal: ctx.signal,
      onBusy: (busy) => ctx.publish(runtimeBusy, busy),
      onUnavailable: () => send({ type: 'cri.check' }),
      onBroken: (error) => send({ type: 'server.broken', error }),
    });
    return server;
  };
  let announced: CriView | undefined;
  let lost: { sinceMonoMs: number; saidMonoMs: number } | null = null;
  const say = (next: CriView): void => {
    const nowMs = clock.monoMs();
    const runtime = `${next.runtimeName} ${next.runtimeVersion}`.trim();
    if (next.state === 'ready') {
      const lostMs = lost === null ? 0 : nowMs - lost.sinceMonoMs;
      const same = announced?.state === 'ready' && announced.reason === next.reason && announced.networkReason === next.networkReason;
      const well = next.runtimeReady && next.networkReady;
      if (!same || lost !== null) {
        const fields = {
          runtime,
          ...(next.cgroupDriver === undefined || next.cgroupDriver === null ? {} : { cgroupDriver: next.cgroupDriver }),
          ...(lost === null ? {} : { lostFor: shortDuration(lostMs) }),
          ...(next.reason === '' ? {} : { reason: next.reason }),
          ...(next.networkReason === '' ? {} : { network: next.networkReason }),
        };
        ctx.log[well ? 'info' : 'warn'](fields, `the container runtime answers${well ? '' : ' and says that it is not ready'}`);
      }
      lost = null;
      return;
    }
    if (next.state === 'connecting') {
      if (lost === null) ctx.log.debug({}, 'connecting to the container runtime');
      return;
    }
    const before = lost;
    lost = { sinceMonoMs: before?.sinceMonoMs ?? nowMs, saidMonoMs: before?.saidMonoMs ?? nowMs };
    if (before !== null && nowMs - before.saidMonoMs < LOST_AGAIN_MS) return;
    lost.saidMonoMs = nowMs;
    ctx.log.error(
      { reason: next.reason, lostFor: shortDuration(nowMs - lost.sinceMonoMs), ...(runtime === '' ? {} : { runtime }) },
      'the container runtime does not answer: containers run on, nothing can be started or stopped; trying again until it does',
    );
  };
  // Calls of an earlier incarnation are over.
  ctx.publish(runtimeBusy, false);

  return criLinkMachine.provide({
    actors: {
      dial: fromPromise(async ({ signal }) => {
        cri.reconnect();
        const [version, driver] = await Promise.all([ask('Version', { version: CRI_VERSION_ASKED }, signal), cgroupDriver(signal)]);
        const identity = { name: version.runtimeName, version: version.runtimeVersion, cgroupDriver: driver };
        return { identity, reading: await status(signal) };
      }),
      poll: fromPromise(({ signal }) => status(signal)),
    },
    actions: {
      serve: ({ event, self }) => {
        if (event.type === 'cri.call') serverFor((e) => self.send(e)).call(event);
      },
      fence: ({ event, self }) => {
        if (event.type === 'cri.fence') serverFor((e) => self.send(e)).fence(event);
      },
      announce: ({ context }, { state }) => {
        const next = linkView(context, state);
        say(next);
        announced = next;
        ctx.publish(view.cri, next);
      },
      reportReady: () => {
        ctx.registry.send(addr.pleg, { type: 'cri.ready' });
      },
      reportLost: () => {
        ctx.registry.send(addr.pleg, { type: 'cri.lost' });
      },
    },
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
