/**
 * State held: the last listing of the runtime (ids and states), whose each id is, how far the hint stream is trusted.
 * Lost on restart: all of it; hints that arrived meanwhile.
 * Rebuilt from: one listing of the runtime, which marks every pod it holds dirty; the stream is opened anew.
 */

import { type AnyActorLogic, fromCallback, fromPromise } from 'xstate';
import { criAddr, criView } from '../../../machines/runtime/cri/messages.ts';
import type { PlegEvent } from '../../../machines/runtime/pleg/messages.ts';
import { type Listing, type PlegFacts, type PlegMachineEvent, plegMachine } from '../../../machines/runtime/pleg/plegMachine.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { RuntimeHint } from '../../../machines/wire/cri.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { CriError } from '../../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type CriClient, criClient } from '../client.ts';
import { podUidOf } from './attribution.ts';
import { LifecycleLedger } from './state.ts';

const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
/** Questions about unknown ids at one time; beyond it a listing is cheaper. */
const LOOKUPS_MAX = 16;

export interface PlegOptions {
  /** Config field runtimeRequestTimeout, milliseconds: the deadline of each listing call. */
  runtimeRequestTimeoutMs?: number;
}

/** A listing is about to begin: every hint of a burst wants one, and a step of the machine for each costs more than the rest of it. */
function isListingSoon(snapshot: unknown): boolean {
  const { relist } = (snapshot as { value: { relist?: unknown } }).value;
  return relist === 'soon' || relist === 'now';
}

async function list(ctx: ActorCtx<PlegEvent>, cri: CriClient, ledger: LifecycleLedger, signal: AbortSignal): Promise<Listing> {
  const { clock } = ctx.ports;
  const beganMonoMs = clock.monoMs();
  const answered = <T>(call: string, answer: Promise<T>) => answer.finally(ledger.asked(call));
  const [sandboxes, containers] = await Promise.all([
    answered('ListPodSandbox', cri.read('ListPodSandbox', {}, { signal })),
    answered('ListContainers', cri.read('ListContainers', {}, { signal })),
  ]);
  return { beganMonoMs, sandboxes: sandboxes.items, containers: containers.containers };
}

/** Reads the hint stream until it ends; says how it went by events, and counts a hint that found no room. */
async function pump(
  ctx: ActorCtx<PlegEvent>,
  o: { signal: AbortSignal; discarded(): void },
  send: (event: PlegMachineEvent) => void,
): Promise<void> {
  const { signal } = o;
  try {
    const { via, stream } = await ctx.ports.cri.hints(signal);
    send({ type: 'stream.opened', via });
    for await (const hint of stream) {
      if (signal.aborted) return;
      send({ type: 'stream.hint', hint });
    }
    send({ type: 'stream.lost', reason: 'the runtime ended the stream', unimplemented: false });
  } catch (error) {
    if (signal.aborted) return;
    const code = error instanceof CriError ? error.code : undefined;
    if (code === RESOURCE_EXHAUSTED) o.discarded();
    send({ type: 'stream.lost', reason: messageOf(error), unimplemented: code === UNIMPLEMENTED });
  }
}

function plegActor(ctx: ActorCtx<PlegEvent>, o: PlegOptions): { logic: AnyActorLogic } {
  const cri = criClient(ctx.registry, o);
  const ledger = new LifecycleLedger(ctx);
  let lookups = 0;
  let failing = false;

  const lookUp = async (hint: RuntimeHint, send: (event: PlegMachineEvent) => void): Promise<void> => {
    if (lookups >= LOOKUPS_MAX) return send({ type: 'relist.want', when: 'now' });
    lookups++;
    try {
      const uid = await podUidOf(cri, hint.id, ctx.signal);
      if (ctx.signal.aborted) return;
      if (uid === undefined) send({ type: 'relist.want', when: 'soon' });
      else {
        ledger.attributed(hint, uid);
        send({ type: 'relist.want', when: 'soon' });
      }
    } catch (error) {
      if (ctx.signal.aborted) return;
      ctx.log.debug({ id: hint.id, error: String(error) }, 'a hint could not be attributed; listing instead');
      send({ type: 'relist.want', when: 'now' });
    } finally {
      lookups--;
    }
  };

  const facts: PlegFacts = {
    get runtimeReady() {
      return ctx.registry.read(criView)?.value.state === 'ready';
    },
    get periodMs() {
      return ledger.trust.periodMs();
    },
    get trouble() {
      return ledger.trouble();
    },
  };
  const logic = provided(
    plegMachine,
    {
      actors: {
        list: fromPromise(({ signal }) => list(ctx, cri, ledger, signal)),
        stream: fromCallback<PlegMachineEvent>(({ sendBack }) => {
          const abort = new AbortController();
          const o = { signal: abort.signal, discarded: () => ledger.discarded() };
          void pump(ctx, o, (event) => {
            if (!abort.signal.aborted) sendBack(event);
          });
          return () => abort.abort();
        }),
      },
      actions: {
        listed: ({ self }, { listing }) => {
          failing = false;
          if (!ledger.listed(listing)) return;
          self.send({ type: 'stream.lost', reason: 'it missed changes in several listings in a row', unimplemented: false });
        },
        listFailed: (_, { error }) => {
          const what = messageOf(error);
          ledger.listFailed(what);
          if (!failing) ctx.log.warn({ error: what }, 'listing the runtime failed; tried again every second');
          failing = true;
          ctx.registry.send(criAddr, { type: 'cri.check' });
        },
        everyPodDirty: () => ledger.everyPodDirty('the runtime may have changed unseen'),
        hint: ({ self }, { hint }) => {
          const verdict = ledger.hint(hint);
          if (verdict === 'relist-soon' && !isListingSoon(self.getSnapshot())) self.send({ type: 'relist.want', when: 'soon' });
          if (verdict === 'lookup') void lookUp(hint, (event) => self.send(event));
        },
        opened: (_, { via }) => ledger.streamOpened(via),
        lost: (_, { reason }) => {
          ledger.streamLost(reason);
          // A stream that broke is the first sign of a runtime that went away.
          if (ctx.registry.read(criView)?.value.state === 'ready') ctx.registry.send(criAddr, { type: 'cri.check' });
        },
      },
    },
    () => facts,
  );
  return { logic };
}

export function plegSpec(o: PlegOptions = {}): ActorSpec<PlegEvent> {
  return {
    type: 'actor',
    id: 'pleg',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: {
      capacity: 4096,
      lane: (e) => (e.type === 'pleg.hint' ? 'data' : 'control'),
      key: (e) => (e.type === 'pleg.hint' ? `${e.id} ${e.kind}` : e.type === 'pleg.relist' ? 'relist' : undefined),
      overflow: 'mark-resync',
      resync: () => ({ type: 'pleg.resync' }),
    },
    start: (ctx) => plegActor(ctx, o),
  };
}
