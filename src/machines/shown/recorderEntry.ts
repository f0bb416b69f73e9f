/** One entry of the flight recorder as data: what `actorctl recorder -o json` prints. */
import type { Cause } from '../supervision/address.ts';

export interface RecorderEntry {
  /** Counts up from 0 over the life of the recorder. */
  n: number;
  atMs: number;
  kind:
    | 'message'
    | 'transition'
    | 'child.started'
    | 'child.exited'
    | 'child.restarting'
    | 'supervisor.escalated'
    | 'quarantined'
    | 'dead-letter'
    | 'note';
  path: string;
  /** A message's type, a transition's states, a crash's error. */
  what: string;
  /** A message's key, a transition's event and reason. */
  detail: string;
  /** Path of a message's sender; '' where there is none. */
  from: string;
  causes: readonly Cause[];
}
