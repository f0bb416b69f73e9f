/** A fault as a step of a fleet file. Pure. */
import { API_FAULTS, apiFault } from '../spec/apiFaults.ts';
import type { DrawnFault } from '../spec/trouble.ts';

/** `{ at: 12.3s, do: inject, api: { fault: slow, for: 3s, delay: 1.2s } }`. */
export function faultLine({ atMs, api }: DrawnFault): string {
  const { fault, select, forMs, times, probability, ageMs, delayMs, as, retryAfter } = api;
  const plain = apiFault(fault);
  const effectMs = atMs + (fault === 'stale-reads' ? ageMs : 0);
  const { verbs, ...whose } = select;
  const fields: Record<string, unknown> = {
    fault,
    ...whose,
    ...(verbs === undefined || verbs.join() === API_FAULTS[fault].verbs.join() ? {} : { verbs }),
    for: time(forMs),
    ...(Number.isFinite(times) ? { times } : {}),
    ...(probability === 1 ? {} : { probability }),
    ...(fault === 'stale-reads' ? { age: time(ageMs) } : {}),
    ...(fault === 'slow' || fault === 'watch-lag' ? { delay: time(delayMs) } : {}),
    ...(as === plain.as ? {} : { as }),
    ...(fault === 'throttle' ? { retryAfter } : {}),
  };
  const text = Object.entries(fields).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? `[${value.map(quoted).join(', ')}]` : String(value)}`,
  );
  return `{ at: ${time(effectMs)}, do: inject, api: { ${text.join(', ')} } }`;
}

function time(ms: number): string {
  return `${ms / 1_000}s`;
}

function quoted(text: unknown): string {
  return /^[\w.:/-]+$/.test(String(text)) ? String(text) : JSON.stringify(text);
}
