/**
 * Churn beside a commit before: nodes of both live through the same story in virtual time (pods of 23 fates come, change and go, the
 * daemon is killed, the runtime is away), and what their API servers saw is compared: each pod's statuses in their order, its events,
 * and how many writes of each kind. A pod that differs is printed with the first write that does.
 * Run: `scripts/node bench/churn.ts --commit=HEAD~1`. Options: --minutes=60 (of the story) --seed=1 --out=FILE
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { checkout } from './lib/checkout.ts';
import type { Seen } from './lib/churnStory.ts';
import { numberOption, option, projectRoot, report, say } from './lib/report.ts';

const commit = option('commit');
if (commit === undefined) throw new Error('--commit=COMMIT is missing: which commit to compare with');
const minutes = numberOption('minutes', 60);
const seed = numberOption('seed', 1);

const story = join(projectRoot, 'bench/lib/churnStory.ts');
const seenIn = (root: string): Seen => {
  const args = ['--disable-warning=ExperimentalWarning', story, root, String(seed), String(minutes)];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 30 })) as Seen;
};
using before = checkout(commit);
const [was, is] = [seenIn(before.root), seenIn(projectRoot)];

const union = (a: object, b: object): string[] => [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
const lives = union(was.life, is.life).flatMap((name) => {
  const [then, now] = [was.life[name] ?? [], is.life[name] ?? []];
  const at = Array.from({ length: Math.max(then.length, now.length) }).findIndex((_, i) => then[i] !== now[i]);
  return at === -1 ? [] : [{ name, write: at + 1, before: then[at] ?? null, now: now[at] ?? null }];
});
const events = union(was.events, is.events).flatMap((name) => {
  const [then, now] = [new Set(was.events[name]), new Set(is.events[name])];
  const onlyBefore = [...then].filter((event) => !now.has(event));
  const onlyNow = [...now].filter((event) => !then.has(event));
  return onlyBefore.length + onlyNow.length === 0 ? [] : [{ name, onlyBefore, onlyNow }];
});
for (const { name, write, before: then, now } of lives) say(`${name}, write ${write}\n  before: ${then}\n  now:    ${now}`);
for (const { name, onlyBefore, onlyNow } of events) say(`${name}: events before alone ${onlyBefore}; now alone ${onlyNow}`);
say(`${is.pods} pods, ${is.restarts} restarts of the daemon: the writes of ${lives.length} differ, the events of ${events.length}`);
const writes = Object.fromEntries(union(was.writes, is.writes).map((kind) => [kind, [was.writes[kind] ?? 0, is.writes[kind] ?? 0]]));
await report('churn', { commit: before.id, minutes, seed, pods: is.pods, restarts: is.restarts, lives, events, writes });
