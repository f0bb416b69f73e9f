/** Which deaths get a bundle, and which bundles go for others. Pure. */
import { type Death, type DeathHead, loopOf } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';

/** Deaths that wait for their bundle; one of each loop. */
const WAITING_MAX = 200;
/** Bundles of one loop: its first one, and the latest ones. */
const LOOP_MAX = 3;
/** Two bundles of one loop are at least so far apart: the first step of the crash back-off. */
const LOOP_GAP_MS = 10_000;
/** Bundles at once, and then one after each pause: thousands of pods may die at the same moment. */
export const BURST_MAX = 20;
export const REFILL_MS = 2_000;

const SIGKILL = 9;

/** What a bundle begins with; the rest of it is the actor's matter. */
export interface Bundle {
  head: DeathHead;
  death: Death;
}
/** Killed by an unknown sender: it may turn out that it was the kernel. */
export function isUnexplained({ kind, end }: Pick<Death, 'kind' | 'end'>): boolean {
  return kind === 'signal' && end?.signal === SIGKILL;
}

export interface Queue {
  waiting: readonly Death[];
  /** Deaths that got no bundle, since the daemon started. */
  left: number;
}

/** Of a loop that waits already the newest one stays. */
export function queued(queue: Queue, deaths: readonly Death[], kept: readonly DeathHead[]): Queue {
  const keys = new Set(kept.map(({ key }) => key));
  const latest = new Map(kept.map((head) => [loopOf(head), head.atMs]));
  const waiting = new Map(queue.waiting.map((death) => [loopOf(death), death]));
  let { left } = queue;
  for (const death of deaths) {
    if (keys.has(death.key)) continue;
    const loop = loopOf(death);
    const before = waiting.get(loop);
    if (before?.key === death.key) continue;
    const tooSoon = death.atMs - (latest.get(loop) ?? Number.NEGATIVE_INFINITY) < LOOP_GAP_MS;
    if (tooSoon || (before === undefined && waiting.size >= WAITING_MAX)) {
      left += 1;
      continue;
    }
    if (before !== undefined) left += 1;
    waiting.set(loop, death);
  }
  return { waiting: [...waiting.values()], left };
}

/** Which one of its loop this is. */
export function nthOf(death: Death, kept: readonly DeathHead[]): number {
  const loop = loopOf(death);
  const before = kept.filter((head) => loopOf(head) === loop).reduce((most, { nth }) => Math.max(most, nth), 0);
  return Math.max(before + 1, death.end === undefined ? 1 : death.restartCount + 1);
}

/**
 * Bundles that go, so that at most `max` stay. First those in the middle of a loop; then the oldest of who has the most, whose
 * first one stays; then the oldest.
 */
export function surplus(kept: readonly DeathHead[], max: number): DeathHead[] {
  const gone = new Set<DeathHead>();
  const left = () => kept.filter((head) => !gone.has(head));
  for (const loop of grouped(kept, loopOf)) for (const head of loop.slice(1, Math.max(1, loop.length - (LOOP_MAX - 1)))) gone.add(head);
  while (kept.length - gone.size > max) {
    const middle = grouped(left(), loopOf)
      .flatMap((loop) => loop.slice(1, -1))
      .sort(byAge)[0];
    const most = grouped(left(), ownerOf).sort((a, b) => b.length - a.length)[0] ?? [];
    const next = middle ?? (most.length > OWNER_MIN ? most[1] : left()[0]);
    if (next === undefined) break;
    gone.add(next);
  }
  return [...gone];
}
/** Who has no more than this gives none for others. */
const OWNER_MIN = 3;

function ownerOf({ pod, owner }: DeathHead): string {
  return JSON.stringify([pod.namespace, owner === '' ? pod.name : owner]);
}
function byAge(a: DeathHead, b: DeathHead): number {
  return a.atMs - b.atMs || (a.id < b.id ? -1 : 1);
}
export function sorted(heads: readonly DeathHead[]): DeathHead[] {
  return [...heads].sort(byAge);
}
function grouped(heads: readonly DeathHead[], by: (head: DeathHead) => string): DeathHead[][] {
  return [...Map.groupBy(sorted(heads), by).values()];
}
