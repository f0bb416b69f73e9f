/** What a soak came to: one line of text for each thing that was counted, the samples and the picture. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Line, picture } from './picture.ts';
import { floors, type Point, rises, trendOf } from './trend.ts';

export interface Sample {
  hours: number;
  /** Of the daemon's process: which one since the beginning. */
  life: number;
  of: Readonly<Record<string, number>>;
}
interface Rule {
  unit: string;
  perHourMax: number;
  /** It begins anew with each process of the daemon. */
  ofProcess?: true;
  /** Samples of which the least counts. */
  group?: number;
  /** What it holds fills up at first: histories of pods, the recorder, labels of metrics. Absent: the first third of a life is left out. */
  warmHours?: number;
}

const SHORT = 'too short';
/** What is not named here may not rise by one in four hours. */
const COUNT: Rule = { unit: '', perHourMax: 0.25 };
const MEMORY: Rule = { unit: 'MiB', perHourMax: 1, ofProcess: true, group: 4, warmHours: 1 };
const RULES: Readonly<Record<string, Rule>> = {
  'resident memory': MEMORY,
  'used heap': MEMORY,
  'metric lines': { ...COUNT, ofProcess: true, warmHours: 1 },
  ...Object.fromEntries(
    ['threads', 'descriptors', 'actors', 'timers', 'helper processes'].map((name) => [name, { ...COUNT, ofProcess: true as const }]),
  ),
};
/** Rows that begin with RISES are failures. A short run says nothing of what fills up at first. */
export function report(o: {
  samples: readonly Sample[];
  marks: readonly { hours: number; what: string }[];
  problems: readonly string[];
  out: string;
  title: string;
  machine: Readonly<Record<string, string | number>>;
}): string[] {
  const names = [...new Set(o.samples.flatMap((s) => Object.keys(s.of)))];
  const lines = names.map((name) => lineOf(name, o.samples));
  const hours = o.samples.at(-1)?.hours ?? 0;
  writeFileSync(
    join(o.out, 'soak.svg'),
    picture({ title: `${o.title}, ${o.machine.at}, ${o.machine.commit}`, lines, marks: o.marks, hours }),
  );
  const rows = [
    ...lines.map((l) => `${l.bad ? 'RISES' : l.verdict.endsWith(SHORT) ? 'unknown' : 'level'} ${l.name}: ${l.verdict}`),
    ...o.problems.map((problem) => `PROBLEM ${problem}`),
  ];
  const troubles = Object.fromEntries([...Map.groupBy(o.marks, (m) => m.what)].map(([what, of]) => [what, of.length]));
  writeFileSync(
    join(o.out, 'soak.json'),
    `${JSON.stringify({ ...o.machine, hours, rounds: o.samples.length, troubles, rows }, null, 2)}\n`,
  );
  return rows;
}

function lineOf(name: string, samples: readonly Sample[]): Line {
  const rule = RULES[name] ?? COUNT;
  const points = samples.flatMap(({ hours, life, of }) => (of[name] === undefined ? [] : [{ hours, value: of[name], life }]));
  const lives = [...Map.groupBy(points, (p) => (rule.ofProcess === true ? p.life : 0)).values()];
  const trends = lives.map((all) => trendOf(floors(warm(all, rule), rule.group ?? 1)));
  const known = trends.filter((t) => t !== null);
  const bad = trends.some((t) => rises(t, rule.perHourMax));
  const slopes = known.map((t) => `${t.perHour.toFixed(2)} ± ${(3 * t.error).toFixed(2)}`);
  const verdict = `${points[0]?.value.toFixed(0)} to ${points.at(-1)?.value.toFixed(0)}, per hour ${slopes.join('; ') || SHORT}`;
  return { name, unit: rule.unit, points, verdict, bad };
}

function warm<P extends Point>(points: readonly P[], { warmHours }: Rule): readonly P[] {
  const [from, to] = [points[0]?.hours ?? 0, points.at(-1)?.hours ?? 0];
  const begin = from + (warmHours ?? (to - from) / 3);
  return points.filter((p) => p.hours >= begin);
}
