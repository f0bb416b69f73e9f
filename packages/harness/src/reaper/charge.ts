/** What the runner of tests and the reaper of its node tell each other. */

export const RUNTIMES = ['process', 'oci', 'hollow', 'containerd'] as const;
export type Runtime = (typeof RUNTIMES)[number];

/** What a reaper looks after: given once, as its argument, so that it knows it whatever happens to the runner. */
export interface Charge {
  /** Everything of the node is below it; removed at the end unless `keep`. */
  dir: string;
  /** The daemon's root directory. */
  rootDir: string;
  runtime: Runtime;
  /** Path of the runtime's socket; '' for the embedded runtimes. */
  socket: string;
  nodeName: string;
  /** Program of the embedded process runtime. */
  sandboxEntry: string;
  keep: boolean;
}

export type ToReaper =
  | { type: 'start'; args: string[]; env: Record<string, string> }
  | { type: 'signal'; signal: NodeJS.Signals }
  /** End the daemon, remove its pods and files, then end. */
  | { type: 'end' };

export type FromReaper =
  /** The charge can be taken on. */
  | { type: 'ready' }
  | { type: 'refused'; why: string }
  | { type: 'started'; pid: number }
  | { type: 'exited'; code: number | null; signal: string | null }
  /** Last word. `left`: what could not be removed. */
  | { type: 'ended'; left: string[] };
