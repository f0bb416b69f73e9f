/**
 * Every actor killed in each of its states. Each story is played without a kill, and with it for each of its cases. Both must
 * end the same, and healthy pods beside must not change in any way. A commit takes one part of the cases, and their stories. A new
 * state of a machine must be covered here, or say why it cannot be. Each step without a kill is pure (`pureCharts.ts`).
 */
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

const NO_TIME = 'left in the same step in which it is entered: nothing can happen in it';
const OF_A_REQUEST = 'of one request, which is lost with the server that it came to, as any other: `review.test.ts` drives the machine';
const ALL_PODS_ENDED = 'every pod of the node has ended, the bystanders too: `nodeShutdown.test.ts` kills the actor there';
/** States that no kill can meet in a running node, with the reason. */
const NOT_KILLED: Record<string, string> = {
  'podWorker beginning': NO_TIME,
  'podWorker syncing.waking': NO_TIME,
  'podWorker syncing.deciding': NO_TIME,
  'podWorker syncing.acting': NO_TIME,
  'podWorker terminating.choosing': NO_TIME,
  'podWorker terminating.judging': NO_TIME,
  'podWorker terminating.verified': NO_TIME,
  'podWorker terminating.done': NO_TIME,
  'podLife seen': NO_TIME,
  'podLife idle.quarantined': '`lateOrphan.test.ts` kills the pod manager there',
  'podLife working.failing': '`lifeStates.test.ts` kills the pod manager there: the status of the pod loses some of its fields',
  'podLife forgotten': 'final: the ledger has forgotten it',
  'checkpoint flushing': 'of a daemon that stops: nothing starts it again',
  'checkpoint ended': 'final: the actor has ended',
  'podWorker finished': 'final: the actor has ended',
  'container deciding': NO_TIME,
  'container stoppingAgain': 'that the hook failed is forgotten with the worker, as with the daemon: `hooks.test.ts` drives a node there',
  'containerStop choosing': NO_TIME,
  'containerStop ended': 'final: the machine has ended',
  'hook choosing': NO_TIME,
  'hook ended': 'final: the machine has ended',
  'imagePull settling': NO_TIME,
  'imagePull pulled': 'final: the machine has ended',
  'imagePull present': 'final: the machine has ended',
  'imagePull failed': 'final: the machine has ended',
  'stop done': 'final: the machine has ended',
  'podAllocation answered': 'final: the machine has ended',
  'podAllocation beginning': NO_TIME,
  'podAllocation chosen': NO_TIME,
  'claim settling': NO_TIME,
  'claim judged': NO_TIME,
  'claim recorded': NO_TIME,
  'claim leaving': NO_TIME,
  'claim idle': 'its parent stops it in the step after',
  'slices deleted': 'final: the machine has ended',
  'devicePlugin new': NO_TIME,
  'devicePlugin failed': 'final: the machine has ended',
  'devicePlugin expired': 'final: the machine has ended',
  'volume starting': NO_TIME,
  'volume gone': 'final: the machine has ended',
  'prober judging': NO_TIME,
  'observedProbes observing': '`packages/observe/test/observe.test.ts` kills the actor there: no node of these cases observes',
  'deaths kept': NO_TIME,
  'deaths pausing': '`deaths.test.ts` kills the actor there: it takes more deaths at once than a case has pods',
  'httpSource sorting': NO_TIME,
  'fileSource watch.trying.opening': 'the port answers, for good or bad, within the call that opens the watch',
  'fileSource files.starting': 'as above: the first listing follows the first answer of the watch',
  'eventWriter judging': NO_TIME,
  'eviction judging': NO_TIME,
  'nodeShutdown pods.shutdown.groupOver': NO_TIME,
  'nodeShutdown pods.shutdown.beginning': 'the clock answers in the same turn',
  'nodeShutdown pods.shutdown.looking': 'the views answer in the same turn',
  'nodeShutdown pods.shutdown.finishing': ALL_PODS_ENDED,
  'nodeShutdown pods.shutdown.released': ALL_PODS_ENDED,
  'config beginning': NO_TIME,
  'certificate beginning': NO_TIME,
  'certificate judging': NO_TIME,
  'listWatch beginning': NO_TIME,
  'listWatch stale': NO_TIME,
  'nodeStatus beginning': NO_TIME,
  'object choosing': NO_TIME,
  'podWriter beginning': NO_TIME,
  'podWriter deciding': NO_TIME,
  'podWriter judging': NO_TIME,
  'podWriter ended': 'final: the actor has ended',
  'resize choosing': NO_TIME,
  'token gone': 'final: the machine has ended',
  'podCertificate gone': 'final: the machine has ended',
  'pleg relist.deciding': NO_TIME,
  'pleg stream.deciding': NO_TIME,
  'supervisor stopped': 'final: the actor has ended',
  'supervisor failed': 'final: the actor has ended',
  'server closed': 'final: the actor has ended',
  'review asking': OF_A_REQUEST,
  'review weighing': NO_TIME,
  'podWriter holding': 'it keeps nothing that resting does not: what it held back is in the view of statuses, and is decided about anew',
  'review waiting': OF_A_REQUEST,
  'review answered': 'final: the machine has ended',
};

it('covers every state of every machine', async () => {
  const covered = new Set(Object.values(KILL_TABLES).flatMap((cases) => cases.map((c) => c.covers)));
  const missing: string[] = [];
  const known = new Set<string>();
  for (const machine of await nodeMachines()) {
    for (const leaf of leaves(machine.root)) {
      const name = `${machine.root.id} ${leaf}`.trimEnd();
      known.add(name);
      if (!covered.has(name) && NOT_KILLED[name] === undefined) missing.push(name);
    }
  }
  expect(known.size).toBeGreaterThan(60);
  expect(missing, 'states that are neither killed in nor explained').toEqual([]);
  expect(
    Object.keys(NOT_KILLED).filter((name) => !known.has(name)),
    'explanations of states that are no more',
  ).toEqual([]);
});
