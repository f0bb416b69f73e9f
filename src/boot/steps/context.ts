/** What the boot steps share: the outside of the process, the parts the tree gives, and what earlier steps found. */

import type { SILENT_SIGNALS, TOLD_SIGNALS } from '@actorlet/process/src/signals.ts';
import type { BuildInfo } from '../../actors/edge/metrics/nodeMetrics.ts';
import type { InspectionPage } from '../../actors/edge/server.ts';
import type { Inspected } from '../../actors/recorder/source.ts';
import type { Registry, SupervisionEvent } from '../../actors/supervision/types.ts';
import type { Heartbeat } from '../../actors/supervision/watchdog.ts';
import type { FeatureGates, NodeConfig } from '../../machines/config/config.ts';
import type { Logger, Ports } from '../../ports/ports.ts';
import type { Cleanup } from '../cleanup.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Problem } from '../errors.ts';
import type { ParsedFlags } from '../flags/parse.ts';
import type { OwnHandling } from '../process/handling.ts';
import type { Libc } from '../process/libc.ts';
import type { FileLock } from '../process/lock.ts';
import type { Notify } from '../process/notify.ts';
import type { Watchdog } from '../process/watchdog/watchdog.ts';
import type { RecordedNode } from '../replay/recordInputs.ts';

/** The process as the boot sees it; `process` in production. */
export interface BootIo {
  stdout: { write(text: string): unknown };
  stderr: { write(text: string): unknown };
  cwd: string;
  pid: number;
  uid: number;
  /** Ends the process at once; for a second signal and for failures outside the tree. */
  exit(code: number): void;
  /** Becomes the same program anew, in the same process, with these words. Returns only where that cannot be. */
  again(argv: readonly string[]): void;
  on(name: ProcessEvent, fn: (detail: unknown) => void): Disposable;
}
export type ProcessEvent =
  | 'SIGINT'
  | 'SIGTERM'
  | (typeof TOLD_SIGNALS | typeof SILENT_SIGNALS)[number]
  | 'uncaughtException'
  | 'unhandledRejection';

/** What the boot needs of a node; `Node` of src/actors/node.ts is one. */
export interface BootNode {
  start(): Promise<void>;
  stop(): Promise<void>;
  recorder(): string[];
  /** Absent or null: this node is not to be inspected. */
  readonly inspected?: Inspected | null;
  readonly tree: {
    readonly registry: Registry;
    readonly failed: Promise<Error>;
    /** Absent: its steps are not told. */
    observe?(fn: (e: SupervisionEvent) => void): Disposable;
  };
}
export interface PortsInput {
  log: Logger;
  notify: Notify;
  watchdog: Watchdog;
}
/** The parts given from outside the boot, so that it can be tested with others. */
export interface Wiring {
  createPorts(config: NodeConfig, input: PortsInput): Ports | Promise<Ports>;
  createNode(
    config: NodeConfig,
    ports: Ports,
    o: { build: BuildInfo; flagz: () => Readonly<Record<string, string>>; page: () => InspectionPage; heartbeat?: Heartbeat },
  ): BootNode | Promise<BootNode>;
}

/** Filled in step by step; {@link need} reads what an earlier step must have left. */
export interface BootState {
  parsed?: ParsedFlags;
  loaded?: LoadedConfig;
  gates?: FeatureGates;
  nodeConfig?: NodeConfig;
  log?: Logger;
  lock?: FileLock;
  notify?: Notify;
  ports?: Ports;
  node?: BootNode;
  /** Beats from the first steps on; the tree goes on with it. */
  heartbeat?: Heartbeat;
  watchdog?: Watchdog;
  handling?: OwnHandling;
  /** Absent: it is off, or not served yet. */
  page?: InspectionPage;
  recording?: RecordingEnd;
  tracing?: TracingEnd;
  /** Absent: inputs are not recorded. */
  inputs?: RecordedNode;
  /** The program is to begin anew with these words once it has ended in order. */
  again?: readonly string[];
}

/** How a recording ends: with the daemon, or because its tree failed. Neither rejects. */
interface RecordingEnd {
  end(): Promise<void>;
  abandon(): Promise<void>;
}

/** What is left of the traces is sent, for a bounded time. Does not reject. */
interface TracingEnd {
  end(): Promise<void>;
}

export interface BootContext {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly io: BootIo;
  readonly wiring: Wiring;
  readonly state: BootState;
  /** Everything wrong with flags and configuration; one step refuses the start with all of it. */
  readonly problems: Problem[];
  /** One line each once there is a log. */
  readonly remarks: { level: 'info' | 'warn'; text: string }[];
  /** Aborted with a reason when the process shall end: a signal or lock contention. */
  readonly ending: AbortController;
  /** Undone in reverse order when the boot ends, whatever the way. */
  readonly cleanup: Cleanup;
  libc(): Libc;
}

/** Undefined = go on with the next step. */
export type Outcome = { exit: number } | undefined;

export interface Step {
  readonly name: string;
  run(ctx: BootContext): Outcome | Promise<Outcome>;
}

export function need<K extends keyof BootState>(ctx: BootContext, key: K): NonNullable<BootState[K]> {
  const value = ctx.state[key];
  if (value === undefined || value === null) throw new Error(`boot steps are out of order: ${key} is not there yet`);
  return value;
}
