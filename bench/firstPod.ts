/**
 * What somebody new waits for: from `npm start` in a fresh clone, with an empty npm cache, to the first Running pod of the
 * examples; then how long the questions of a terminal take (`actorctl`, a process each). The clone is of the last commit of
 * this checkout. Needs the network, and ports 10248, 10255 and 10260. Options: --rounds=3 --asks=15 --out=FILE
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { numberOption, projectRoot, report, say, summary, until } from './lib/report.ts';

const rounds = numberOption('rounds', 3);
const asks = numberOption('asks', 15);
const BARS_MS = { firstRunning: 20_000, ask: 250 } as const;
const WITHIN_MS = 180_000;
const LOOK_EVERY_MS = 50;
const QUESTIONS = ['pods', 'why crasher', 'why node', 'tree', 'healthz', 'get pods', 'describe pod crasher', 'top'] as const;

async function running(): Promise<boolean> {
  try {
    const list = (await (await fetch('http://127.0.0.1:10255/pods')).json()) as { items?: { status?: { phase?: string } }[] };
    return list.items?.some((pod) => pod.status?.phase === 'Running') === true;
  } catch {
    return false; // It does not listen yet.
  }
}

function askedMs(clone: string): Map<string, number[]> {
  const ms = new Map<string, number[]>(QUESTIONS.map((question) => [question, []]));
  for (let i = 0; i < asks; i++) {
    for (const [question, samples] of ms) {
      const began = performance.now();
      execFileSync('bin/actorctl', question.split(' '), { cwd: clone, stdio: ['ignore', 'ignore', 'inherit'] });
      samples.push(performance.now() - began);
    }
  }
  return ms;
}

async function round(number: number): Promise<{ firstMs: number; asked: Map<string, number[]> }> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-first-'));
  const clone = join(dir, 'clone');
  const env = { ...process.env, npm_config_cache: join(dir, 'npm-cache') };
  execFileSync('git', ['clone', '--quiet', projectRoot, clone]);
  const began = performance.now();
  const daemon = spawn('npm', ['start'], { cwd: clone, env, stdio: 'ignore' });
  try {
    await until('the first Running pod', async () => (await running()) || undefined, { timeoutMs: WITHIN_MS, everyMs: LOOK_EVERY_MS });
    const firstMs = performance.now() - began;
    say(`firstPod: round ${number}: Running after ${Math.round(firstMs)} ms`);
    // The first start of Node fills its compile cache; a person's second question finds it.
    return { firstMs, asked: askedMs(clone) };
  } finally {
    execFileSync('npm', ['stop'], { cwd: clone, env, stdio: 'ignore' });
    daemon.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

const first: number[] = [];
const asked = new Map<string, number[]>();
for (let number = 0; number < rounds; number++) {
  const result = await round(number);
  first.push(result.firstMs);
  for (const [question, samples] of result.asked) asked.set(question, [...(asked.get(question) ?? []), ...samples]);
}
const all = [...asked.values()].flat();
const within = { firstRunning: summary(first).p50 <= BARS_MS.firstRunning, ask: summary(all).p50 <= BARS_MS.ask };
const perQuestion = Object.fromEntries([...asked].map(([question, samples]) => [question, summary(samples)]));
await report('firstPod', { rounds, bars: BARS_MS, firstRunningMs: summary(first), actorctlMs: summary(all), perQuestion, within });
