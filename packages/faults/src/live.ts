/** Faults in a running daemon: the messages to its injector, what it tells, and when the faults of a scenario happen. Pure. */

import type { Message, ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { formatGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import { createMatcher } from '@actorlet/shown/src/match.ts';
import { FAULT_KINDS } from './kinds.ts';
import type { FaultWindow, Scenario, ScenarioError, ScenarioFault } from './types.ts';
import { windowsOf } from './windows.ts';

/** A scenario without `spec.duration` is over after this long, or when its last written-out window is. */
const LIVE_DURATION_DEFAULT_MS = 600_000;
/** No scenario lasts longer: a fault that somebody forgot heals itself within a day. */
const LIVE_DURATION_MAX_MS = 24 * 3_600_000;
/** Windows of one scenario. */
const LIVE_WINDOWS_MAX = 20_000;
/** Scenarios at work or waiting at once. */
export const LIVE_SCENARIOS_MAX = 64;

type FaultPhase = 'waiting' | 'active' | 'over';
export interface FaultView {
  name: string;
  /** In words: what and when. */
  what: string;
  when: string;
  phase: FaultPhase;
  /** Windows that have begun. */
  windows: number;
  /** Calls, messages, events and actors hit so far, in all its windows. */
  hits: number;
  /** Its last window found nothing to hit, and why; '' else. */
  missed: string;
  /** Milliseconds to the end of the present window, or to the beginning of the next; null when it is over. */
  changesInMs: number | null;
}
export interface InjectionView {
  id: string;
  scenario: string;
  description: string;
  /** Wall ms. */
  sinceMs: number;
  /** Milliseconds until all of it is healed. */
  endsInMs: number;
  faults: readonly FaultView[];
}
export type InjectAnswer =
  | { ok: true; injection: InjectionView; warnings: readonly string[] }
  /** `status`: as in HTTP. */
  | { ok: false; status: 400 | 404 | 429; message: string };

/** To the injector. Its mailbox is never tampered with. */
export type InjectorEvent = Message &
  (
    | { type: 'faults.inject'; scenario: Scenario; replyTo: ReplyTo<InjectAnswer> }
    | { type: 'faults.list'; replyTo: ReplyTo<readonly InjectionView[]> }
    /** Heals one injection, or with null all; answers with the ids of those that were there. */
    | { type: 'faults.stop'; id: string | null; replyTo: ReplyTo<readonly string[]> }
  );

export type LivePlan =
  | { ok: true; durationMs: number; windows: readonly FaultWindow[]; skipped: readonly ScenarioFault[] }
  | { ok: false; errors: readonly ScenarioError[] };

/** The windows of a scenario on one node, oldest first. Faults of other nodes are `skipped`. */
export function planLive(scenario: Scenario, nodeName: string): LivePlan {
  const errors: ScenarioError[] = [];
  const { any } = createMatcher();
  const mine = scenario.faults.filter((f) => any(f.nodes, nodeName));
  const skipped = scenario.faults.filter((f) => !mine.includes(f));
  const longest = formatGoDuration(LIVE_DURATION_MAX_MS);
  if ((scenario.durationMs ?? 0) > LIVE_DURATION_MAX_MS)
    errors.push({ line: 0, field: 'spec.duration', message: `must be at most ${longest} in a running daemon` });
  if (scenario.faults.length === 0) errors.push({ line: 0, field: 'spec.faults', message: 'is empty: there is nothing to inject' });
  else if (mine.length === 0)
    errors.push({
      line: scenario.faults[0]?.line ?? 0,
      field: 'spec.faults',
      message: `is aimed at other nodes only; this one is ${nodeName}`,
    });
  for (const f of mine) {
    if (lastMomentMs(f) > LIVE_DURATION_MAX_MS)
      errors.push({ line: f.line, field: `fault ${f.name}`, message: `would last beyond ${longest}, the longest a running daemon allows` });
  }
  if (errors.length > 0) return { ok: false, errors };
  // What another node's fault is waited for by one of ours keeps its place in time.
  const durationMs = scenario.durationMs ?? defaultDuration(scenario);
  const count = mine.reduce((sum, f) => sum + windowCount(f, durationMs), 0);
  if (count > LIVE_WINDOWS_MAX) {
    const message = `would have ${count} windows in ${formatGoDuration(durationMs)}; at most ${LIVE_WINDOWS_MAX} are allowed`;
    return { ok: false, errors: [{ line: 0, field: 'spec.faults', message }] };
  }
  const windows = windowsOf(scenario, durationMs).filter((w) => mine.includes(w.fault));
  if (windows.length === 0) {
    const message = `nothing happens within ${formatGoDuration(durationMs)}: every fault begins later`;
    return { ok: false, errors: [{ line: 0, field: 'spec.duration', message }] };
  }
  return { ok: true, durationMs, windows, skipped };
}

/** How long one fault alone says that it lasts, from its own beginning; 0 where it says nothing. */
function lastMomentMs(f: ScenarioFault): number {
  const last = f.everyMs === undefined || f.count === undefined ? 0 : (f.count - 1) * f.everyMs;
  return f.atMs + last + (f.forMs ?? 0);
}

function windowCount(f: ScenarioFault, durationMs: number): number {
  if (f.everyMs === undefined) return 1;
  return Math.min(f.count ?? Number.POSITIVE_INFINITY, Math.ceil(durationMs / f.everyMs));
}

/** Ten minutes, or longer where a window that is written out ends later; chains of `after` add up. */
function defaultDuration(scenario: Scenario): number {
  const byName = new Map(scenario.faults.map((f) => [f.name, f]));
  let longest = LIVE_DURATION_DEFAULT_MS;
  for (const f of scenario.faults) {
    let total = lastMomentMs(f);
    for (let at = f.after; at !== undefined; ) {
      const prior = byName.get(at);
      // Only the first window of a fault that is waited for counts.
      total += prior === undefined ? 0 : prior.atMs + (prior.forMs ?? 0);
      at = prior?.after;
    }
    // An instant at the very end still happens.
    longest = Math.max(longest, FAULT_KINDS[f.kind].lasts ? total : total + 1);
  }
  return Math.min(longest, LIVE_DURATION_MAX_MS);
}

/** Why a fault can do nothing on this node, whatever it selects; null when it can. */
export function impossibleHere(f: ScenarioFault, node: { httpSource: boolean; apiServer: boolean; looksAtMemory: boolean }): string | null {
  const facts = FAULT_KINDS[f.kind];
  if (facts.where === 'simulation') return `is only possible in the simulation: ${facts.whyNot ?? ''}`;
  switch (f.kind) {
    case 'http.down':
      return node.httpSource ? null : 'is aimed at nothing: this node has no HTTP source of pods (staticPodURL)';
    case 'api.call':
    case 'api.partition':
    case 'api.watch':
      return node.apiServer ? null : 'is aimed at nothing: this node belongs to no cluster, so there is no API server';
    case 'pressure.memory':
      return node.looksAtMemory
        ? null
        : 'is aimed at nothing: no eviction threshold of this node is about memory (evictionHard, evictionSoft)';
    default:
      return null;
  }
}
