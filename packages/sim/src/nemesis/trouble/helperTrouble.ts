/** What becomes of the programs and processes that a node runs beside itself while faults rain: one of them at a time is slow, fails, hangs or answers garbage. */
import { FAULT_MODES, type FaultMode } from '@actorlet/world/src/beside/faultMode.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { faultBursts, type Trouble, type TroubleOptions } from './faultBursts.ts';

const EVERY_MS = { min: 500, max: 8_000 } as const;
const FOR_MS = { min: 500, max: 20_000 } as const;

export function helpersOf({ beside }: Pick<SimNode, 'beside'>): { faultMode: FaultMode }[] {
  return [beside.programs, beside.usage, beside.journal].filter((h) => h !== undefined);
}

export function helperTrouble(o: TroubleOptions): Trouble {
  const { rng, clock } = o;
  const helpers = helpersOf(o.node);
  return faultBursts({
    rng,
    clock,
    everyMs: EVERY_MS,
    forMs: FOR_MS,
    strike() {
      const at = rng.int(helpers.length);
      const helper = helpers[at];
      if (helper === undefined) throw new Error('a node that runs nothing beside itself has no such trouble');
      helper.faultMode = rng.pick(FAULT_MODES) ?? 'well';
      o.on(`${at} ${helper.faultMode}`);
      return () => {
        helper.faultMode = 'well';
      };
    },
    heal() {
      for (const helper of helpers) helper.faultMode = 'well';
    },
  });
}
