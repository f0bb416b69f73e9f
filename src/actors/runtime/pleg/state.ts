/** What lifecycle events know: the last listing, whose each id is, and how far the hint stream is trusted. */

import { groupByPod } from '../../../machines/pod/runtime/listed.ts';
import type { ListedPod, RuntimePodsView } from '../../../machines/pod/runtime/seen.ts';
import { podManagerAddr, podsView } from '../../../machines/pods/manager/messages.ts';
import { HintTrust } from '../../../machines/runtime/pleg/hintTrust.ts';
import { type PlegEvent, runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { countRunning, diffListing, tells } from '../../../machines/runtime/pleg/pleg.ts';
import { type Listing, UNHEALTHY_AFTER_MS } from '../../../machines/runtime/pleg/plegMachine.ts';
import type { RuntimeHint } from '../../../machines/wire/cri.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { type PlegMetrics, plegMetrics } from './metrics.ts';

const HINT_SAYS: Readonly<Record<RuntimeHint['kind'], string>> = {
  created: 'was created',
  started: 'started',
  stopped: 'exited',
  deleted: 'was removed',
  oom: 'ran out of memory',
  other: 'changed',
};

/** A listing call without an answer for this long is worth a word. */
const LATE_MS = 10_000;
/**
 * A stream that missed changes in so many listings in a row is given up and opened anew. containerd 2 (its `internal/eventq`) keeps
 * a hundred events for a reader that takes none. After that its next start or stop of a container waits for the reader.
 */
const MISSED_IN_A_ROW_MAX = 3;

/** What a hint asks for. `lookup`: nobody knows whose the id is. */
export type HintVerdict = 'nothing' | 'relist-soon' | 'lookup';

export class LifecycleLedger {
  readonly #ctx: ActorCtx<PlegEvent>;
  readonly #metrics: PlegMetrics;
  readonly trust = new HintTrust();
  #pods: ReadonlyMap<string, ListedPod> = new Map();
  #uidOf = new Map<string, string>();
  #via: RuntimePodsView['via'] = 'poll';
  #lastBeganMonoMs: number | null = null;
  #missedInARow = 0;
  readonly #startedMonoMs: number;
  readonly #unanswered = new Set<{ call: string; sinceMonoMs: number }>();
  #failure = '';

  constructor(ctx: ActorCtx<PlegEvent>) {
    this.#ctx = ctx;
    this.#metrics = plegMetrics(ctx.ports.metrics);
    this.#startedMonoMs = ctx.ports.clock.monoMs();
  }

  /** True when the stream has been silent about too much and should be opened anew. */
  listed(listing: Listing): boolean {
    const { clock } = this.#ctx.ports;
    const current = groupByPod(listing.sandboxes, listing.containers);
    const { pods, changes } = diffListing(this.#pods, current);
    const first = this.#lastBeganMonoMs === null;
    this.#metrics.listed({
      durationSeconds: (clock.monoMs() - listing.beganMonoMs) / 1000,
      intervalSeconds: this.#lastBeganMonoMs === null ? null : (listing.beganMonoMs - this.#lastBeganMonoMs) / 1000,
      wallSeconds: clock.wallMs() / 1000,
      counts: countRunning(pods),
    });
    this.#lastBeganMonoMs = listing.beganMonoMs;
    this.#pods = pods;
    if (changes.size > 0 || this.#uidOf.size === 0) this.#rebuildIds();
    // What was there before us was never announced to us: the first listing is no judge of the stream.
    const changed = first ? [] : [...changes.values()].flat();
    const missed = this.trust.listingEnded(changed);
    this.#missedInARow = missed.length > 0 ? this.#missedInARow + 1 : 0;
    if (missed.length > 0) {
      this.#metrics.missed(missed.length);
      this.#ctx.log.warn(
        { ids: missed.slice(0, 5), count: missed.length },
        'the hint stream missed changes; listing every second until it is reliable again',
      );
    }
    this.#publish(listing.beganMonoMs);
    this.#failure = '';
    for (const [uid, list] of changes) {
      const told = tells(list);
      if (told !== undefined) this.#dirty(uid, `${told.kind}: ${told.id.slice(0, 13)} (listing)`, { listed: true });
    }
    return this.#missedInARow >= MISSED_IN_A_ROW_MAX;
  }

  /** A question of the listing under way; call with the returned function when it is answered. */
  asked(call: string): () => void {
    const question = { call, sinceMonoMs: this.#ctx.ports.clock.monoMs() };
    this.#unanswered.add(question);
    return () => void this.#unanswered.delete(question);
  }
  listFailed(why: string): void {
    this.#failure = why;
  }

  /** What is wrong with listing at this moment; unhealthy after three minutes without one, as the kubelet has it. */
  trouble(): string {
    const now = this.#ctx.ports.clock.monoMs();
    const late = [...this.#unanswered]
      .filter((q) => now - q.sinceMonoMs >= LATE_MS)
      .map((q) => `${q.call} unanswered for ${Math.round((now - q.sinceMonoMs) / 1000)} s`);
    const what = [this.#failure, ...late].filter((t) => t !== '').join('; ');
    if (what === '') return '';
    const ageMs = now - (this.#lastBeganMonoMs ?? this.#startedMonoMs);
    const since = this.#lastBeganMonoMs === null ? 'never listed' : `last listed ${Math.round(ageMs / 1000)} s ago`;
    return `${ageMs > UNHEALTHY_AFTER_MS ? 'UNHEALTHY: ' : ''}${what}; ${since}`;
  }

  /** Pods that the runtime does not hold yet count, too: they wait for it most of all. */
  everyPodDirty(why: string): void {
    const wanted = this.#ctx.registry.read(podsView)?.value.records;
    for (const uid of new Set([...this.#pods.keys(), ...(wanted?.keys() ?? [])])) this.#dirty(uid, why);
  }

  hint(hint: RuntimeHint): HintVerdict {
    if (hint.id === '') return 'nothing';
    this.trust.announced(hint.id, hint.kind);
    if (hint.podUid !== undefined) this.#uidOf.set(hint.id, hint.podUid);
    const uid = this.#uidOf.get(hint.id);
    // Its owner asked for it and inspects by itself; whatever else made it so, the listing tells.
    if (hint.kind === 'created' || hint.kind === 'started') return 'relist-soon';
    // Only an end is worth a question of its own: a removal leaves nobody to ask.
    if (uid === undefined) return hint.kind === 'stopped' || hint.kind === 'oom' ? 'lookup' : 'relist-soon';
    this.#dirty(uid, `container ${hint.id.slice(0, 13)} ${HINT_SAYS[hint.kind]} (hint)`, {
      ended: hint.kind === 'stopped' ? [hint.id] : [],
    });
    return 'relist-soon';
  }

  /** A lookup found whose the id is. */
  attributed(hint: RuntimeHint, uid: string): void {
    this.#uidOf.set(hint.id, uid);
    this.#dirty(uid, `container ${hint.id.slice(0, 13)} ${HINT_SAYS[hint.kind]} (hint)`, {
      ended: hint.kind === 'stopped' ? [hint.id] : [],
    });
  }

  streamOpened(via: 'cri' | 'containerd'): void {
    this.#via = via;
    this.#missedInARow = 0;
    this.trust.streamOpened();
    this.#metrics.streamOpened();
    this.#ctx.log.info({ via }, 'hint stream open');
  }
  streamLost(reason: string): void {
    if (this.#via !== 'poll') this.#ctx.log.info({ reason }, 'hint stream lost; listing every second');
    this.#via = 'poll';
    this.trust.streamLost();
    this.#metrics.streamLost();
  }
  discarded(): void {
    this.#metrics.discarded();
  }

  #rebuildIds(): void {
    const ids = new Map<string, string>();
    for (const pod of this.#pods.values()) {
      for (const s of pod.sandboxes) ids.set(s.id, pod.uid);
      for (const c of pod.containers) ids.set(c.id, pod.uid);
    }
    this.#uidOf = ids;
  }

  #publish(atMonoMs: number): void {
    this.#ctx.publish(runtimePodsView, { atMonoMs, pods: this.#pods, via: this.trust.trusted ? this.#via : 'poll' });
  }

  #dirty(uid: string, why: string, { ended = [], listed = false }: { ended?: readonly string[]; listed?: boolean } = {}): void {
    const { clock } = this.#ctx.ports;
    // A pod without a record has no worker to tell: hints of its removal come after it is forgotten.
    if (this.#ctx.registry.read(podsView)?.value.records.has(uid) === false) return;
    this.#ctx.registry.send(podManagerAddr, {
      type: 'pods.dirty',
      uid,
      why,
      listed,
      ...(ended.length === 0 ? {} : { ended }),
      causes: [{ atMs: clock.wallMs(), by: this.#ctx.path, what: why }],
    });
  }
}
