/** Trouble that comes in bursts: some time of peace, then one thing is wrong for a while, over and over until the world heals. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

/** What is wrong with somebody beside a node while faults rain. */
export interface Trouble {
  begin(): void;
  /** Ends what is wrong, for good. */
  heal(): void;
}

/** What trouble of one node is made from. */
export interface TroubleOptions {
  node: SimNode;
  rng: SimRng;
  clock: Pick<Clock, 'setTimeout' | 'monoMs'>;
  /** For the trace. */
  on(what: string): void;
}

interface Span {
  min: number;
  max: number;
}

export function faultBursts(o: {
  rng: SimRng;
  clock: Pick<Clock, 'setTimeout'>;
  /** Between two of them. */
  everyMs: Span;
  /** How long each lasts. */
  forMs: Span;
  /** Begins one; what it returns ends it. */
  strike(): () => void;
  /** Puts right whatever is wrong at healing. */
  heal(): void;
}): Trouble {
  const { rng, clock, everyMs, forMs } = o;
  let healed = false;
  const act = (): void => {
    if (healed) return;
    const end = o.strike();
    clock.setTimeout(
      () => {
        if (healed) return;
        end();
        clock.setTimeout(act, rng.between(everyMs.min, everyMs.max));
      },
      rng.between(forMs.min, forMs.max),
    );
  };
  return {
    begin: () => void clock.setTimeout(act, rng.between(everyMs.min, everyMs.max)),
    heal() {
      healed = true;
      o.heal();
    },
  };
}

/** Each burst is of one kind, and begins with all put right. A kind that is named more often comes more often. */
export function burstsOfKinds<Kind extends string>(
  { rng, clock, on }: TroubleOptions,
  o: { everyMs: Span; forMs: Span; kinds: readonly Kind[]; wrong: Readonly<Record<Kind, () => void>>; restore: () => void },
): Trouble {
  const strike = (): (() => void) => {
    const kind = rng.pick(o.kinds);
    if (kind === undefined) throw new Error('a trouble without kinds');
    on(kind);
    o.restore();
    o.wrong[kind]();
    return o.restore;
  };
  return faultBursts({ rng, clock, everyMs: o.everyMs, forMs: o.forMs, strike, heal: o.restore });
}
