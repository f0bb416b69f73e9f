/** A fault of clients, in words. Pure. */
import type { ApiFault } from '../spec/apiFaults.ts';

/** `stale-reads of website for 10 s`. */
export function shownFault({ fault, select, forMs, ageMs, delayMs, times, probability }: ApiFault): string {
  const of = [select.userAgents, select.users, select.resources, select.namespaces, select.names].flatMap((list) => list ?? []);
  const more = [
    ...(fault === 'stale-reads' ? [`${seconds(ageMs)} old`] : []),
    ...(fault === 'slow' || fault === 'watch-lag' ? [`by ${seconds(delayMs)}`] : []),
    ...(Number.isFinite(times) ? [`${times} times at most`] : []),
    ...(probability < 1 ? [`with probability ${probability}`] : []),
  ];
  return `${fault}${of.length === 0 ? '' : ` of ${of.join(', ')}`} for ${seconds(forMs)}${more.map((part) => `, ${part}`).join('')}`;
}

function seconds(ms: number): string {
  return `${ms / 1_000} s`;
}
