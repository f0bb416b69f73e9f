/** What people read of runs: a failure with the command that repeats it, and a summary of what many runs did. */
import { describeFault } from './nemesis/faults.ts';
import type { SimOptions, SimResult } from './run.ts';

/** The command that repeats a run. */
export function reproduction(o: SimResult['options']): string {
  const { seed, minutes, pods, nodes } = o;
  return `npx actorctl sim --seed ${seed} --minutes ${minutes} --pods ${pods}${nodes === 1 ? '' : ` --nodes ${nodes}`}`;
}

export function failureReport(r: SimResult, o: { drawn: number; shrinkRuns: number; tailLines: number }): string[] {
  const v = r.violation;
  if (v === null) return [];
  const tail = (title: string, lines: readonly string[]) => [`${title}:`, ...lines.slice(-o.tailLines).map((l) => `  ${l}`), ''];
  return [
    `seed ${r.options.seed} broke the claim ${v.claim} after ${v.atSeconds.toFixed(3)} virtual seconds, while ${v.phase}`,
    `  ${v.what}`,
    '',
    `repeat: ${reproduction(r.options)}`,
    '',
    ...r.tuning.map(
      (t, i) =>
        `n${i + 1}: ${Object.entries(t)
          .map(([k, value]) => `${k}=${value}`)
          .join(' ')}`,
    ),
    '',
    `schedule (${r.schedule.length} of ${o.drawn} entries matter, found in ${o.shrinkRuns} runs; offsets are from the begin of the faults):`,
    ...r.schedule.map((f) => `  ${describeFault(f)}`),
    '',
    ...tail('end of the trace', r.tail.trace),
    ...tail('end of the log', r.tail.log),
    ...tail('end of the flight recorder', r.tail.recorder),
  ];
}

/** Sums over many runs; plain data, so that it crosses a process boundary. */
export interface Totals {
  runs: number;
  failed: number;
  steps: number;
  virtualMs: number;
  realMs: number;
  faults: Record<string, number>;
  edges: Record<string, number>;
}
export function emptyTotals(): Totals {
  return { runs: 0, failed: 0, steps: 0, virtualMs: 0, realMs: 0, faults: {}, edges: {} };
}
export function addTotals(t: Totals, r: Totals): void {
  for (const key of ['runs', 'failed', 'steps', 'virtualMs', 'realMs'] as const) t[key] += r[key];
  for (const key of ['faults', 'edges'] as const) {
    for (const [name, count] of Object.entries(r[key])) t[key][name] = (t[key][name] ?? 0) + count;
  }
}
export function totalsOf(r: SimResult, realMs: number): Totals {
  return {
    runs: 1,
    failed: r.violation === null ? 0 : 1,
    steps: r.steps,
    virtualMs: r.virtualMs,
    realMs,
    faults: Object.fromEntries(r.faults),
    edges: Object.fromEntries(r.edges),
  };
}

/** `wallMs`: how long it took in all; less than the sum of the runs when several ran at once. */
export function summary(t: Totals, o: { wallMs: number; edges: boolean }): string[] {
  const hours = t.virtualMs / 3_600_000;
  const byCount = (m: Record<string, number>) => Object.entries(m).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  const machines = new Map<string, { edges: number; states: Set<string> }>();
  for (const name of Object.keys(t.edges)) {
    const at = name.indexOf(': ');
    const machine = machines.get(name.slice(0, at)) ?? { edges: 0, states: new Set<string>() };
    machine.edges += 1;
    machine.states.add(name.slice(name.indexOf(' -> ') + 4));
    machines.set(name.slice(0, at), machine);
  }
  return [
    `${t.runs} runs, ${t.failed} failed; ${hours.toFixed(2)} virtual hours in ${(o.wallMs / 1_000).toFixed(1)} s` +
      ` (${((hours / o.wallMs) * 60_000).toFixed(2)} virtual hours a minute), ${t.steps} steps (${Math.round((t.steps / o.wallMs) * 1_000)}/s,` +
      ` ${Math.round(t.steps / (t.virtualMs / 60_000))} a virtual minute)`,
    '',
    `faults: ${byCount(t.faults)
      .map(([k, n]) => `${k} ${n}`)
      .join(', ')}`,
    '',
    'machines: states and edges seen',
    ...[...machines]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, m]) => `  ${name.padEnd(32)} ${String(m.states.size).padStart(3)} states ${String(m.edges).padStart(4)} edges`),
    ...(o.edges ? ['', 'edges:', ...byCount(t.edges).map(([name, n]) => `  ${String(n).padStart(8)} ${name}`)] : []),
  ];
}

export type { SimOptions };
