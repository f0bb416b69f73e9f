/** How fast this machine is now: by what it holds up this program, and by what the kubelet takes for acts that nothing else holds up. */
import type { ExpectedKind } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';

/** A look that is so late says that this program was held up: what it knows of the world may be old. */
const HELD_UP_MS = 2_000;
/** A kubelet does these as soon as it can, and waits for nobody. */
const PROMPT: ReadonlySet<ExpectedKind> = new Set(['Folder', 'RunPodSandbox', 'StartContainer']);
/** Where one of them took more than a quarter of its bound, all bounds grow in proportion, up to twice, for a minute. */
const PROMPT_PART = 1 / 4;
const SLOWNESS_MAX = 2;
const SLOW_FOR_MS = 60_000;
/** A kubelet that has started lists, connects and looks at all its pods before its first act. */
const STARTS_MS = 60_000;
/** These a kubelet alone does, and at once: what it had asked of the runtime before it ended comes without it. */
const FIRST: ReadonlySet<ExpectedKind> = new Set(['Folder', 'CreateContainer', 'PodStatus', 'PodDeletion']);
/** It does these from its first moment on. */
const FROM_THE_START: ReadonlySet<ExpectedKind> = new Set(['Lease', 'NodeStatus', 'CSINode']);

export class Pace {
  #dueMs = Number.POSITIVE_INFINITY;
  #isHeldUp = false;
  #slow = { by: 1, untilMs: Number.NEGATIVE_INFINITY };
  #startsUntilMs = Number.NEGATIVE_INFINITY;

  /** When the next look is due. */
  due(ms: number): void {
    this.#dueMs = ms;
  }

  /** For how long this program was held up since it was last asked. Until a look that is in time, it does not know how things stand. */
  heldUpMs(nowMs: number): number {
    const lateMs = nowMs - this.#dueMs;
    this.#isHeldUp = lateMs > HELD_UP_MS;
    if (this.#isHeldUp) this.#dueMs = nowMs;
    return this.#isHeldUp ? lateMs : 0;
  }

  get isHeldUp(): boolean {
    return this.#isHeldUp;
  }

  /** By which a bound grows. */
  slowness(nowMs: number): number {
    return nowMs < this.#slow.untilMs ? this.#slow.by : 1;
  }

  starts(nowMs: number): void {
    this.#startsUntilMs = nowMs + STARTS_MS;
  }

  ends(): void {
    this.#startsUntilMs = Number.NEGATIVE_INFINITY;
  }

  isStarting(kind: ExpectedKind, nowMs: number): boolean {
    return nowMs < this.#startsUntilMs && !FROM_THE_START.has(kind);
  }

  /** An act of the kubelet came. True: it is the first one since it started. */
  came({ kind, tookMs, boundMs }: { kind: ExpectedKind; tookMs: number; boundMs: number }, nowMs: number): boolean {
    const by = PROMPT.has(kind) ? Math.min(SLOWNESS_MAX, Math.max(1, tookMs / boundMs / PROMPT_PART)) : 0;
    if (by >= this.slowness(nowMs)) this.#slow = { by, untilMs: nowMs + SLOW_FOR_MS };
    const isFirst = this.isStarting(kind, nowMs) && FIRST.has(kind) && tookMs > 0;
    if (isFirst) this.#startsUntilMs = Number.NEGATIVE_INFINITY;
    return isFirst;
  }
}
