/** What actorctl's commands are given of their process. */

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
  outBytes(bytes: Uint8Array): void;
  errBytes(bytes: Uint8Array): void;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}
