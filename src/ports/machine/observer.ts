/** The port of a node that observes: another program is the kubelet of its machine. */
import type { ObserverLedger, UnexpectedAct } from '../../machines/foundation/observerLedger.ts';

export interface Observer {
  /** What is expected of the kubelet now, and where it did something else. */
  ledger(): ObserverLedger;
  /** Calls after each change, until it is disposed. */
  watch(changed: () => void): Disposable;
  /** Names of pods by UID, `NAMESPACE/NAME`: acts may say a UID alone. */
  pods(names: ReadonlyMap<string, string>): void;
  /** All acts that nobody expected, as they stand now: one that is missing here is over. */
  unexpected(acts: readonly UnexpectedAct[]): void;
}
