/** `actorlet fleet`: many nodes in this process, against a real API server, until it is interrupted or what it expects is decided. */

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { FleetSpec } from '../../fleet/file.ts';
import { Fleet, type NodeTrouble } from '../../fleet/fleet.ts';
import type { FleetOverview } from '../../fleet/overview.ts';
import { Cluster } from '../../fleet/run/cluster.ts';
import { type FleetReport, FleetRun } from '../../fleet/run.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Logger } from '../../ports/ports.ts';
import { createClock } from '../dependencies/clock.ts';
import { createLogger } from '../logging.ts';
import { type Args, parsed, UsageError } from './args.ts';
import { inputsOf } from './inputs.ts';
import { servePage } from './page.ts';
import { summaryOf } from './summary.ts';
import { embeddedWorld, nodesThere, type RealWorld, realWorld, removeNodes } from './world.ts';

/** As sysexits: 64 for what the caller wrote. */
const EXIT = { ok: 0, unmet: 1, failed: 1, usage: 64 } as const;
/** A line of progress no more often than this, while anything changes. */
const SAY_EVERY_MS = 2_000;
const TROUBLES_SHOWN = 5;
/** Of `--api embedded`. */
const EMBEDDED_KUBECONFIG = '.actorlet/fleet.kubeconfig';

/** The heap grows by this share before it is collected: a thousand nodes have much that stays, and V8 would double it. */
const HEAP_GROWING_PERCENT = 40;

/** Gives the exit code; never rejects. */
export async function runFleet(argv: readonly string[]): Promise<number> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  try {
    const args = await parsed(argv);
    if (args === null) return EXIT.ok;
    return await run(args);
  } catch (error) {
    process.stderr.write(`actorlet fleet: ${messageOf(error)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

async function run(args: Args): Promise<number> {
  const { spec, scenarios, manifests, notes } = await inputsOf(args);
  for (const note of notes) process.stderr.write(`${note}\n`);
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const log = createLogger({ format: 'text', verbosity: 0, pid: process.pid }, { write: (line) => void process.stderr.write(line) });
  const { world, close } = await surroundings(args, spec.seed, log);
  try {
    const fleet = new Fleet(spec, world, args.shard);
    await refuseOthers(fleet, spec, world);
    if (args.page !== 0) {
      const { address } = await servePage(fleet, world.net, args.page);
      process.stderr.write(`overview page: http://${address}/\n`);
    }
    const say = progress();
    const report = await new FleetRun({
      ...{ fleet, spec, scenarios, manifests, clock: world.clock, signal: interrupted.signal },
      cluster: new Cluster(world.admin, interrupted.signal),
      onLook: say,
      onStep: (s) => process.stderr.write(`${seconds(s.atMs)} ${s.what}: ${s.count} ${s.of}${failedOf(s.troubles)}\n`),
      onTrouble: troubleTeller(),
    }).toTheEnd();
    process.stderr.write(summaryOf(report));
    const decided = spec.expect.length > 0;
    if (!decided && !interrupted.signal.aborted) await watched(fleet, say, { from: world.clock.monoMs(), signal: interrupted.signal });
    process.stderr.write(`stopping ${fleet.members.length} nodes\n`);
    await fleet.stop();
    if (args.cleanup) await cleanUp(fleet, world);
    if (args.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    return codeOf(report);
  } finally {
    world.admin.close();
    world.close();
    await close();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
  }
}

async function surroundings(args: Args, seed: number, log: Logger): Promise<{ world: RealWorld; close(): Promise<void> }> {
  if (args.api === 'cluster') return { world: await realWorld({ ...args, log }), close: async () => {} };
  const { startEmbeddedApi } = await import('./embedded/server.ts');
  const clock = createClock();
  const api = await startEmbeddedApi(clock, seed);
  await mkdir(dirname(EMBEDDED_KUBECONFIG), { recursive: true });
  await writeFile(EMBEDDED_KUBECONFIG, api.kubeconfig, { mode: 0o600 });
  process.stderr.write(`embedded API server: kubectl --kubeconfig ${EMBEDDED_KUBECONFIG} get nodes\n`);
  return { world: embeddedWorld(api, { clock, socket: args.socket, log }), close: api.close };
}

/** @throws where nodes of these names are there that this fleet did not make. */
async function refuseOthers(fleet: Fleet, spec: FleetSpec, world: RealWorld): Promise<void> {
  const there = await nodesThere(world.admin, AbortSignal.timeout(60_000));
  const others = fleet.members.filter((m) => there.has(m.name) && there.get(m.name) !== spec.name);
  if (others.length === 0) return;
  const names = others.slice(0, TROUBLES_SHOWN).map((m) => m.name);
  throw new UsageError(
    `${others.length} nodes are there that the fleet ${spec.name} did not make: ${names.join(', ')}${others.length > names.length ? ', ...' : ''}; choose other names of nodes`,
  );
}

async function cleanUp(fleet: Fleet, world: RealWorld): Promise<void> {
  const names = fleet.members.map((m) => m.name);
  const removed = await removeNodes(world.admin, names, AbortSignal.timeout(600_000));
  process.stderr.write(`removed ${removed} nodes from the API\n`);
}

/** Until the signal. */
async function watched(
  fleet: Fleet,
  say: (o: FleetOverview, atMs: number) => void,
  o: { from: number; signal: AbortSignal },
): Promise<void> {
  const { promise, resolve: ended } = Promise.withResolvers<void>();
  const timer = setInterval(() => say(fleet.overview(), performance.now() - o.from), SAY_EVERY_MS);
  o.signal.addEventListener('abort', () => ended(), { once: true });
  await promise;
  clearInterval(timer);
}

/** Says what changed, some seconds apart. */
function progress(): (overview: FleetOverview, atMs: number) => void {
  let [last, saidMs] = ['', Number.NEGATIVE_INFINITY];
  return ({ nodes, pods }, atMs) => {
    const line = `nodes ${nodes.ready}/${nodes.total} Ready (${nodes.running} running), pods ${pods.ready}/${pods.total} Ready`;
    if (line === last || performance.now() - saidMs < SAY_EVERY_MS) return;
    [last, saidMs] = [line, performance.now()];
    process.stderr.write(`${seconds(atMs)} ${line}\n`);
  };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s:`;
}

function failedOf(troubles: readonly NodeTrouble[]): string {
  const shown = troubles.slice(0, TROUBLES_SHOWN).map((t) => `\n  ${t.node}: ${t.why}`);
  return troubles.length === 0 ? '' : `; it failed on ${troubles.length}:${shown.join('')}`;
}

/** The same words once. */
function troubleTeller(): (why: string) => void {
  let last = '';
  return (why) => {
    if (why !== last) process.stderr.write(`what is expected could not be looked at: ${why}\n`);
    last = why;
  };
}

function codeOf(report: FleetReport): number {
  const troubled = report.troubles.length > 0 || report.steps.some((s) => s.troubles.length > 0);
  for (const t of report.troubles.slice(0, TROUBLES_SHOWN)) process.stderr.write(`${t.node} could not be started: ${t.why}\n`);
  return troubled || report.expect.some((e) => e.metMs === null) ? EXIT.unmet : EXIT.ok;
}
