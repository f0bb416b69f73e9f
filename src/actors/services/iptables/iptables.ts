/**
 * Keeps the node's chains in the host's packet filter (`makeIPTablesUtilChains`).
 *
 * State held: which address families have them.
 * Lost on restart: that.
 * Rebuilt from: the packet filter itself; a chain or rule that is there is left alone.
 */

import { fromPromise } from 'xstate';
import { FAMILIES, type IpFamily } from '../../../machines/services/iptables/families.ts';
import { type Ensured, iptablesMachine } from '../../../machines/services/iptables/iptablesMachine.ts';
import {
  actsOf,
  addRule,
  FIND_CANARY,
  FIND_FAMILY,
  findRule,
  type IptablesAct,
  KILLED,
  LOCK_HELD,
  makeChain,
  NOT_THERE,
} from '../../../machines/services/iptables/rules.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Iptables, IptablesResult } from '../../../ports/machine/iptables.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

export function iptablesSpec(): ActorSpec {
  return {
    type: 'actor',
    id: 'iptables',
    start: (ctx) => {
      const chains = new Chains(ctx);
      return {
        logic: provided(iptablesMachine, {
          actors: {
            ensure: fromPromise(({ signal }) => chains.ensureAll(signal)),
            look: fromPromise(({ input, signal }) => chains.areGone(input.kept, signal)),
          },
          actions: {
            ensured: (_, { ensured }) => chains.say(ensured),
            flushed: () => ctx.log.info({}, 'another program removed the iptables chains of this node; they are made again'),
          },
        }),
      };
    },
  };
}

class Chains {
  readonly #ctx: ActorCtx;
  #said = '';

  constructor(ctx: ActorCtx) {
    this.#ctx = ctx;
  }

  get #port(): Iptables {
    const { iptables } = this.#ctx.ports;
    if (iptables === undefined) throw new Error('this node has no way to the packet filter');
    return iptables;
  }

  async ensureAll(signal: AbortSignal): Promise<Ensured> {
    const kept: IpFamily[] = [];
    const failures: string[] = [];
    for (const family of FAMILIES) {
      try {
        if (!(await this.#isThere(family, signal))) continue;
        for (const act of actsOf(family)) await this.#ensure(family, act, signal);
        kept.push(family);
      } catch (error) {
        failures.push(`IPv${family}: ${messageOf(error)}`);
      }
    }
    return { kept, failure: failures.join('; ') };
  }

  /** A look that cannot be taken is no reason to write. */
  async areGone(kept: readonly IpFamily[], signal: AbortSignal): Promise<boolean> {
    const looks = await Promise.all(kept.map((family) => this.#port.run(family, FIND_CANARY, signal).catch(() => null)));
    return looks.some((result) => result?.code === NOT_THERE);
  }

  /** One line per change. */
  say({ kept, failure }: Ensured): void {
    const now = `${kept.join()} ${failure}`;
    if (now === this.#said) return;
    this.#said = now;
    const families = kept.map((f) => `IPv${f}`);
    if (failure !== '') this.#ctx.log.warn({ err: failure, families }, 'iptables chains of this node cannot be made; tried again');
    else if (kept.length > 0) this.#ctx.log.info({ families }, 'iptables chains of this node are there');
    else this.#ctx.log.info({}, 'this host has no iptables: the chain KUBE-IPTABLES-HINT is not made');
  }

  async #isThere(family: IpFamily, signal: AbortSignal): Promise<boolean> {
    let found: IptablesResult;
    try {
      found = await this.#port.run(family, FIND_FAMILY, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#ctx.log.debug({ family, err: messageOf(error) }, 'no iptables');
      return false;
    }
    // Whether the host has the family is not known: what is taken for absent is left alone for minutes.
    if (found.code === LOCK_HELD || found.code === KILLED) throw failed('looking for the tables', found);
    return found.code === 0;
  }

  async #ensure(family: IpFamily, act: IptablesAct, signal: AbortSignal): Promise<void> {
    if (act.kind === 'chain') {
      const made = await this.#port.run(family, makeChain(act.table, act.chain), signal);
      if (made.code !== 0 && made.code !== NOT_THERE) throw failed(`chain ${act.chain} in table ${act.table}`, made);
      return;
    }
    const found = await this.#port.run(family, findRule(act), signal);
    if (found.code === 0) return;
    if (found.code !== NOT_THERE) throw failed(`rule of chain ${act.chain} in table ${act.table}`, found);
    const added = await this.#port.run(family, addRule(act), signal);
    if (added.code !== 0) throw failed(`rule of chain ${act.chain} in table ${act.table}`, added);
  }
}

function failed(what: string, { code, words }: { code: number; words: string }): Error {
  const how = code === KILLED ? 'it' : `exit code ${code}${words === '' ? '' : ':'}`;
  return new Error(`${what}: ${how}${words === '' ? '' : ` ${words}`}`);
}
