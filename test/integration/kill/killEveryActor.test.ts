/**
 * Every actor killed in each of its states. Each story is played without a kill, and with it for each of its cases. Both must
 * end the same, and healthy pods beside must not change in any way. A commit takes one part of the cases, and their stories. A new
 * state of a machine must be covered here, or say why it cannot be. Each step without a kill is pure (`pureCharts.ts`).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chartWatch, itSawNothingButDecisions, itStepsWithoutANode } from '../../machines/purity/pureCharts.ts';
import { rotating } from '../../rotation.ts';
import { createJudge, type KillCase } from './killing.ts';
import { KILL_TABLES, leaves, nodeMachines } from './killTables.ts';

/** Each commit takes one part in so many of the cases. */
const PARTS = 10;
const judge = createJudge(chartWatch);
const titled = (cases: readonly KillCase[]) => cases.map((c) => [c.covers, c] as const);
const killed = new Set(rotating('kills', Object.values(KILL_TABLES).flat(), PARTS));

itStepsWithoutANode();

// A part may have none of a table, and vitest fails a suite without tests.
const taken = Object.entries(KILL_TABLES).map(([name, cases]) => [name, cases.filter((c) => killed.has(c))] as const);
describe.each(taken.filter(([, cases]) => cases.length > 0))('%s', (_, cases) => {
  const stories = [...new Map(cases.map((c) => [c.story ?? c.covers, c])).values()];
  it.each(titled(stories))('without a kill: %s', async (_covers, c) => {
    await judge.withoutKill(c);
  });
  it.each(titled(cases))('killed in: %s', (_covers, c) => judge.killed(c));
});

itSawNothingButDecisions();

/** States that no kill can meet in a running node, by the reason. */
const reasons = JSON.parse(readFileSync(join(import.meta.dirname, 'notKilled.json'), 'utf8')) as Record<string, string[]>;
const NOT_KILLED = new Set(Object.values(reasons).flat());

it('covers every state of every machine', async () => {
  const covered = new Set(Object.values(KILL_TABLES).flatMap((cases) => cases.map((c) => c.covers)));
  const missing: string[] = [];
  const known = new Set<string>();
  for (const machine of await nodeMachines()) {
    for (const leaf of leaves(machine.root)) {
      const name = `${machine.root.id} ${leaf}`.trimEnd();
      known.add(name);
      if (!covered.has(name) && !NOT_KILLED.has(name)) missing.push(name);
    }
  }
  expect(known.size).toBeGreaterThan(60);
  expect(missing, 'states that are neither killed in nor explained').toEqual([]);
  expect(
    [...NOT_KILLED].filter((name) => !known.has(name)),
    'explanations of states that are no more',
  ).toEqual([]);
});
