/** Eviction thresholds: what the configuration says of the signals (resources 3.1, 3.2). Pure. */

import type { KubeletConfiguration } from '../../config/config.ts';
import { isSignal, SIGNAL_FACTS, type Signal } from '../../config/evictionSignals.ts';
import { canonicalQuantity, parseQuantity, quantityToInteger } from '../../kube/quantity.ts';
import { parseGoDuration } from '../../text/go/goDuration.ts';

/** An amount, or a share of the capacity. */
export type Amount = { kind: 'quantity'; text: string } | { kind: 'percent'; percent: number };
export interface Threshold {
  signal: Signal;
  value: Amount;
  /** 0: a hard threshold, or a soft one without a grace, which acts as one. */
  graceMs: number;
  /** How much more than `value` must be there before it counts as left behind. */
  minReclaim: Amount | null;
}

export type ThresholdConfig = Pick<
  KubeletConfiguration,
  'evictionHard' | 'evictionSoft' | 'evictionSoftGracePeriod' | 'evictionMinimumReclaim' | 'enforceNodeAllocatable' | 'cgroupsPerQOS'
>;

/** Whether it is about memory of the machine, or of the group of all pods. */
export function isMemorySignal(signal: Signal): boolean {
  return SIGNAL_FACTS[signal].resource === 'memory';
}

/** @throws on what is neither a quantity nor a percentage, which the check of the configuration refuses before. */
function amountOf(text: string, field: string): Amount {
  if (/^\d+(\.\d+)?%$/.test(text)) return { kind: 'percent', percent: Number(text.slice(0, -1)) };
  if (parseQuantity(text) === undefined) throw new Error(`${field}: ${JSON.stringify(text)} is neither a quantity nor a percentage`);
  return { kind: 'quantity', text };
}

/**
 * The thresholds in force, hard ones first. Exactly `0%` and `100%` switch a signal off. `unseen`: signals that were asked
 * for and that this node cannot observe: without `cgroupsPerQOS` there is no group of all pods. `conflicting`: words about
 * thresholds of the file system of containers, which follow another one's. Where pods are held to what is allocatable, a hard
 * threshold of memory also holds for their group (resources 3.1).
 * @throws naming the field.
 */
export function thresholdsOf(config: ThresholdConfig): { thresholds: Threshold[]; unseen: string[]; conflicting: string[] } {
  const thresholds: Threshold[] = [];
  const unseen: string[] = [];
  const conflicting: string[] = [];
  for (const field of ['evictionHard', 'evictionSoft'] as const) {
    for (const [signal, text] of Object.entries(config[field])) {
      if (text === '0%' || text === '100%') continue;
      if (!isSignal(signal) || (SIGNAL_FACTS[signal].reading === 'podsMemory' && !config.cgroupsPerQOS)) {
        unseen.push(`${field}.${signal}`);
        continue;
      }
      if (SIGNAL_FACTS[signal].derived) {
        conflicting.push(`found ${signal} for ${field === 'evictionHard' ? 'hard' : 'soft'} eviction. ignoring`);
        continue;
      }
      const reclaim = config.evictionMinimumReclaim[signal];
      thresholds.push({
        signal,
        value: amountOf(text, `${field}.${signal}`),
        graceMs: field === 'evictionHard' ? 0 : softGraceMs(config, signal),
        minReclaim: reclaim === undefined ? null : amountOf(reclaim, `evictionMinimumReclaim.${signal}`),
      });
    }
  }
  if (config.cgroupsPerQOS && config.enforceNodeAllocatable.includes('pods'))
    for (const t of thresholds.filter(({ signal, graceMs }) => signal === 'memory.available' && graceMs === 0))
      thresholds.push({ ...t, signal: 'allocatableMemory.available' });
  return { thresholds, unseen, conflicting };
}

function softGraceMs(config: ThresholdConfig, signal: Signal): number {
  const ms = parseGoDuration(config.evictionSoftGracePeriod[signal] ?? '');
  if (ms === undefined || ms < 0)
    throw new Error(`evictionSoft.${signal}: needs an entry in evictionSoftGracePeriod (--eviction-soft-grace-period)`);
  return ms;
}

/** In the signal's unit: bytes, inodes or processes. */
export function amountIn(value: Amount, capacity: number): number {
  return value.kind === 'percent' ? Math.trunc((capacity * value.percent) / 100) : quantityToInteger(value.text);
}

/** As Kubernetes writes an amount that is counted in powers of two. */
export function amountText(amount: number): string {
  return amount !== 0 && amount % 1024 === 0 ? canonicalQuantity(`${amount / 1024}Ki`) : String(amount);
}

/** As messages have the threshold: what was configured, a share as what it comes to. */
export function thresholdText(value: Amount, capacity: number): string {
  return value.kind === 'quantity' ? canonicalQuantity(value.text) : amountText(amountIn(value, capacity));
}
