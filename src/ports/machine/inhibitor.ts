/**
 * The Inhibitor port: systemd-logind, which announces a shutdown of the machine and delays it while this process holds a lock.
 * The lock belongs to the process, not to a session: it stays while its user restarts.
 */

export interface Inhibitor {
  /**
   * Connects to logind, raises its longest delay to `delayMs` where it is shorter, and takes the lock where this process has none.
   * Rejects with an error that says what failed; a lock that was taken stays.
   */
  open(o: { delayMs: number; signal: AbortSignal }): Promise<InhibitorSession>;
  /** Drops the lock: the machine goes down as soon as no other lock delays it. Without a lock it does nothing. */
  release(): void;
}

export interface InhibitorSession extends Disposable {
  /** The machine was already going down when the session began. */
  readonly shuttingDown: boolean;
  /** This process has the lock. logind gives none while the machine is going down. */
  readonly held: boolean;
  /** Each announcement, in order, from the beginning of the session: true, the machine goes down; false, it was cancelled. */
  onShutdown(listener: (shuttingDown: boolean) => void): void;
  /** Resolves when nothing is heard of logind any more, or the lock was lost, with the reason. Never rejects. */
  readonly ended: Promise<Error>;
}
