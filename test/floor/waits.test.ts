/** docs/architecture/pod-flow.md lists every wait of a pod and every gate of the start, each with what ends it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { podWorkerMachine } from '../../src/machines/pods/workers/podWorkerMachine.ts';

const ROOT = join(import.meta.dirname, '../..');
const ACTORS = join(ROOT, 'src/actors');
const [, ofPods = '', ofTheStart = ''] = (
  readFileSync(join(ROOT, 'docs/architecture/pod-flow.md'), 'utf8').split('\n## Waits')[1] ?? ''
).split('\n### ');

const sources = readdirSync(ACTORS, { recursive: true, withFileTypes: true })
  .filter((e) => e.isFile() && e.name.endsWith('.ts') && !e.parentPath.includes('supervision'))
  .map((e) => join(e.parentPath, e.name))
  .map((path) => ({ path: relative(ACTORS, path), text: readFileSync(path, 'utf8') }));
const having = (what: RegExp) => sources.filter(({ text }) => what.test(text)).map(({ path }) => path);
const named = (section: string, after: string) =>
  [...section.matchAll(new RegExp(`${after}\`([a-zA-Z/]+\\.ts)\``, 'g'))].map(([, path = '']) => path);
const sorted = (paths: readonly string[]) => [...new Set(paths)].sort();

interface Node {
  key: string;
  config: object;
  states: object;
}

it('lists every actor that wakes a pod which it had refused', () => {
  expect(sorted(named(ofPods, '`awaited` of '))).toEqual(sorted(having(/type: 'pod\.dirty'[^}]*awaited: true/)));
  expect(sorted(named(ofPods, '`volumes.retry` of '))).toEqual(sorted(having(/type: 'volumes\.retry'/)));
});

it('lists every actor that others wait for at the start', () => {
  expect(sorted(named(ofTheStart, '\\| '))).toEqual(sorted(having(/\bready: \{ when\b/)));
});

it('lists every state in which a pod worker waits to look again', () => {
  const waits: string[] = [];
  const walk = (node: Node | undefined): void => {
    if (node === undefined) return;
    const { after = {} } = node.config as { after?: Record<string, unknown> };
    const again = Object.values(after).some((to) => /inspecting|acting|fencing/.test(JSON.stringify(to)));
    if (again) waits.push(node.key);
    for (const child of Object.values(node.states) as Node[]) walk(child);
  };
  walk(podWorkerMachine.root.states.syncing);
  walk(podWorkerMachine.root.states.fencingAgain);
  expect(waits).toContain('notYet');
  for (const state of waits) expect(ofPods, `${state} has no row`).toContain(`| \`${state}\` |`);
});
