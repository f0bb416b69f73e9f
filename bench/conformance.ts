/**
 * Specs of Kubernetes' own end-to-end tests on one node, of this daemon and of the reference kubelet, and a table of where they differ
 * (root; what bench/cluster.ts needs; `e2e.test`, `ginkgo`, `agnhost` and a kubelet of one release in KUBEBUILDER_ASSETS). A run is a slice:
 * it ends in time, keeps what it has, and the next one goes on; the first goes on from bench/results. `npm run conformance`. Options:
 * --groups="node conformance;node, others" --agents=actorlet,kubelet --minutes=7 --specs=60 (of a slice) --nodes=6 (specs at a time)
 * --focus=REGEXP (these run again, and what was known of them is replaced) --keep=DIR --out=FILE --run=no (the table alone)
 * --observe=yes (an observer runs beside the reference kubelet, and its judged acts are added up with the outcomes)
 * --observe=proof (so, and a proxy of the runtime, strace and an audit log tell whether it changes anything; exit code 1: it does)
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { buildDaemon } from '../test/e2e/daemon.ts';
import { whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { inOrder, isOfNodeTests } from './conformance/groups.ts';
import { AGENTS, type Agent, SpecNode } from './conformance/node.ts';
import { NodeTests } from './conformance/nodeTests.ts';
import { Beside, markdownOfObserved, NOTHING_OBSERVED, type Observed, withLedger } from './conformance/observed.ts';
import { listed, markdownOf, merged, type SpecOutcomes, tableOf, toRun, unlisted } from './conformance/outcomes.ts';
import { ownFolder, runInside } from './conformance/ownNamespaces.ts';
import { SpecPrograms } from './conformance/programs.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { numberOption, option, projectRoot, report, say } from './lib/report.ts';
import { Witness } from './lib/witness.ts';

const agents = (option('agents') ?? AGENTS.join(',')).split(',') as Agent[];
const groups = (option('groups') ?? '').split(';').filter(Boolean);
const minutes = numberOption('minutes', 7);
const most = numberOption('specs', 60);
const processes = numberOption('nodes', 6);
const focus = option('focus');
const observe = option('observe') ?? 'no';
if (!['no', 'yes', 'proof'].includes(observe)) throw new Error(`--observe=${observe}: yes, or proof`);
let witness: Witness | undefined;
const RESULTS = join(projectRoot, 'bench/results/conformance.json');
/** Of a slice: start, ends of agents, clean-up. */
const AROUND_S = 60;

const unknown = agents.find((name) => !AGENTS.includes(name));
if (unknown !== undefined) throw new Error(`--agents: no agent ${unknown}: ${AGENTS.join(', ')}`);

const dir = ownFolder();
if (dir === undefined) {
  await buildDaemon();
  process.exitCode = await runInside();
} else await slice(dir);

type Kept = Record<Agent, SpecOutcomes>;
interface Chosen {
  first: string[];
  alone: string[];
}

async function slice(dir: string): Promise<void> {
  const programs = new SpecPrograms(dir);
  const version = await programs.version();
  const names = await programs.names();
  const specs = inOrder(names, groups);
  const store = keptAt(join(option('keep') ?? join(projectRoot, '.cache/conformance'), version), version);
  const kept = store.read();
  const isWanted = option('run') !== 'no';
  const chosen = chosenOf(focus === undefined ? specs : specs.filter((name) => new RegExp(focus).test(name)), kept);
  if (isWanted && agents.some((agent) => chosen[agent].first.length + chosen[agent].alone.length > 0)) {
    if (agents.includes('kubelet')) {
      const why = whyNoReferenceKubelet();
      if (why !== undefined) throw new Error(why);
    }
    const isOfNode = agents.some((agent) => isOfNodeTests(runs(chosen[agent])[0] ?? ''));
    const images = await programs.images();
    if (observe === 'proof') witness = new Witness();
    const node = await (isOfNode ? NodeTests : SpecNode).start({ images, dir, flags: witness?.audit.flags ?? [] });
    const cleanUp = cleanUpOnce(() => node.stop());
    try {
      for (const agent of agents) await runOn(agent, { node, programs, chosen: chosen[agent], store, dir });
    } finally {
      await cleanUp();
      witness?.close();
    }
  }
  const all = store.read();
  const table = tableOf(specs, all);
  const observed = store.observed();
  say(markdownOf(table.rows, AGENTS));
  say(markdownOfObserved(observed));
  await report('conformance', { release: version, ...table, observed, outcomes: listed(all) });
}

/** Specs that failed run once more, one at a time, when all others were run. */
function runs({ first, alone }: Chosen): string[] {
  return first.length === 0 ? alone : first;
}

/** What each agent runs in this slice: specs of one program. */
function chosenOf(specs: readonly string[], kept: Kept): Record<Agent, Chosen> {
  const left = Object.fromEntries(AGENTS.map((agent) => [agent, toRun(specs, focus === undefined ? kept[agent] : {})])) as Record<
    Agent,
    Chosen
  >;
  const next = agents.flatMap((agent) => runs(left[agent]))[0] ?? '';
  const some = (list: string[]): string[] => list.filter((name) => isOfNodeTests(name) === isOfNodeTests(next)).slice(0, most);
  return Object.fromEntries(
    AGENTS.map((agent) => {
      const { first, alone } = left[agent];
      return [agent, { first: some(first), alone: first.length === 0 ? some(alone) : [] }];
    }),
  ) as Record<Agent, Chosen>;
}

