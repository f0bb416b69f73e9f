/** What actorctl's commands are given of their process. */

/** A terminal on standard input or output. */
export interface Terminal {
  /** Standard input is one. */
  readonly input: boolean;
  /** Null: no output is a terminal. */
  size(): { columns: number; rows: number } | null;
  /** Keys come as they are typed, Ctrl-C included, until this is disposed or the process ends. */
  raw(): Disposable;
  onResize(fn: () => void): Disposable;
}

export interface CtlIo {
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  out(text: string): void;
  err(text: string): void;
  exists(path: string): boolean;
  /** Columns of the terminal on stdout; 0 when it is none. */
  columns: number;
  nowMs(): number;
  /** Bytes for a command run in a container. */
  stdin: NodeJS.ReadableStream;
  /** A promise: that output is full, and takes more once it has resolved. */
  outBytes(bytes: Uint8Array): Promise<void> | undefined;
  errBytes(bytes: Uint8Array): Promise<void> | undefined;
  /** Absent: there is none. */
  terminal?: Terminal;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}
