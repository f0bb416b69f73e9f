/** A simulated container runtime, as the rest of the world sees it. */

import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Clock, Cri } from '@actorlet/kubelet/ports/ports.ts';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import type { Power } from '../time.ts';

export interface SimRuntime {
  readonly hollow: HollowRuntime;
  trouble: RuntimeTrouble;
  watcher: RuntimeWatcher;
  /** Every command of a hook so far. */
  readonly hooks: readonly HookSeen[];
  /** Why a registry gives nothing to who comes with this password; undefined: it does. */
  refusesPull: (password: string) => string | undefined;
  /** A container has opened its log there, at its start or since it was asked to. Null: nobody writes logs. */
  onLog: ((containerId: string, path: string) => void) | null;
  /** Something in the runtime changed since this was last set to false. */
  changed: boolean;
  connect(daemon: RuntimeDaemon): Cri;
  /** Calls of any client that may still change something. */
  underWay(): number;
  /** Calls in flight end with an unknown outcome, streams are cut, calls are refused until `up`. Containers live on. */
  down(): void;
  up(): void;
  /** The machine's power fails: what was asked has no effect any more. It answers again as soon as the machine is on. */
  powerLoss(): void;
}

/** What becomes of one call. */
export interface Verdict {
  /** Before its effect. */
  delayMs: number;
  refuse?: { code: number; details: string };
  /** No answer: without effect, with it, or with an effect that comes `lateMs` after the call. */
  lost?: 'without-effect' | 'with-effect' | 'late-effect';
  lateMs?: number;
}

type HintVerdict = 'pass' | 'drop' | 'duplicate' | 'reorder' | { delayMs: number };

/** What the nemesis does to this runtime; asked at every call and hint. */
export interface RuntimeTrouble {
  verdict(method: CriMethod, request: unknown): Verdict;
  hint(hint: RuntimeHint): HintVerdict;
  /** Opening a hint stream fails with UNIMPLEMENTED: an older runtime. */
  noHints: boolean;
  /** Hints do not say of which pod they are: containerd's own stream. */
  anonymousHints: boolean;
  /** For this long after an end was announced, answers still show the container running, as real runtimes do. */
  lagMs: number;
  /** More than 0: answers about a container say nothing of its memory. */
  noFigures: number;
}

/** A call as it reached the runtime. */
export interface CallSeen {
  method: CriMethod;
  req: unknown;
  /** 1 for the first daemon of this node. */
  boot: number;
}

/** A hook's command as it reached the runtime. */
export interface HookSeen {
  readonly boot: number;
  readonly containerId: string;
  readonly which: string;
  readonly beganMs: number;
  /** Null: neither answered nor given up. */
  endedMs: number | null;
  ok: boolean;
  /** The node gave it up. */
  cancelled: boolean;
  /** The runtime was away: what came of it nobody knows, and it may be run again within the same grace. */
  unheard: boolean;
}

export interface RuntimeWatcher {
  arrived(call: CallSeen): void;
  /** An image is about to be pulled, which changes no pod. */
  pulls?(call: CallSeen): void;
  /** An image is about to be removed. */
  removesImage?(call: CallSeen): void;
  /** The daemon has its answer, gave up, or died. */
  settled(call: CallSeen, outcome: 'done' | 'failed' | 'unknown'): void;
}

export interface RuntimeDaemon {
  power: Power;
  clock: Clock;
  boot: number;
}