async function runOn(
  agent: Agent,
  o: { node: SpecNode | NodeTests; programs: SpecPrograms; chosen: Chosen; store: Store; dir: string },
): Promise<void> {
  const isAlone = o.chosen.first.length === 0;
  const names = runs(o.chosen);
  if (names.length === 0) return;
  const { node, programs, store } = o;
  say(`${agent}: ${names.length} specs${isAlone ? ', one at a time' : ''}`);
  const seconds = Math.max(60, Math.round((minutes * 60 - AROUND_S) / agents.length));
  // Serial specs change the agent for all others.
  const run = { agent, seconds, processes: isAlone || names.some((name) => name.includes('[Serial]')) ? 1 : processes };
  if (node instanceof SpecNode) await node.on(agent);
  const which = node instanceof SpecNode ? [`--kubelet-pid=${node.kubeletPid}`] : [];
  const prepare = witness !== undefined && node instanceof SpecNode ? node.witnessed.bind(node, witness, o.dir) : undefined;
  const beside = observe !== 'no' && agent === 'kubelet' ? new Beside(o.dir, which, prepare) : undefined;
  const ran = await (node instanceof SpecNode
    ? programs.run(names, { ...run, kubeconfig: node.kubeconfig, missing: node.missing })
    : programs.runOfNode(names, { ...run, node, agent }));
  store.add(agent, ran, { replace: focus !== undefined });
  const count = (of: string): number => Object.values(ran).filter(({ result }) => result === of).length;
  say(`${agent}: ${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped, of ${names.length}`);
  for (const [name, { result, why }] of Object.entries(ran)) if (result === 'failed') say(`  ${name}: ${why}`);
  if (node instanceof SpecNode) await node.clear();
  const ledgers = (await beside?.end()) ?? [];
  if (beside !== undefined && witness !== undefined) tell(await witness.saw());
  for (const d of store.observe(ledgers).disagreements) say(`  observer: ${d.kind} ${d.pod}: not ${d.expected}; instead ${d.came}`);
  store.log(agent, { report: join(o.dir, `${agent}.xml`), agent: node.log(agent), observer: beside?.log(), ledgers });
  if (node instanceof SpecNode) await node.off(agent);
}

function tell({ lines, wrong }: Awaited<ReturnType<Witness['saw']>>): void {
  for (const line of lines) say(`  observer: ${line}`);
  say(wrong.length === 0 ? 'the observer changed nothing' : `the observer changed:\n  ${wrong.join('\n  ')}`);
  if (wrong.length > 0) process.exitCode = 1;
}

interface Store {
  read(): Kept;
  add(agent: Agent, run: SpecOutcomes, o: { replace: boolean }): void;
  observed(): Observed;
  /** Adds these ledgers, and gives what they come to alone. */
  observe(ledgers: readonly ObserverLedger[]): Observed;
  /** What a person reads who looks for the cause of a failure. */
  log(agent: Agent, o: { report: string; agent: string; observer: string | undefined; ledgers: readonly ObserverLedger[] }): void;
}

/** What slices found, one file per agent. Where there is none: what the results of this release have. */
function keptAt(folder: string, version: string): Store {
  mkdirSync(folder, { recursive: true });
  const fileOf = (agent: Agent): string => join(folder, `${agent}.json`);
  const { release, outcomes } = JSON.parse(readFileSync(RESULTS, 'utf8')).results;
  const before: Partial<Kept> = release === version ? unlisted(outcomes, AGENTS) : {};
  const read = (): Kept =>
    Object.fromEntries(
      AGENTS.map((agent) => [agent, existsSync(fileOf(agent)) ? JSON.parse(readFileSync(fileOf(agent), 'utf8')) : (before[agent] ?? {})]),
    ) as Kept;
  const write = (file: string, what: object): void => {
    writeFileSync(`${file}.new`, `${JSON.stringify(what, null, 1)}\n`);
    renameSync(`${file}.new`, file);
  };
  const observedFile = join(folder, 'observed.json');
  const observed = (): Observed =>
    existsSync(observedFile) ? (JSON.parse(readFileSync(observedFile, 'utf8')) as Observed) : NOTHING_OBSERVED;
  return {
    read,
    observed,
    add(agent, run, { replace }) {
      const known = read()[agent];
      write(fileOf(agent), replace ? { ...known, ...run } : merged(known, run));
    },
    observe(ledgers) {
      if (ledgers.length > 0) write(observedFile, ledgers.reduce(withLedger, observed()));
      return ledgers.reduce(withLedger, NOTHING_OBSERVED);
    },
    log(agent, o) {
      const at = new Date().toISOString().slice(0, 16).replaceAll(':', '');
      const logs = join(folder, 'logs');
      mkdirSync(logs, { recursive: true });
      copyFileSync(o.report, join(logs, `${at}-${agent}.xml`));
      writeFileSync(join(logs, `${at}-${agent}.log`), o.agent);
      if (o.observer === undefined) return;
      writeFileSync(join(logs, `${at}-observer.log`), o.observer);
      writeFileSync(join(logs, `${at}-ledgers.json`), JSON.stringify(o.ledgers, null, 1));
    },
  };
}
