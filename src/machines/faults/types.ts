/**
 * The fault language: one vocabulary for the simulation and for a running daemon. A fault is a selector, an action, a
 * probability and a window; a scenario is a named list of them. Plain data: it can be printed, sent, and cut in half.
 */

import type { CriMethod, RuntimeHint } from '../cri.ts';
import type { Message } from '../supervision/address.ts';

/**
 * What a fault is about. A list that is absent or empty selects everything; within a list one match is enough, and every
 * list must match. `*` in a pattern stands for any text within one segment, `**` also across slashes.
 */
export interface Select {
  /** CRI calls by name. */
  methods?: readonly CriMethod[];
  /** Hints of the runtime's event stream. */
  hints?: readonly RuntimeHint['kind'][];
  /** Pods the call or actor is about; a call whose pod nobody can tell is matched only by an absent list. */
  namespaces?: readonly string[];
  pods?: readonly string[];
  /** Container names. */
  containers?: readonly string[];
  /** Actor paths below `node`, e.g. `node/pods/workers/*`. */
  actors?: readonly string[];
  lanes?: readonly ('control' | 'data')[];
  /** Types of messages, e.g. `pod.dirty` or `pleg.*`. */
  events?: readonly string[];
  /** Absolute file paths. */
  paths?: readonly string[];
  /** Operations of the file system. */
  ops?: readonly FsOp[];
  /** API requests. */
  verbs?: readonly ApiVerb[];
  /** API resources in plural, e.g. `pods`, `leases`, `pods/status`. */
  resources?: readonly string[];
}
export type FsOp = 'read' | 'write' | 'rename' | 'sync' | 'mkdir' | 'symlink' | 'chmod' | 'remove';
export type ApiVerb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** What becomes of a call. `lost-*` and `late-effect`: no answer before the caller's deadline, and the effect is as named. */
export type CallAction = 'delay' | 'error' | 'lost-without-effect' | 'lost-with-effect' | 'late-effect';
/** What becomes of one element of a stream. */
export type StreamAction = 'drop' | 'duplicate' | 'reorder' | 'delay';

interface Chance {
  /** In [0, 1]: of each hit for a fault that lasts, of happening at all for one that does not. */
  probability: number;
  /** Hits after which a window does nothing more. Absent: no limit. */
  times?: number;
  select: Select;
}

/** The action of a fault, by kind. Durations in ms. */
export type FaultSpec = Chance &
  (
    | {
        kind: 'cri';
        action: CallAction;
        /** Of `delay`: before the effect. Of `late-effect`: from the call to its effect. */
        delayMs: number;
        /** gRPC status code of `error`. */
        code: number;
      }
    | { kind: 'hints'; action: StreamAction; delayMs: number }
    /** The event stream breaks once. */
    | { kind: 'hints.cut' }
    /** The runtime's socket: calls in flight are cut, new ones refused. */
    | { kind: 'runtime.down' }
    /** The runtime says that its network is not ready. */
    | { kind: 'network.down' }
    | {
        kind: 'api.call';
        action: CallAction;
        delayMs: number;
        /** HTTP status of `error`. */
        status: number;
      }
    /** No request reaches the API server; open watches hang. */
    | { kind: 'api.partition' }
    /** `silence`: a watch stays open and says nothing. `truncate`: it ends in the middle of an event. `close`: it ends. */
    | { kind: 'api.watch'; action: 'silence' | 'truncate' | 'close' }
    | { kind: 'disk.full' }
    | { kind: 'disk.slow'; delayMs: number }
    /** Operations that change something fail; reads only where `select.ops` names them. */
    | { kind: 'disk.error'; code: DiskCode }
    /** File events are lost. */
    | { kind: 'disk.deaf' }
    /** Open file watches end with an error. */
    | { kind: 'watch.break' }
    /** The HTTP source of pods. */
    | { kind: 'http.down'; action: 'unreachable' | 'error' | 'garbage' }
    /** Wall time moves; monotonic time does not. */
    | { kind: 'clock.jump'; byMs: number }
    | { kind: 'pressure.memory'; availableBytes: number }
    | { kind: 'pressure.disk'; availableBytes: number }
    /** Messages on their way to the selected actors. `reorder`: behind the next one of its lane. */
    | { kind: 'mailbox'; action: 'drop' | 'delay' | 'reorder'; delayMs: number }
    | { kind: 'actor.kill'; pick: 'one' | 'all' }
    /** `process`: as kill -9. `power`: what was not synced may be lost or torn. The node boots again after `downMs`. */
    | { kind: 'node.kill'; action: 'process' | 'power'; downMs: number }
    /** An orderly stop, and a boot after `downMs`. */
    | { kind: 'node.stop'; downMs: number }
    /** A running container ends by itself. */
    | { kind: 'container.exit'; exitCode: number; reason: string }
    /** Somebody else removes a running container. */
    | { kind: 'container.remove' }
    /** Somebody else stops a pod's sandbox. */
    | { kind: 'sandbox.stop' }
  );
