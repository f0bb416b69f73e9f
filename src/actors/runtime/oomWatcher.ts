/**
 * Tells when the node as a whole ran out of memory, from the kernel's own log (resources 6.1).
 *
 * State held: the number of the last record read, and what was begun to be told of a kill.
 * Lost on restart: nothing that the kernel still has.
 * Rebuilt from: its own view, and the kernel's log from there on. A daemon that starts begins with what the kernel says then.
 */

import { fromCallback } from 'xstate';
import { eventsAddr } from '../../machines/foundation/messages.ts';

import { EMPTY_OOM_LEDGER, isSystemOom, oomView, readOoms, SYSTEM_OOM, systemOomMessage } from '../../machines/runtime/oom.ts';
import { type OomWatcherMachineEvent, oomWatcherMachine } from '../../machines/runtime/oomWatcherMachine.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { KernelLogPart } from '../../ports/machine/kernelLog.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';

export function oomWatcherSpec(): ActorSpec {
  return {
    type: 'actor',
    id: 'oomWatcher',
    start: (ctx) => {
      const watcher = new Watcher(ctx);
      return {
        logic: provided(oomWatcherMachine, {
          actors: {
            follow: fromCallback<OomWatcherMachineEvent>(({ sendBack }) => {
              const abort = new AbortController();
              void watcher.follow(abort.signal, (event) => {
                if (!abort.signal.aborted) sendBack(event);
              });
              return () => abort.abort();
            }),
          },
          actions: {
            read: (_, { part }) => watcher.read(part),
            lost: (_, { reason }) => watcher.lost(reason),
          },
        }),
      };
    },
  };
}

class Watcher {
  readonly #ctx: ActorCtx;
  readonly #kills;
  /** The log says already that kernel messages cannot be read. */
  #complained = false;

  constructor(ctx: ActorCtx) {
    this.#ctx = ctx;
    this.#kills = ctx.ports.metrics.counter(
      'actorlet_oom_kills_total',
      "Processes that the kernel killed for want of memory: the node's own, or that of a cgroup",
      ['scope'],
    );
  }

  async follow(signal: AbortSignal, send: (event: OomWatcherMachineEvent) => void): Promise<void> {
    try {
      const { kernelLog } = this.#ctx.ports;
      if (kernelLog === undefined) throw new Error('this node has no way to its kernel');
      const after = this.#ctx.registry.read(oomView)?.value.seq ?? null;
      for await (const part of kernelLog.follow(after, signal)) send({ type: 'log.part', part });
      send({ type: 'log.lost', reason: 'it ended' });
    } catch (error) {
      send({ type: 'log.lost', reason: messageOf(error) });
    }
  }

  read(part: KernelLogPart): void {
    if (this.#complained) this.#ctx.log.info({}, "the kernel's log can be read again");
    this.#complained = false;
    const before = this.#ctx.registry.read(oomView)?.value ?? EMPTY_OOM_LEDGER;
    const { ledger, kills } = readOoms(before, part);
    // First what was read, then what follows from it: nothing is told twice.
    this.#ctx.publish(oomView, ledger);
    for (const kill of kills) {
      const system = isSystemOom(kill);
      this.#kills.inc({ scope: system ? 'node' : 'group' });
      if (!system) continue;
      const event = { type: 'Warning', reason: SYSTEM_OOM, message: systemOomMessage(kill) } as const;
      this.#ctx.registry.send(eventsAddr, { type: 'event.record', event });
    }
  }

  lost(reason: string): void {
    // In a user namespace the kernel may keep its log to itself, and nobody can change that.
    const level = this.#ctx.ports.host.inUserNamespace?.() === true ? 'info' : 'warn';
    if (!this.#complained)
      this.#ctx.log[level](
        { err: reason },
        "the kernel's log cannot be read: a node that runs out of memory is not told as an event; tried again",
      );
    this.#complained = true;
  }
}
