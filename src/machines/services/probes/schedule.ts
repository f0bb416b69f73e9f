/** When a probe is due, and how many may be under way at once. Pure. */
import type { Probe } from '../../kube/podTable.ts';
import type { ProbeTarget } from '../../pod/probes/probes.ts';

/** The API server's default. */
const PERIOD_SECONDS = 10;
/** The API keeps start times in whole seconds: the true start lies up to this much after the one shown. */
const START_SLACK_MS = 999;
/** An instance is seen to run at most this long after its start, where it was seen not to run before. */
const SIGHT_MS = 5_000;
/** A resumed container of which nothing is known (first start here, lost checkpoint) is not kept waiting for its phase. */
const UNKNOWN_SPREAD_MS = 1_000;

export function periodMs(probe: Probe): number {
  return (probe.periodSeconds || PERIOD_SECONDS) * 1_000;
}

/**
 * Wall ms at which the instance started, as exactly as can be told: the API's whole second, and when it was first seen
 * to run. An instance that ran before this node looked started at the latest possible moment of its second. `fresh`: it was
 * seen not to run before, so a runtime whose clock is behind takes nothing of its initial delay.
 */
export function startOf(target: Pick<ProbeTarget, 'startedAtMs'>, seen: { atMs: number; fresh: boolean }): number {
  const shownMs = Math.max(target.startedAtMs, Math.min(seen.atMs, target.startedAtMs + START_SLACK_MS));
  return seen.fresh ? Math.max(shownMs, seen.atMs - SIGHT_MS) : shownMs;
}

/** It ran before the probes began here: its first probe has a phase of its own, so that a restart is no stampede. */
export function isResumed(target: Pick<ProbeTarget, 'startedAtMs'>, beganAtMs: number): boolean {
  return target.startedAtMs + START_SLACK_MS < beganAtMs;
}

/** In [0, 1), from the first 13 hexadecimal digits of a hash: the same for the same probe at every restart. */
export function phaseOf(hashHex: string): number {
  return Number.parseInt(hashHex.slice(0, 13), 16) / 16 ** 13;
}

/**
 * Milliseconds until the first attempt. The initial delay counts from the container's start; a wall clock that was set
 * back or forth can at worst make it as long as it is, or nothing. `phase` is null for a container that started here.
 */
export function firstDelayMs(of: { probe: Probe; startMs: number; nowMs: number; phase: number | null; known: boolean }): number {
  const initialMs = (of.probe.initialDelaySeconds ?? 0) * 1_000;
  const left = Math.min(initialMs, Math.max(0, of.startMs + initialMs - of.nowMs));
  if (of.phase === null) return left;
  const spread = of.known ? periodMs(of.probe) : Math.min(periodMs(of.probe), UNKNOWN_SPREAD_MS);
  return Math.max(left, of.phase * spread);
}

/** The next tick of a row that began at `tickMs`: ticks that passed during a long attempt are one. Monotonic ms. */
export function nextTickMs(tickMs: number, nowMs: number, period: number): number {
  return Math.max(tickMs + period, nowMs);
}

// ---- how many at once --------------------------------------------------------------------------------------------

export type SlotKind = 'exec' | 'net';
/** An exec costs the node a process or two, a connection next to nothing. */
export const SLOTS_MAX: Readonly<Record<SlotKind, number>> = { exec: 8, net: 64 };
/** An attempt that takes longer goes on, but does not count any more: slow probes must not starve the others. */
export const SLOT_HOLD_MS = 10_000;

export interface Slots {
  holding: ReadonlyMap<string, SlotKind>;
  /** In the order in which they asked. */
  waiting: ReadonlyMap<string, SlotKind>;
}
export const NO_SLOTS: Slots = { holding: new Map(), waiting: new Map() };

export function slotKind(probe: Probe): SlotKind {
  return probe.exec === undefined ? 'net' : 'exec';
}

function grant(holding: Map<string, SlotKind>, waiting: Map<string, SlotKind>): { slots: Slots; granted: string[] } {
  const used: Record<SlotKind, number> = { exec: 0, net: 0 };
  for (const kind of holding.values()) used[kind] += 1;
  const granted: string[] = [];
  for (const [key, kind] of waiting) {
    if (used[kind] >= SLOTS_MAX[kind]) continue;
    used[kind] += 1;
    waiting.delete(key);
    holding.set(key, kind);
    granted.push(key);
  }
  return { slots: { holding, waiting }, granted };
}

/** Asks for a slot; `granted` are the probes that may go now. */
export function wantSlot(slots: Slots, key: string, kind: SlotKind): { slots: Slots; granted: string[] } {
  const waiting = new Map(slots.waiting);
  waiting.delete(key);
  waiting.set(key, kind);
  const holding = new Map(slots.holding);
  holding.delete(key);
  return grant(holding, waiting);
}

/** Gives up the slots, or the places in the queue, of these probes. */
export function freeSlots(slots: Slots, keys: readonly string[]): { slots: Slots; granted: string[] } {
  if (!keys.some((k) => slots.holding.has(k) || slots.waiting.has(k))) return { slots, granted: [] };
  const holding = new Map(slots.holding);
  const waiting = new Map(slots.waiting);
  for (const key of keys) {
    holding.delete(key);
    waiting.delete(key);
  }
  return grant(holding, waiting);
}
