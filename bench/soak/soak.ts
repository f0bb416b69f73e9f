/**
 * A node under churn, faults, partitions, kills and an upgrade for hours, as root: the real daemon on a real containerd, against the
 * embedded API server. What it holds is counted after each round, when the same pods run as before: memory, descriptors, timers,
 * folders, mounts, cgroups, processes. A line that rises beyond chance, or anything that is left, is a failure; the picture is kept.
 *   npm run soak -- [--minutes 480] [--seed 1] [--out FOLDER] [--before PROGRAM]
 * --before: `bin/actorlet` of an earlier state, which this one takes over from in the middle. Else it is this one, started again.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { machine, projectRoot } from '../lib/report.ts';
import { comes, goes, makeSteady, RESTARTS, start, steadyLives, TROUBLES } from './churn.ts';
import { soakNode } from './node.ts';
import { report, type Sample } from './report.ts';
import { left, ofDaemon, type Things } from './things.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '480' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: join(projectRoot, '.cache/soak') },
    before: { type: 'string' },
    /** Pause between rounds. */
    'rest-seconds': { type: 'string', default: '5' },
  },
});
const MINUTE_MS = 60_000;
const endMs = Date.now() + Number(values.minutes) * MINUTE_MS;
const beganMs = Date.now();
const part = () => (Date.now() - beganMs) / (endMs - beganMs);
/** Restarts come in the middle and at the end: the two lives that are left are long enough to see a slope. */
const MIDDLE = 0.47;
const END = 0.95;

/** The same rounds for the same seed. */
function drawing(seed: number): (count: number) => number {
  let state = seed >>> 0;
  return (count) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

const out = values.out;
mkdirSync(out, { recursive: true });
const { soaked, group, cleanUp } = await soakNode({ seed: Number(values.seed), program: values.before });
const { lab, daemon } = soaked;

const samples: Sample[] = [];
const marks: { hours: number; what: string }[] = [];
const problems: string[] = [];
let life = 0;
const hours = () => (Date.now() - beganMs) / 3_600_000;
const sample = async (stays: Things) => {
  const taken: Sample = { hours: hours(), life, of: { ...stays, ...(await ofDaemon(daemon)) } };
  samples.push(taken);
  writeFileSync(join(out, 'samples.jsonl'), `${JSON.stringify(taken)}\n`, { flag: samples.length === 1 ? 'w' : 'a' });
};
/** As it was before, but for what ends a little later than its pod. */
async function settled(first: Things): Promise<Things> {
  let now = first;
  const more = () => {
    now = left({ lab, daemon, group });
    return Object.entries(now).filter(([name, count]) => count > (first[name] ?? 0));
  };
  await daemon
    .wait('nothing to be left', () => more().length === 0, { timeoutMs: 120_000, everyMs: 1_000 })
    .catch(() => {
      for (const [name, count] of more()) problems.push(`${hours().toFixed(2)} h: ${count} ${name}, ${first[name]} at first`);
    });
  return now;
}

try {
  await start(soaked);
  await makeSteady(soaked);
  const lives = await steadyLives(soaked);
  const first = left({ lab, daemon, group });
  const draw = drawing(Number(values.seed));
  const calm = Object.keys(TROUBLES).filter((name) => !RESTARTS.includes(name));
  const middle = [...RESTARTS, 'an upgrade'];
  for (let round = 0; Date.now() < endMs; round++) {
    const all = part() > END ? RESTARTS : calm;
    const what = (part() > MIDDLE ? middle.shift() : undefined) ?? all[draw(all.length)] ?? 'nothing';
    if (!calm.includes(what)) life += 1;
    marks.push({ hours: hours(), what });
    await comes(soaked, `round-${round}`, async () => {
      if (what !== 'an upgrade') return TROUBLES[what]?.(soaked);
      soaked.program = undefined;
      await daemon.end('SIGTERM');
      return start(soaked);
    });
    await goes(soaked, `round-${round}`);
    await sample(await settled(first));
    const now = await steadyLives(soaked);
    if (JSON.stringify(now) !== JSON.stringify(lives)) {
      problems.push(`${hours().toFixed(2)} h, ${what}: pods that stay are\n  ${now.join('\n  ')}\n and were\n  ${lives.join('\n  ')}`);
      break;
    }
    console.log(`${(hours() * 60).toFixed(1)} min, round ${round}: ${what}, ${Math.round(samples.at(-1)?.of['resident memory'] ?? 0)} MiB`);
    await new Promise((resolve) => setTimeout(resolve, Number(values['rest-seconds']) * 1_000));
  }
} catch (error) {
  problems.push(error instanceof Error ? error.message : String(error));
} finally {
  const rows = report({ samples, marks, problems, out, title: `soak of ${values.minutes} minutes`, machine: await machine() });
  console.log(rows.join('\n'));
  const stays = await cleanUp();
  process.exitCode = problems.length > 0 || stays.length > 0 || rows.some((row) => row.startsWith('RISES')) ? 1 : 0;
}
