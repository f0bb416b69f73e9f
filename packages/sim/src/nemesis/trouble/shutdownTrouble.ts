/**
 * What becomes of a node's machine while faults rain: it begins to go down and does, or the shutdown is cancelled, or the
 * daemon is killed in the middle; and systemd-logind or its bus is away, slow, restarts, or drops the lock.
 */
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { faultBursts, type Trouble, type TroubleOptions } from './faultBursts.ts';

const KINDS = ['down', 'down', 'cancelled', 'cancelled', 'crash', 'away', 'slow', 'restart', 'broken'] as const;
type Kind = (typeof KINDS)[number];
/** Between two kinds of trouble, and how long each lasts. */
const EVERY_MS = { min: 2_000, max: 20_000 } as const;
const FOR_MS = { min: 300, max: 15_000 } as const;
/** For a shutdown that nobody cancels. */
const DOWN_FOR_MS = 40_000;
const BOOTS_AFTER_MS = { min: 500, max: 6_000 } as const;
const SLOW_MS = { min: 500, max: 70_000 } as const;
const CALL_MS = 5;

interface ShutdownOptions extends TroubleOptions {
  /** What ran has ended, as at a power failure. */
  halt(node: SimNode): void;
}

export function shutdownTrouble(o: ShutdownOptions): Trouble {
  const { node, rng, clock } = o;
  const { logind } = node;

  const boot = (): unknown => clock.setTimeout(() => node.boot(), rng.between(BOOTS_AFTER_MS.min, BOOTS_AFTER_MS.max));
  const powerCycle = (): void => {
    o.on('the machine is down');
    node.kill('power');
    logind.reboot();
    o.halt(node);
    boot();
  };
  // Not in the middle of whatever let the lock go.
  logind.onDown = () => void clock.setTimeout(powerCycle, 0);

  const goDown = (): void => {
    // Another program's lock keeps the machine up for longer.
    logind.otherLock = rng.chance(0.5);
    logind.shutDown();
  };
  const cancel = (): void => {
    logind.cancel();
    logind.otherLock = false;
  };
  const strike = (): (() => void) => {
    const kind: Kind = rng.pick(KINDS) ?? 'cancelled';
    o.on(kind);
    switch (kind) {
      case 'down':
        goDown();
        // Time enough for the longest period; a machine that still waits for another program then goes on.
        clock.setTimeout(cancel, DOWN_FOR_MS);
        return () => {};
      case 'cancelled':
        goDown();
        return cancel;
      case 'crash':
        goDown();
        clock.setTimeout(
          () => {
            node.kill('process');
            boot();
          },
          rng.between(0, 3_000),
        );
        return cancel;
      case 'away':
        logind.reachable = false;
        return () => {
          logind.reachable = true;
        };
      case 'slow':
        logind.callMs = rng.between(SLOW_MS.min, SLOW_MS.max);
        return () => {
          logind.callMs = CALL_MS;
        };
      case 'restart':
        logind.restart();
        return () => {};
      case 'broken':
        logind.breakLock();
        return () => {};
    }
  };
  return faultBursts({
    ...{ rng, clock, everyMs: EVERY_MS, forMs: FOR_MS, strike },
    heal() {
      cancel();
      logind.reachable = true;
      logind.callMs = CALL_MS;
    },
  });
}
