/** What the kubelet is expected to do, until the world shows it; and each act that did not come in time. */

import {
  type Disagreement,
  EXPECTED_KINDS,
  type ExpectedAct,
  type ExpectedKind,
  type ObserverLedger,
  type UnexpectedAct,
} from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { AT_WORK_FACTOR, AT_WORK_FACTORS, KIND_FACTS, knownDifference, LISTED_KINDS, RUNTIME_KINDS, STARTS } from './kinds.ts';
import { type NodeWord, Pace } from './pace.ts';
import { type Expectation, keyOf, type Wanted } from './wanted.ts';

// Beyond it the oldest that are known go first, then those that are settled.
const DISAGREEMENTS_MAX = 1_000;
const OPEN_MAX = 20_000;
const KNOWN_MAX = 5_000;
const ENDING_MAX = 5_000;
/** The tree asks again within this time if it still wants an act that was not answered. What it asks later is another wish. */
export const ASKED_AGAIN_MS = 30_000;
/** How often acts are looked at whose bound has passed. */
const LOOK_EVERY_MS = 2_000;

interface Open extends ExpectedAct {
  key: string;
  sinceMonoMs: number;
  /** Monotonic ms at which the kubelet was last seen at work on its like. */
  progressMonoMs: number;
  boundMs: number;
  /** So much more of the time in which this program is held up does not count. Else a busy machine would excuse everything. */
  spareMs: number;
  waiting: number;
  /** Monotonic ms since when nobody waits. */
  idleSinceMs: number;
  /** What of it the world shows instead; '' = nothing. */
  instead: string;
  /** Monotonic ms since when each field is otherwise. */
  fields: Map<string, number>;
  late: Disagreement | null;
  isJudged: (() => boolean) | undefined;
  dueMs: (() => number) | undefined;
}

