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
/** Of processes that run or want to, for each core: beyond it all bounds grow in proportion, up to six times. */
const LOAD = 10;
const LOAD_SLOWNESS_MAX = 6;
/** A kubelet writes the status of its node first. Before, its cAdvisor may wait 3 s for each cgroup that an ended container left. */
const SAYS_FIRST_MS = 90_000;
/** Then it lists, connects and looks at all its pods before its first act. Grows with the slowness. */
const STARTS_MS = 15_000;
/** And comes to all of them, one after the other, within this. */
const COMES_TO_ALL_MS = 60_000;
/** These a kubelet alone does, and at once: what it had asked of the runtime before it ended comes without it. */
const FIRST: ReadonlySet<ExpectedKind> = new Set(['Folder', 'CreateContainer', 'PodStatus', 'PodDeletion']);
/** It does these from its first moment on. */
const FROM_THE_START: ReadonlySet<ExpectedKind> = new Set(['Lease', 'NodeStatus', 'CSINode']);

interface Came {
  kind: ExpectedKind;
  uid: string;
  tookMs: number;
  boundMs: number;
  /** It was named as missing, or another act of its pod: what held it up is no slowness of the machine. */
  isLate: boolean;
}

/** What a kubelet says of itself in the status of its node. */
export interface NodeWord {
  isReady: boolean;
  /** Of the condition Ready; '' = no node is known. */
  heartbeat: string;
}

export class Pace {
  #dueMs = Number.POSITIVE_INFINITY;
  #isHeldUp = false;
  #slow = { by: 1, untilMs: Number.NEGATIVE_INFINITY };
  /** `waits`: UIDs of pods that were there before it, and have no act of it yet. `said`: it wrote the status of the node. */
  #start = { atMs: Number.NEGATIVE_INFINITY, waits: new Set<string>(), acted: false, said: true };
  /** As the node's status says it. */
  #node: NodeWord = { isReady: true, heartbeat: '' };
  /** Its last word before it ended; null: nobody saw it end. The first one of the next may come before its process is seen. */
  #lastWord: string | null = null;

  readonly #load: () => number;

  /** `load`: of the machine, for each core. */
  constructor(load: () => number = () => 0) {
    this.#load = load;
  }

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
    return Math.max(nowMs < this.#slow.untilMs ? this.#slow.by : 1, Math.min(this.#load() / LOAD, LOAD_SLOWNESS_MAX));
  }

  /** `uids`: of the pods that there are. A kubelet comes to them one after the other. */
  starts(nowMs: number, uids: Iterable<string>): void {
    const { heartbeat } = this.#node;
    const said = heartbeat === '' || heartbeat !== (this.#lastWord ?? heartbeat);
    this.#start = { atMs: nowMs, waits: new Set(uids), acted: false, said };
  }

  ends(): void {
    this.#start.atMs = Number.NEGATIVE_INFINITY;
    this.#node.isReady = true;
    this.#lastWord = this.#node.heartbeat;
  }

  /** One that is not ready begins nothing for its pods. True: its first word since it started, or it is ready again. It starts from here. */
  says(word: NodeWord, nowMs: number): boolean {
    const isFirst = !this.#start.said && word.heartbeat !== this.#node.heartbeat;
    const isStart = isFirst || (word.isReady && !this.#node.isReady);
    this.#node = { ...word };
    if (isStart) [this.#start.atMs, this.#start.said] = [nowMs, true];
    return isStart;
  }

  isStarting({ kind, uid }: Pick<Came, 'kind' | 'uid'>, nowMs: number): boolean {
    const { atMs, waits, acted, said } = this.#start;
    const forMs = !said ? SAYS_FIRST_MS : waits.has(uid) ? COMES_TO_ALL_MS : acted ? 0 : STARTS_MS * this.slowness(nowMs);
    return (!this.#node.isReady || nowMs - atMs < forMs) && !FROM_THE_START.has(kind);
  }

  /** An act of the kubelet came. Not null: the first since it started (`all`), or of a pod that was there before. Time begins anew then. */
  came({ kind, uid, tookMs, boundMs, isLate }: Came, nowMs: number): { all: boolean } | null {
    // What waited for a kubelet that was not there says nothing of the machine.
    const isPace = PROMPT.has(kind) && !isLate && nowMs - tookMs >= this.#start.atMs;
    const by = isPace ? Math.min(SLOWNESS_MAX, Math.max(1, tookMs / boundMs / PROMPT_PART)) : 0;
    if (by >= this.slowness(nowMs)) this.#slow = { by, untilMs: nowMs + SLOW_FOR_MS };
    if (!this.isStarting({ kind, uid }, nowMs) || !FIRST.has(kind) || tookMs === 0) return null;
    const all = !this.#start.acted;
    [this.#start.acted, this.#start.said] = [true, true];
    this.#start.waits.delete(uid);
    return { all };
  }
}
