/** Compresses files of the host. */
export interface Gzip {
  /** Writes what is in `from`, compressed, to the new file `to`; an aborted one leaves part of it there. Errors carry Node's `code`. */
  compress(from: string, to: string, o: { signal: AbortSignal }): Promise<void>;
}
