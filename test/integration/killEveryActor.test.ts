/**
 * Every actor killed in each of its states. Each case is played twice, with the kill and without, and must end the same;
 * healthy pods beside it must not change in any way. The last test keeps the list honest: a new state of a machine must
 * be covered here, or say why it cannot be.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StateMachine } from 'xstate';
import { API_CASES } from './killApi.ts';
import { CERTIFICATE_CASES } from './killCertificates.ts';
import { CGROUP_CASES } from './killCgroups.ts';
import { CLUSTER_CASES } from './killCluster.ts';
import { CPU_CASES } from './killCpus.ts';
import { DEVICE_CASES } from './killDevices.ts';
import { DRIVER_CASES } from './killDrivers.ts';
import { EVICTION_CASES } from './killEviction.ts';
import { HOOK_CASES } from './killHooks.ts';
import { createJudge, type KillCase } from './killing.ts';
import { OBJECT_CASES } from './killObjects.ts';
import { OOM_CASES } from './killOom.ts';
import { PROBE_CASES } from './killProbes.ts';
import { RESIZE_CASES } from './killResize.ts';
import { CONTAINER_CASES, LINK_CASES, OTHER_CASES, POD_CASES, RUNTIME_CASES, WORKER_CASES } from './killStates.ts';
import { VOLUME_CASES } from './killVolumes.ts';

const TABLES: Record<string, KillCase[]> = {
  'pod worker': WORKER_CASES,
  container: CONTAINER_CASES,
  'hooks and stops': HOOK_CASES,
  'changes of resources': RESIZE_CASES,
  pods: POD_CASES,
  runtime: RUNTIME_CASES,
  probes: PROBE_CASES,
  'with an act in flight': LINK_CASES,
  'CPUs of their own': CPU_CASES,
  volumes: VOLUME_CASES,
  'plugins and drivers': DRIVER_CASES,
  devices: DEVICE_CASES,
  'the cluster side': CLUSTER_CASES,
  'objects of the API': OBJECT_CASES,
  certificates: CERTIFICATE_CASES,
  'control groups': CGROUP_CASES,
  eviction: EVICTION_CASES,
  "the kernel's log": OOM_CASES,
  "the kubelet's API": API_CASES,
  'the rest': OTHER_CASES,
};

const judge = createJudge();

describe.each(Object.entries(TABLES))('%s', (_, cases) => {
  it.each(cases.map((c) => [c.covers, c] as const))('killed in: %s', async (_covers, c) => judge(c));
});

const NO_TIME = 'left in the same step in which it is entered: nothing can happen in it';
const OF_A_REQUEST = 'of one request, which is lost with the server that it came to, as any other: `review.test.ts` drives the chart';
/** States that no kill can meet in a running node, with the reason. */
const NOT_KILLED: Record<string, string> = {
  'podWorker syncing.deciding': NO_TIME,
  'podWorker syncing.acting': NO_TIME,
  'podWorker terminating.judging': NO_TIME,
  'podWorker terminating.verified': NO_TIME,
  'podWorker terminating.done': NO_TIME,
  'podWorker finished': 'final: the actor has ended',
  'container deciding': NO_TIME,
  'container stoppingAgain': 'that the hook failed is forgotten with the worker, as with the daemon: `hooks.test.ts` drives a node there',
  'containerStop choosing': NO_TIME,
  'containerStop ended': 'final: the chart has ended',
  'hook choosing': NO_TIME,
  'hook ended': 'final: the chart has ended',
  'stop done': 'final: the chart has ended',
  'devicePlugin new': NO_TIME,
  'devicePlugin failed': 'final: the chart has ended',
  'devicePlugin expired': 'final: the chart has ended',
  'volume starting': NO_TIME,
  'volume gone': 'final: the chart has ended',
  'prober judging': NO_TIME,
  'httpSource sorting': NO_TIME,
  'fileSource watch.trying.opening': 'the port answers, for good or bad, within the call that opens the watch',
  'fileSource files.starting': 'as above: the first listing follows the first answer of the watch',
  'eventWriter judging': NO_TIME,
  'eviction judging': NO_TIME,
  'certificate beginning': NO_TIME,
  'certificate judging': NO_TIME,
  'listWatch stale': NO_TIME,
  'nodeStatus beginning': NO_TIME,
  'object choosing': NO_TIME,
  'podWriter deciding': NO_TIME,
  'podWriter judging': NO_TIME,
  'podWriter ended': 'final: the actor has ended',
  'resize choosing': NO_TIME,
  'token gone': 'final: the chart has ended',
  'pleg relist.deciding': NO_TIME,
  'pleg stream.deciding': NO_TIME,
  'supervisor stopped': 'final: the actor has ended',
  'supervisor failed': 'final: the actor has ended',
  'server closed': 'final: the actor has ended',
  'httpsServer closed': 'final: the actor has ended',
  'review asking': OF_A_REQUEST,
  'review weighing': NO_TIME,
  'podWriter holding': 'it keeps nothing that resting does not: what it held back is in the view of statuses, and is decided about anew',
  'review waiting': OF_A_REQUEST,
  'review answered': 'final: the chart has ended',
};

async function machinesOf(
  dir: string,
): Promise<StateMachine<never, never, never, never, never, never, never, never, never, never, never, never, never, never>[]> {
  const found: unknown[] = [];
  for (const e of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (!e.isFile() || !e.name.endsWith('.ts')) continue;
    const module = (await import(join(e.parentPath, e.name))) as Record<string, unknown>;
    found.push(...Object.values(module).filter((v) => v instanceof StateMachine));
  }
  return found as never;
}

it('covers every state of every machine', async () => {
  const covered = new Set(Object.values(TABLES).flatMap((cases) => cases.map((c) => c.covers)));
  const missing: string[] = [];
  const known = new Set<string>();
  for (const machine of await machinesOf(join(import.meta.dirname, '../../src/machines'))) {
    const { root } = machine as unknown as { root: StateNodeLike };
    for (const leaf of leaves(root)) {
      const name = `${root.id} ${leaf}`;
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

interface StateNodeLike {
  id: string;
  path: string[];
  states: Record<string, StateNodeLike>;
}
function leaves(node: StateNodeLike): string[] {
  const below = Object.values(node.states);
  return below.length === 0 ? [node.path.join('.')] : below.flatMap(leaves);
}