export class Expectations {
  readonly #clock: Clock;
  readonly #sinceMs: number;
  readonly #open = new Map<string, Open>();
  readonly #agreed = new Map<ExpectedKind, number>();
  readonly #disagreed = new Map<ExpectedKind, number>();
  readonly #knownCounts = new Map<ExpectedKind, number>();
  #disagreements: Disagreement[] = [];
  readonly #known = new Set<string>();
  readonly #unexpected = new Map<string, Disagreement>();
  readonly #watchers = new Set<() => void>();
  /** UIDs of pods that are to end; true: the API has them no more. The tree may ask for something of them for a while. */
  readonly #ending = new Map<string, boolean>();
  #names: ReadonlyMap<string, string> = new Map();
  #ids = 0;
  #dropped = 0;
  #timer: unknown;
  readonly #pace: Pace;
  #listedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, load?: () => number) {
    this.#clock = clock;
    this.#pace = new Pace(load);
    this.#sinceMs = clock.wallMs();
  }

  expect(wanted: Wanted): Expectation {
    const key = keyOf(wanted);
    const before = this.#open.get(key);
    if (before !== undefined && this.#isLeft(before)) this.#end(before);
    const open = this.#open.get(key) ?? this.#begin(key, wanted);
    open.waiting += 1;
    [open.what, open.isJudged, open.dueMs] = [wanted.what, wanted.isJudged, wanted.dueMs];
    if (open.late !== null) open.late.expected = wanted.what;
    let over = false;
    const once = (act: () => void) => () => {
      if (over) return;
      over = true;
      open.waiting -= 1;
      open.idleSinceMs = this.#clock.monoMs();
      act();
    };
    return {
      came: once(() => this.#came(open)),
      unanswered: once(() => {
        this.#spare();
        this.#judgeOne(open);
      }),
      withdrawn: once(() => {
        if (open.waiting === 0) this.#end(open);
      }),
    };
  }

  /** It came while nobody waited: the tree need not ask again. */
  cameLater(wanted: Wanted): void {
    const open = this.#open.get(keyOf(wanted));
    if (open?.waiting === 0) this.#came(open);
  }

  /** Whether the tree has this pod. */
  has(uid: string): boolean {
    return this.#names.has(uid);
  }

  /** Whether the kubelet is to do any such act. */
  awaits(kind: ExpectedKind): boolean {
    for (const open of this.#open.values()) if (open.kind === kind && open.waiting > 0) return true;
    return false;
  }

  /** What the world shows in the place of what is expected, by the fields that are otherwise where there are such. */
  instead(wanted: Wanted, instead: string, fields: readonly string[] = [instead]): void {
    const open = this.#open.get(keyOf(wanted));
    if (open === undefined) return;
    const nowMs = this.#clock.monoMs();
    open.fields = new Map(fields.map((field) => [field, open.fields.get(field) ?? nowMs]));
    const sinceMs = Math.min(...open.fields.values());
    if (open.late !== null) open.late.came = instead;
    // Other fields are another wish: its time begins. A field that is otherwise again and again is the same one.
    else if (open.instead !== '' && sinceMs > open.sinceMonoMs) {
      open.sinceMs += sinceMs - open.sinceMonoMs;
      open.sinceMonoMs = sinceMs;
      open.progressMonoMs = Math.max(open.progressMonoMs, sinceMs);
    }
    open.instead = instead;
  }

  /** A difference on purpose. One for each of a pod's is kept. */
  known({ kind, pod, uid, what }: Wanted, came: string): void {
    const key = `${kind} ${pod} ${uid} ${came}`;
    if (this.#known.has(key)) return;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.add(key);
    this.#disagree({ kind, pod, uid, expected: what, came, sort: 'differs', sinceMs: this.#clock.wallMs() });
  }

  /** It was there before anybody asked for it. */
  agreed(kind: ExpectedKind): void {
    this.#agreed.set(kind, (this.#agreed.get(kind) ?? 0) + 1);
  }

  /** All that nobody expected, as it stands now. */
  unexpected(acts: readonly UnexpectedAct[]): void {
    const now = new Map(acts.map((act) => [JSON.stringify(act), act]));
    for (const [key, disagreement] of this.#unexpected) {
      if (now.has(key)) continue;
      this.#settle(disagreement);
      this.#unexpected.delete(key);
    }
    for (const [key, act] of now) {
      if (this.#unexpected.has(key) || this.#unexpected.size >= DISAGREEMENTS_MAX) continue;
      this.#unexpected.set(key, this.#disagree({ ...act, sort: 'unexpected', sinceMs: this.#clock.wallMs() }));
    }
  }

  /** The pod is to end: nothing of it is begun any more. `gone`: it is in the API no more, and nothing is written of it. */
  ends(uid: string, { gone }: { gone: boolean }): void {
    this.#ending.delete(uid);
    this.#ending.set(uid, gone);
    const [oldest = ''] = this.#ending.size > ENDING_MAX ? this.#ending.keys() : [];
    this.#ending.delete(oldest);
    for (const open of [...this.#open.values()]) if (open.uid === uid && this.#isPast(open)) this.#end(open);
  }

  #isPast({ kind, uid }: Pick<ExpectedAct, 'kind' | 'uid'>): boolean {
    const gone = this.#ending.get(uid);
    return gone !== undefined && (STARTS.has(kind) || (gone && kind === 'PodStatus'));
  }

  /** The kubelet cannot do it now, or could not until now: its time begins anew. */
  excused(isMeant: (act: Pick<ExpectedAct, 'kind' | 'pod' | 'uid'>) => boolean): void {
    const nowMs = this.#clock.monoMs();
    for (const open of this.#open.values()) {
      if (!isMeant(open)) continue;
      [open.sinceMonoMs, open.progressMonoMs] = [nowMs, nowMs];
      for (const field of open.fields.keys()) open.fields.set(field, nowMs);
    }
  }

  /** The kubelet goes on after it was stopped. It knows all that it knew. */
  goesOn = (): void => this.excused(() => true);

  /** The kubelet starts. What is open has its time from its first act on. */
  starts(): void {
    this.#pace.starts(this.#clock.monoMs(), this.#names.keys());
    this.excused(() => true);
  }

  says(word: NodeWord): void {
    if (this.#pace.says(word, this.#clock.monoMs())) this.excused(() => true);
  }

  /** It has ended, or is stopped. What is due is missed. */
  stops = (): void => this.#pace.ends();

  /** The runtime was listed, from this monotonic time on. */
  listed = (beganMs: number): void => {
    this.#listedMs = beganMs;
  };

  /** Those of the tree. A static pod takes the UID of the kubelet, once that is seen: nothing is begun by its own any more. */
  pods(names: ReadonlyMap<string, string>): void {
    const isLost = ({ kind, uid }: Open): boolean => uid !== '' && STARTS.has(kind) && !names.has(uid);
    for (const open of [...this.#open.values()].filter(isLost)) this.#end(open);
    this.#names = names;
    for (const d of this.#disagreements) d.pod = this.#named(d);
  }

  watch(changed: () => void): Disposable {
    this.#watchers.add(changed);
    return { [Symbol.dispose]: () => void this.#watchers.delete(changed) };
  }

  ledger(): ObserverLedger {
    const counts = EXPECTED_KINDS.map((kind) => ({
      kind,
      agreed: this.#agreed.get(kind) ?? 0,
      disagreed: this.#disagreed.get(kind) ?? 0,
      known: this.#knownCounts.get(kind) ?? 0,
    }));
    return {
      sinceMs: this.#sinceMs,
      expected: [...this.#open.values()].map(({ kind, pod, uid, what, sinceMs, dueMs }) => ({
        kind,
        pod: this.#named({ pod, uid }),
        uid,
        what,
        sinceMs: Math.max(sinceMs, dueMs?.() ?? 0),
      })),
      disagreements: this.#disagreements.map((d) => ({ ...d })),
      counts: counts.filter(({ agreed, disagreed, known }) => agreed + disagreed + known > 0),
      dropped: this.#dropped,
    };
  }

  dispose(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#open.clear();
  }

  #named({ pod, uid }: { pod: string; uid: string }): string {
    return pod === '' ? (this.#names.get(uid) ?? '') : pod;
  }

  #settle(disagreement: Disagreement): void {
    disagreement.settledMs ??= this.#clock.wallMs();
    this.#changed();
  }

  #changed(): void {
    for (const changed of this.#watchers) changed();
  }

  #begin(key: string, { kind, pod, uid, what, boundMs, isJudged, dueMs }: Wanted): Open {
    const open: Open = {
      ...{ key, kind, pod, uid, what, isJudged, dueMs },
      sinceMs: this.#clock.wallMs(),
      sinceMonoMs: this.#clock.monoMs(),
      progressMonoMs: this.#clock.monoMs(),
      boundMs: boundMs ?? KIND_FACTS[kind].boundMs,
      spareMs: boundMs ?? KIND_FACTS[kind].boundMs,
      waiting: 0,
      idleSinceMs: this.#clock.monoMs(),
      instead: '',
      fields: new Map(),
      late: null,
    };
    const [oldest = ''] = this.#open.size >= OPEN_MAX ? this.#open.keys() : [];
    this.#open.delete(oldest);
    this.#open.set(key, open);
    this.#changed();
    this.#arm();
    return open;
  }

  #came(open: Open): void {
    if (open.late === null) this.agreed(open.kind);
    this.#end(open);
    this.#progressed(open);
    const nowMs = this.#clock.monoMs();
    const isLate = [open, ...this.#open.values()].some(({ uid, late }) => uid === open.uid && late !== null);
    const first = this.#pace.came({ ...open, tookMs: nowMs - open.sinceMonoMs, isLate }, nowMs);
    if (first !== null) this.excused(({ uid }) => first.all || uid === open.uid);
  }

  /** Acts of a kind come in turn: what stands in line has its time anew, not for ever. Later instances stand in none. */
  #progressed({ kind, uid, dueMs }: Open): void {
    const nowMs = this.#clock.monoMs();
    for (const open of this.#open.values())
      if (open.kind === 'PodStatus' ? open.uid === uid : open.kind === kind && dueMs === undefined) open.progressMonoMs = nowMs;
  }

  #end(open: Open): void {
    if (open.late !== null) this.#settle(open.late);
    if (this.#open.get(open.key) === open) this.#open.delete(open.key);
    this.#changed();
  }

  #disagree(of: Omit<Disagreement, 'id' | 'settledMs' | 'rule' | 'known'>): Disagreement {
    const known = knownDifference(of.kind, of.came);
    const disagreement: Disagreement = {
      ...of,
      pod: this.#named(of),
      id: ++this.#ids,
      settledMs: null,
      rule: KIND_FACTS[of.kind].rule,
      known,
    };
    const counts = known === null ? this.#disagreed : this.#knownCounts;
    counts.set(of.kind, (counts.get(of.kind) ?? 0) + 1);
    this.#disagreements.push(disagreement);
    this.#changed();
    if (this.#disagreements.length > DISAGREEMENTS_MAX) {
      const known = this.#disagreements.findIndex((d) => d.known !== null);
      const at = known >= 0 ? known : this.#disagreements.findIndex((d) => d.settledMs !== null);
      this.#disagreements.splice(Math.max(at, 0), 1);
      this.#dropped += 1;
    }
    return disagreement;
  }

  /** While anything is expected. */
  #arm(): void {
    if (this.#timer !== undefined || this.#open.size === 0) return;
    this.#pace.due(this.#clock.monoMs() + LOOK_EVERY_MS);
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#spare();
      this.#judge();
      this.#arm();
    }, LOOK_EVERY_MS);
  }

  /** What a machine that lets this program wait has cost it is nobody's fault. What came meanwhile it hears before its next look. */
  #spare(): void {
    const nowMs = this.#clock.monoMs();
    const heldUpMs = this.#pace.heldUpMs(nowMs);
    if (heldUpMs === 0) return;
    for (const open of this.#open.values()) {
      const spareMs = Math.min(heldUpMs, open.spareMs);
      open.spareMs -= spareMs;
      // What began while it was held up has no more to be spared.
      const later = (sinceMs: number): number => Math.min(sinceMs + spareMs, nowMs);
      [open.sinceMonoMs, open.progressMonoMs] = [later(open.sinceMonoMs), later(open.progressMonoMs)];
      for (const [field, sinceMs] of open.fields) open.fields.set(field, later(sinceMs));
    }
  }

  #judge(): void {
    for (const open of [...this.#open.values()]) {
      if (this.#isLeft(open)) this.#end(open);
      else if (open.waiting > 0) this.#judgeOne(open);
    }
  }

  /** The tree wants it no longer. */
  #isLeft({ waiting, idleSinceMs }: Open): boolean {
    return waiting === 0 && this.#clock.monoMs() - idleSinceMs >= ASKED_AGAIN_MS;
  }

  #judgeOne(open: Open): void {
    if (this.#open.get(open.key) !== open) return;
    const nowMs = this.#clock.monoMs();
    const boundMs = open.boundMs * this.#pace.slowness(nowMs);
    const dueMs = Math.min(open.progressMonoMs + boundMs, open.sinceMonoMs + (AT_WORK_FACTORS[open.kind] ?? AT_WORK_FACTOR) * boundMs);
    // On a busy machine a listing takes its time: what it shows is of its begin.
    const isAtWork = (LISTED_KINDS.has(open.kind) ? this.#listedMs : nowMs) < dueMs;
    if ((this.#pace.isHeldUp && open.spareMs > 0) || this.#pace.isStarting(open, nowMs)) return;
    if (open.late !== null || isAtWork || this.#isPast(open) || this.#waitsForAct(open) || open.isJudged?.() === false) return;
    const { kind, pod, uid, what, sinceMs, instead } = open;
    open.late = this.#disagree({ kind, pod, uid, expected: what, came: instead, sinceMs, sort: instead === '' ? 'missing' : 'differs' });
  }

  /** A status that tells of an act which is waited for and not yet late: the act is judged. */
  #waitsForAct({ kind, uid }: Open): boolean {
    const isAct = (of: Open): boolean => of.uid === uid && of.waiting > 0 && of.late === null && RUNTIME_KINDS.has(of.kind);
    return kind === 'PodStatus' && [...this.#open.values()].some(isAct);
  }
}
