/** Messages to the watches that all nodes of a process share. */
import { type Address, address } from '@actorlet/kubelet/machines/supervision/address.ts';

/** `failure`: why it is not there, or broke; null: it was opened, or the API server ended it in order. */
export interface WatchOutcome {
  failure: string | null;
}
/** One watch at the API server. */
export interface Watched {
  open(signal: AbortSignal): Promise<WatchOutcome>;
  read(signal: AbortSignal): Promise<WatchOutcome>;
}
/** `key`: what is watched. */
export type WatchEvent =
  /** The first node reads it. */
  | { type: 'watch.open'; key: string; upstream: Watched }
  /** The last node has left. */
  | { type: 'watch.close'; key: string };

export const watchesAddr: Address<WatchEvent> = address('fleet/watches');
