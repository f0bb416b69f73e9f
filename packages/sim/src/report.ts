/** What people read of runs: a failure with the command that repeats it, and a summary of what many runs did. */
import { FAULT_KIND_NAMES } from '@actorlet/faults/src/kinds.ts';
import { addCoverage, type Coverage, coverageOf } from './coverage.ts';
import { WINDOW } from './nemesis/attack/hits.ts';
import { describeFault } from './nemesis/faults.ts';
import type { SimResult } from './result.ts';

/** The command that repeats a run; `scenario` is the file its faults came from. */
export function reproduction(o: SimResult['options'], scenario?: string): string {
  const { seed, minutes, pods, nodes } = o;
  const file = scenario === undefined ? '' : ` --scenario ${scenario}`;
  return `npx actorctl sim --seed ${seed} --minutes ${minutes} --pods ${pods} --nodes ${nodes}${file}`;
}

export function failureReport(
  r: SimResult,
  o: { drawn: number; shrinkRuns: number; tailLines: number; scenario?: string | undefined },
): string[] {
  const v = r.violation;
  if (v === null) return [];
  const tail = (title: string, lines: readonly string[]) => [`${title}:`, ...lines.slice(-o.tailLines).map((l) => `  ${l}`), ''];
  return [
    `seed ${r.options.seed} broke the invariant ${v.invariant} after ${v.atSeconds.toFixed(3)} virtual seconds, while ${v.phase}`,
    `  ${v.what}`,
    '',
    `repeat: ${reproduction(r.options, o.scenario)}`,
    '',
    ...r.tuning.map(
      (t, i) =>
        `n${i + 1}: ${Object.entries(t)
          .map(([k, value]) => `${k}=${typeof value === 'object' ? JSON.stringify(value) : value}`)
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
  /** Empty unless edges were counted. */
  coverage: Coverage;
}
export function emptyTotals(): Totals {
  return { runs: 0, failed: 0, steps: 0, virtualMs: 0, realMs: 0, faults: {}, edges: {}, coverage: {} };
}
export function addTotals(t: Totals, r: Totals): void {
  for (const key of ['runs', 'failed', 'steps', 'virtualMs', 'realMs'] as const) t[key] += r[key];
  for (const key of ['faults', 'edges'] as const) {
    for (const [name, count] of Object.entries(r[key])) t[key][name] = (t[key][name] ?? 0) + count;
  }
  addCoverage(t.coverage, r.coverage);
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
    coverage: r.coverage ?? {},
  };
}

/** Faults by kind, each with its windows and what it hit; then what was done to pods. */
function faultLines(faults: Record<string, number>): string[] {
  const kinds = new Map<string, { windows: number; hits: number; parts: string[] }>();
  const pods: string[] = [];
  for (const [name, n] of Object.entries(faults).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (name.startsWith('pod.')) {
      pods.push(`${name} ${n}`);
      continue;
    }
    // `hints.cut` is a kind of its own, `hints.drop` a part of `hints`.
    const kind = FAULT_KIND_NAMES.find((k) => name === k) ?? FAULT_KIND_NAMES.find((k) => name.startsWith(`${k}.`)) ?? name;
    const part = name.slice(kind.length + 1);
    const entry = kinds.get(kind) ?? { windows: 0, hits: 0, parts: [] };
    kinds.set(kind, entry);
    if (part === WINDOW) entry.windows += n;
    else entry.hits += n;
    if (part !== '' && part !== WINDOW && part !== 'hit') entry.parts.push(`${part} ${n}`);
  }
  const total = [...kinds.values()].reduce((sum, k) => sum + (k.windows > 0 ? k.windows : k.hits), 0);
  const line = ([kind, k]: [string, { windows: number; hits: number; parts: string[] }]): string => {
    const windows = k.windows === 0 ? `${k.hits}` : `${k.windows} windows, ${k.hits} hits`;
    return `  ${kind.padEnd(16)} ${windows}${k.parts.length === 0 ? '' : ` (${k.parts.join(', ')})`}`;
  };
  return [`faults injected: ${total}`, ...[...kinds].map(line), `workload: ${pods.length === 0 ? 'none' : pods.join(', ')}`];
}

/** Edges taken of each statechart, of all that it defines, and the missing ones by name. */
function coverageLines(c: Coverage): string[] {
  const all = coverageOf(c);
  const taken = all.reduce((sum, m) => sum + m.taken, 0);
  const total = all.reduce((sum, m) => sum + m.total, 0);
  return [
    `edges taken: ${taken} of ${total} (${((100 * taken) / Math.max(1, total)).toFixed(1)} %)`,
    ...all.flatMap((m) => [
      `  ${m.machine.padEnd(24)} ${String(m.taken).padStart(4)} of ${String(m.total).padStart(4)}`,
      ...m.missing.map((edge) => `    never: ${edge}`),
    ]),
  ];
}

/** `wallMs`: how long it took in all; less than the sum of the runs when several ran at once. */
export function summary(t: Totals, o: { wallMs: number; edges: boolean }): string[] {
  const hours = t.virtualMs / 3_600_000;
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
    ...faultLines(t.faults),
    '',
    'machines: states and edges seen',
    ...[...machines]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, m]) => `  ${name.padEnd(32)} ${String(m.states.size).padStart(3)} states ${String(m.edges).padStart(4)} edges`),
    ...(o.edges ? ['', ...coverageLines(t.coverage)] : []),
  ];
}
