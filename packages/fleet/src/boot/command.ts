/** `actorlet fleet`: many nodes in this process, against a real API server, until it is interrupted or what it expects is decided. */

import { writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { FLEET_SOCKET } from '@actorlet/admin/src/socketPath.ts';
import { createLogger } from '@actorlet/kubelet/boot/logging.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { onTerminal } from '@actorlet/kubelet/machines/text/oneLine.ts';
import { asksProxy, STORAGE_NEEDS, withFaults } from '../file.ts';
import { Fleet, type NodeTrouble } from '../fleet.ts';
import type { FleetOverview } from '../overview.ts';
import { type Figures, PageFigures } from '../page/figures.ts';
import { pageHtml } from '../page/html.ts';
import { Cluster } from '../run/cluster.ts';
import { counted } from '../run/counted.ts';
import { type FleetReport, FleetRun, type RunShown } from '../run.ts';
import { adopt, removeNodes } from './adopt.ts';
import { claimed, clusterOf } from './alone.ts';
import { limited } from './api/limited.ts';
import { type Args, parsed, UsageError } from './args.ts';
import { parsedFrom, runFrom } from './from/command.ts';
import { type Inputs, inputsOf } from './inputs.ts';
import { type PageOptions, servePage } from './page.ts';
import { Readiness } from './plane/readiness.ts';
import { type Controller, startController } from './seeds/controller.ts';
import { summaryOf } from './summary.ts';
import { surroundingsOf } from './surroundings.ts';
import type { RealWorld } from './world.ts';

/** As sysexits: 64 for what the caller wrote. */
const EXIT = { ok: 0, unmet: 1, failed: 1, usage: 64, interrupted: 130 } as const;
/** `actorlet fleet ./from` is a file. */
const FROM = 'from';
/** A line of progress no more often than this, while anything changes. */
const SAY_EVERY_MS = 2_000;
const PROXY = 'proxy';
const TROUBLES_SHOWN = 5;
const CLEAN_UP_MS = 600_000;
const AS_KILLED = 'nodes stay in the API, and the next start of this fleet takes them over';

/**
 * The heap grows by such a share before it is collected. A thousand nodes have much that stays, and V8 would double it. While nodes start
 * most of what is made stays, and to look for the rest often takes a third of their processor time.
 */
const HEAP_GROWING_PERCENT = { starting: 100, started: 40 } as const;

/** Names and messages come from manifests and from the API. */
function say(text: string): void {
  process.stderr.write(onTerminal(text));
}

/** Gives the exit code; never rejects. */
export async function runFleet(argv: readonly string[]): Promise<number> {
  if (argv[0] === FROM) return await from(argv.slice(1));
  growHeapBy('starting');
  try {
    if (argv[0] === PROXY) return await (await import('./proxy/command.ts')).runProxy(argv.slice(1));
    const args = await parsed(argv);
    if (args === null) return EXIT.ok;
    return await run(args);
  } catch (error) {
    say(`actorlet fleet: ${messageOf(error)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

/** `actorlet fleet from`; never rejects. */
async function from(argv: readonly string[]): Promise<number> {
  const interrupted = new AbortController();
  const interrupt = (): void => (interrupted.signal.aborted ? process.exit(EXIT.interrupted) : interrupted.abort());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  try {
    const args = await parsedFrom(argv);
    if (args !== null) await runFrom(args, { say, signal: interrupted.signal });
    return EXIT.ok;
  } catch (error) {
    if (interrupted.signal.aborted) return EXIT.interrupted;
    say(`actorlet fleet from: ${messageOf(error)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

function growHeapBy(when: keyof typeof HEAP_GROWING_PERCENT): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT[when]}`);
}

async function run(args: Args): Promise<number> {
  const inputs = await inputsOf(args);
  if (inputs.spec.storage.length > 0 && args.api === 'embedded') throw new UsageError(`${args.file ?? ''}: ${STORAGE_NEEDS}`);
  for (const note of inputs.notes) say(`${note}\n`);
  return args.seeds === 0 ? await runOnce(args, inputs) : await runMany(args, inputs);
}

async function runMany(args: Args, inputs: Inputs): Promise<number> {
  const { spec } = inputs;
  if (spec.trouble === null || spec.expect.length === 0)
    throw new UsageError(`${args.file ?? ''}: --seeds needs spec.trouble, which the seeds draw, and spec.expect`);
  const interrupted = new AbortController();
  const interrupt = (): void => (interrupted.signal.aborted ? process.exit(EXIT.interrupted) : interrupted.abort());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const { seedsReport } = await import('./seeds/command.ts');
  const report = await seedsReport({ args, inputs, signal: interrupted.signal, say });
  if (args.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const { broken, seeds } = report;
  const why = broken === null ? '' : `; seed ${broken.seed} breaks: ${broken.unmet}`;
  say(`${counted(seeds.filter((s) => s.green).length, 'seeds')} green${why}\n`);
  if (broken !== null) return EXIT.unmet;
  return report.interrupted ? EXIT.interrupted : EXIT.ok;
}

async function runOnce(args: Args, { spec: read, scenarios, manifests }: Inputs): Promise<number> {
  const spec = withFaults(read);
  const interrupted = new AbortController();
  const interrupt = (): void => (interrupted.signal.aborted ? endAtOnce() : interrupted.abort());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const log = createLogger({ format: 'text', verbosity: 0, pid: process.pid }, { write: say });
  const ownKubeconfig = kubeconfigBeside(args.socket);
  const options = { ...args, seed: spec.seed, log, say, ownKubeconfig, proxied: args.proxy || asksProxy(spec), signal: interrupted.signal };
  const around = await surroundingsOf(options).catch((error: unknown) => {
    if (!interrupted.signal.aborted) throw error;
    return null;
  });
  if (around === null) return EXIT.interrupted;
  const { world } = around;
  let claim: Disposable | undefined;
  let controller: Controller | undefined;
  try {
    // Others may join an API server that goes with this process, too.
    const cluster = await clusterOf(world.admin, interrupted.signal);
    claim = await claimed({ server: world.admin.server, cluster, fleet: spec.name, shard: args.shard });
    const fleet = new Fleet(spec, world, args.shard);
    await adopt(fleet, spec.name, { kube: world.admin, signal: interrupted.signal }).catch((error: unknown) => {
      if (!interrupted.signal.aborted) throw error;
    });
    if (interrupted.signal.aborted) return EXIT.interrupted;
    // The socket is a file: it would stay where the page's port is taken.
    let run: FleetRun | null = null;
    if (args.page !== 0) await overviewPage(fleet, world.net, { port: args.page, run: () => run?.shown() ?? null });
    await fleet.serve();
    await around.announce();
    controller = startedController(args, around.kubeconfig);
    await controller?.asks(around.proxy, interrupted.signal);
    const readiness = new Readiness(around, { fd: args.readyFd, say });
    const tell = progress();
    run = new FleetRun({
      ...{ fleet, spec, scenarios, manifests, clock: world.clock, signal: interrupted.signal, proxy: around.proxy, data: around.data },
      cluster: new Cluster(world.admin, { limited, clock: world.clock, signal: interrupted.signal, welcome: around.podsWelcome }),
      onLook: (overview, atMs) => {
        tell(overview, atMs);
        readiness.look(overview);
      },
      onStep: (s) => say(`${seconds(s.doneMs)} ${s.what}: ${counted(s.count, s.of)}${failedOf(s.troubles)}\n`),
      onTrouble: troubleTeller(),
      endsAll: args.api === 'embedded',
    });
    const report = await run.toTheEnd();
    const figures = args.report === '' ? null : reportOf(fleet, run.shown(), report);
    say(summaryOf(report));
    say(`stopping ${counted(fleet.members.length, 'nodes')}\n`);
    // What the embedded API server knows ends with this process, so nodes need no time to write their last words there.
    const late = args.api === 'embedded' ? await fleet.unserve().then(() => []) : await fleet.stop();
    if (late.length > 0) say(`${counted(late.length, 'nodes')} not stopped${shownOf(late)}\n  ${AS_KILLED}\n`);
    const done = !args.cleanup || (await cleanUp(fleet, world));
    if (figures !== null) await writeReport(args.report, { ...figures, title: spec.name });
    if (args.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    const code = codeOf(report);
    return done ? code : EXIT.failed;
  } finally {
    await controller?.stop();
    await around.close();
    claim?.[Symbol.dispose]();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
  }
}

/** Undefined: the command line has none. */
function startedController({ controller: command }: Args, kubeconfig: string): Controller | undefined {
  if (command.length === 0) return undefined;
  const logFile = kubeconfig.replace(/(\.kubeconfig)?$/, '.controller.log');
  say(`log of the controller: ${logFile}\n`);
  return startController({ command, kubeconfig, logFile, say });
}

/** A second Ctrl-C: the first gives daemons time to end. */
function endAtOnce(): never {
  say(`interrupted again: ends at once; ${AS_KILLED}\n`);
  process.exit(EXIT.interrupted);
}

async function overviewPage(fleet: Fleet, net: RealWorld['net'], o: PageOptions): Promise<void> {
  const { address } = await servePage(fleet, net, o).catch((error: unknown) => {
    throw new Error(`${messageOf(error)}; choose another --page`, { cause: error });
  });
  say(`overview page: http://${address}/\n`);
}

function reportOf(fleet: Fleet, run: RunShown, { seconds }: FleetReport): Figures {
  return { ...new PageFigures(fleet).now(run, -1), seconds };
}

/** What went wrong with it is said, and the run keeps its exit code: it has been lived through. */
async function writeReport(path: string, report: Figures & { title: string }): Promise<void> {
  await writeFile(path, pageHtml(report)).then(
    () => say(`report: ${path}\n`),
    (error: unknown) => say(`the report could not be written: ${messageOf(error)}\n`),
  );
}

/** Two fleets of one folder have two sockets or none, and each has a kubeconfig of its own. */
function kubeconfigBeside(socket: string): string {
  const { dir, name } = parse(socket === '' ? FLEET_SOCKET : socket);
  return join(dir, `${socket === '' ? `${name}-${process.pid}` : name}.kubeconfig`);
}

/** @returns whether all are gone. */
async function cleanUp(fleet: Fleet, world: RealWorld): Promise<boolean> {
  const names = fleet.members.filter((m) => !m.isAdopted).map((m) => m.name);
  try {
    const removed = await removeNodes(names, { kube: world.admin, signal: AbortSignal.timeout(CLEAN_UP_MS) });
    say(`removed ${counted(removed, 'nodes')} from the API\n`);
    return true;
  } catch (error) {
    say(`${messageOf(error)}\n`);
    return false;
  }
}

/** Says what changed, some seconds apart. When all nodes run, the heap grows by less. */
function progress(): (overview: FleetOverview, atMs: number) => void {
  let [last, saidMs, isStarting] = ['', Number.NEGATIVE_INFINITY, true];
  return ({ nodes, pods }, atMs) => {
    if (isStarting && nodes.running >= nodes.total) growHeapBy('started');
    isStarting &&= nodes.running < nodes.total;
    const line = `nodes ${nodes.ready}/${nodes.total} Ready (${nodes.running} running), pods ${pods.ready}/${pods.total} Ready`;
    if (line === last || performance.now() - saidMs < SAY_EVERY_MS) return;
    [last, saidMs] = [line, performance.now()];
    say(`${seconds(atMs)} ${line}\n`);
  };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s:`;
}

function failedOf(troubles: readonly NodeTrouble[]): string {
  return troubles.length === 0 ? '' : `; it failed on ${troubles.length}${shownOf(troubles)}`;
}

function shownOf(troubles: readonly NodeTrouble[]): string {
  const shown = troubles.slice(0, TROUBLES_SHOWN).map((t) => `\n  ${t.node}: ${t.why}`);
  return `:${shown.join('')}${troubles.length > TROUBLES_SHOWN ? '\n  ...' : ''}`;
}

/** The same words once. */
function troubleTeller(): (why: string) => void {
  let last = '';
  return (why) => {
    if (why !== last) say(`what is expected could not be looked at: ${why}\n`);
    last = why;
  };
}

/** Says what made it another code than 0. */
function codeOf({ troubles, steps, expect }: FleetReport): number {
  for (const t of troubles.slice(0, TROUBLES_SHOWN)) say(`${t.node} could not be started: ${t.why}\n`);
  const unmet = expect.filter((e) => e.decided && e.metMs === null).length;
  const failed = [
    ...(unmet === 0 ? [] : [`${counted(unmet, 'expectations')} not met`]),
    ...(troubles.length === 0 ? [] : [`${counted(troubles.length, 'nodes')} not started`]),
    ...steps.flatMap((s) => (s.troubles.length === 0 ? [] : [`step ${s.what} failed on ${counted(s.troubles.length, s.of)}`])),
  ];
  const undecided = expect.filter((e) => !e.decided).length;
  const cut = undecided === 0 ? [] : [`interrupted before ${counted(undecided, 'expectations')} could be decided`];
  if (failed.length + cut.length === 0) return EXIT.ok;
  const code = failed.length > 0 ? EXIT.unmet : EXIT.interrupted;
  say(`exit code ${code}: ${[...failed, ...cut].join('; ')}\n`);
  return code;
}
