/** What carries out faults: one act for each kind. An act does what happens in one instant, or begins what lasts. */

import type { FaultKind } from '@actorlet/faults/src/types.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Matcher } from '@actorlet/shown/src/match.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { ActiveFaults, EntryOf } from '../attack/hits.ts';
import type { Windows } from './windows.ts';

export interface Outcome {
  hits: number;
  /** What it hit, or why it hit nothing. */
  what: string;
}
export type Acts<Kind extends FaultKind> = { readonly [K in Kind]: (f: EntryOf<K>, node: SimNode) => Outcome };

/** What acts work with. */
export interface Stage {
  nodes: readonly SimNode[];
  /** Undefined: this world has no API server. */
  kube: SimKube | undefined;
  active: ActiveFaults;
  windows: Windows;
  match: Matcher;
  clock: Clock;
}

export const NOTHING_TO_DO = 'nothing there to hit';

export function hit(what = '', hits = 1): Outcome {
  return { hits, what };
}
export function missed(what = NOTHING_TO_DO): Outcome {
  return { hits: 0, what };
}
