/** The Journal port: what services of the machine wrote. A program reads it; no shell is between. */
export interface Journal {
  /**
   * What journalctl prints with these arguments, its error output among it. It is killed at its limit, and when nobody reads
   * on. Throws at the first read where it cannot be run.
   */
  read(args: readonly string[], o: { timeoutMs: number; signal: AbortSignal }): AsyncIterable<Uint8Array>;
}
