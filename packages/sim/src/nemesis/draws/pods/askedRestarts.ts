/** People restart pods by hand: all of one, or one container, in some seeds while others of its faults are at work. Drawn last and apart. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

/** Of seeds. */
const CHANCE = 0.08;
const PER_MINUTE_MAX = 6;
/** Asked again at once, before the first is done. */
const AGAIN = 0.3;

export function askedRestarts(rng: SimRng, o: { spanMs: number; pods: number }, add: Add): void {
  if (!rng.chance(CHANCE)) return;
  for (let i = 1 + Math.round((rng.next() * PER_MINUTE_MAX * o.spanMs) / 60_000); i > 0; i--) {
    const name = `p${rng.int(o.pods)}`;
    const container = rng.chance(0.5) ? -1 : rng.int(4);
    const at = rng.next() * o.spanMs;
    add(at, { kind: 'pod.restart', name, container });
    if (rng.chance(AGAIN)) add(at + rng.between(0, 3_000), { kind: 'pod.restart', name, container: -1 });
  }
}
