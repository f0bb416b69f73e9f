/** The log of the machine's kernel, as a port. */

/** What was read at one time. */
export interface KernelLogPart {
  /** Records as the kernel gives them: `<priority>,<number>,<usec since boot>,<flags>;<text>`, oldest first, without what follows the first line. */
  records: readonly string[];
  /** Number of the newest record there was, whether or not it is among them; -1: the log has never held any. */
  seq: number;
}

export interface KernelLog {
  /**
   * What the kernel says from now on (`after` null; the first part then has no records and tells where that begins), or
   * after the record of that number, as far as the kernel still has it. Ends when the signal aborts. Throws an error that
   * says why when the log cannot be opened or read any further.
   */
  follow(after: number | null, signal: AbortSignal): AsyncIterable<KernelLogPart>;
}