export type FaultKind = FaultSpec['kind'];
export type DiskCode = 'EIO' | 'ENOSPC' | 'EROFS' | 'EACCES' | 'EXDEV' | 'EMFILE';

/** One entry of a scenario. */
export type ScenarioFault = FaultSpec & {
  /** Unique in its scenario; `fault-1`, `fault-2`, ... where the file names none. */
  name: string;
  /** Line of the file it begins on. */
  line: number;
  /** Node names; empty: every node. */
  nodes: readonly string[];
  /** From the beginning of the scenario, or from the end of the first window of the fault named by `after`. */
  atMs: number;
  after?: string;
  /** Absent: until the scenario ends. Never given for what happens in one instant. */
  forMs?: number;
  /** From one beginning to the next. */
  everyMs?: number;
  /** Windows at most; 1 without `everyMs`. */
  count?: number;
  /** Simulation only: steps of the world after its moment, which lets a fault hit any step of one instant. */
  steps: number;
};

/** What `actorctl sim` makes of a scenario besides its faults; a running daemon ignores it. */
export interface ScenarioSimulation {
  /** Pods drawn per node. Absent: the command line's. */
  pods?: number;
  nodes?: number;
  /** Pods of the scenario's own, in place of drawn ones. */
  workload: readonly WorkloadStep[];
}
export type WorkloadStep = { atMs: number; nodes: readonly string[]; line: number } & (
  | { kind: 'pod.put'; name: string; source: 'file' | 'http'; fate: 'steady' | 'ends' | 'loops'; manifest: object }
  | { kind: 'pod.remove'; name: string }
  /** Cuts the manifest short, so that it does not parse. */
  | { kind: 'pod.break'; name: string }
  /** Writes every broken manifest anew. */
  | { kind: 'pod.mend' }
);

export interface Scenario {
  name: string;
  description: string;
  /** Everything injected is healed then at the latest. Absent: the runner's default. */
  durationMs?: number;
  faults: readonly ScenarioFault[];
  simulation: ScenarioSimulation;
}

/** One stretch of time, or one instant, in which a fault is at work. */
export interface FaultWindow {
  fault: ScenarioFault;
  /** 0 for its first. */
  index: number;
  atMs: number;
  /** Equal to `atMs` for an instant. */
  endMs: number;
}

export interface ScenarioError {
  /** 1-based; 0 when it concerns the whole text. */
  line: number;
  /** e.g. `spec.faults[2].probability`; empty for the text itself. */
  field: string;
  message: string;
}

/**
 * Decides what becomes of one message on its way into a mailbox. Installed in a tree; asked once per message
 * that an actor sends, never for what the supervision itself puts back (retries, resyncs). `path` is the address as the
 * sender names it. A dropped message counts as delivered to its sender; a dropped question is lost to its asker.
 */
export type MailboxTap = (path: string, lane: 'control' | 'data', event: Message) => MailboxVerdict;
export type MailboxVerdict = 'pass' | 'drop' | 'reorder' | { delayMs: number };
