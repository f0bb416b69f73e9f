/** One node: the tree, given configuration and ports. Nothing here is global; a process may hold a thousand of them. */

import { apiView, type NodeView } from '../machines/api/messages.ts';
import { addressesByCloud } from '../machines/api/node/nodeAddresses.ts';
import { chartOf } from '../machines/chart/definition.ts';
import type { NodeConfig } from '../machines/config/config.ts';
import { toV1beta1 } from '../machines/config/v1beta1.ts';
import { createUsageLog, type UsageLog } from '../machines/edge/stats/usageLog.ts';
import type { GroupDriver, NodeFacts } from '../machines/nodeFacts.ts';
import { podOfMessage } from '../machines/pod/setAside.ts';
import { statusesView } from '../machines/pods/status/messages.ts';
import type { Moment } from '../machines/recorder/moment.ts';
import { entryLine, isBelow } from '../machines/recorder/recorderEntry.ts';
import { type CriView, criView } from '../machines/runtime/cri/messages.ts';
import { handlingPod } from '../ports/handling.ts';
import type { Clock, Ports } from '../ports/ports.ts';
import { measuredCgroups } from './allocation/cgroups/measured.ts';
import { topologyMetrics } from './allocation/coordinator/metrics.ts';
import { PROVIDERS } from './allocation/providers.ts';
import type { BuildInfo } from './edge/metrics/nodeMetrics.ts';
import type { Inspect, InspectionPage } from './edge/server.ts';
import { type Extend, type Extension, faultsOf } from './extension.ts';
import { readNodeFacts } from './nodeFacts.ts';
import { shutdownTimes } from './reclaim/nodeShutdown/metrics.ts';
import { createHistory, type History } from './recorder/history.ts';
import { createRecorder, type Recorder } from './recorder/recorder.ts';
import type { Inspected } from './recorder/source.ts';
import { timelineOf } from './recorder/timeline.ts';
import { createTree, type SupervisionTree, type TreeOptions } from './supervision/tree.ts';
import type { SupervisionEvent, Tree } from './supervision/types.ts';
import type { Heartbeat } from './supervision/watchdog.ts';
import { nodeTree } from './tree.ts';
import { type TreeInput, treeOptions } from './treeOptions.ts';

export interface Node {
  readonly tree: Tree;
  readonly facts: NodeFacts;
  /** Starts the tree, left to right. Rejects with the reason when the root fails. */
  start(): Promise<void>;
  /** Stops the tree, right to left. Containers are left alone. */
  stop(): Promise<void>;
  /** Lines of the flight recorder, oldest first. */
  recorder(limit?: number): string[];
  /** For the inspection page, the xstate inspectors, recording and tracing; null unless flags or configuration ask for one of them. */
  readonly inspected: Inspected | null;
}

const UNKNOWN_BUILD: BuildInfo = { major: '1', minor: '36', gitVersion: '', gitCommit: '', buildDate: '', platform: '' };

/** From this `--v` on, each state change of each actor is one debug line; the flight recorder has them at any verbosity. */
const TRANSITIONS_VERBOSITY = 4;
/** Pods are named by UID in a worker's path. */
const WORKERS = /^node\/pods\/workers\/([^/]+)$/;

function logTransition(ports: Ports): (e: SupervisionEvent) => void {
  return (e) => {
    if (e.kind !== 'transition') return;
    const uid = WORKERS.exec(e.path)?.[1];
    const { path: actor, from, to, event, reason } = e;
    ports.log.debug({ actor, ...(uid === undefined ? {} : { uid }), from, to, event, reason }, 'state changed');
  };
}

/**
 * The runtime's own word, that of the configuration where it says none, undefined until it was asked. The last one stays
 * while the link to it begins anew.
 */
function driverOfRuntime({ config }: NodeConfig, cri: () => CriView | undefined): () => GroupDriver | undefined {
  let last: GroupDriver | undefined;
  return () => {
    const said = cri()?.cgroupDriver;
    if (said === null) last = config.cgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs';
    else if (said !== undefined) last = said;
    return last;
  };
}

export interface NodeOptions {
  build?: BuildInfo;
  inspect?: TreeOptions['inspect'];
  heartbeat?: Heartbeat;
  flagz?: () => Readonly<Record<string, string>>;
  page?: () => InspectionPage;
  /** Entries that the flight recorder keeps. Default: 4096. */
  recorderEntries?: number;
  /** As {@link TreeOptions.acting}. */
  acting?: TreeOptions['acting'];
  /** What stands beside the kubelet and lives in the tree. */
  extensions?: readonly Extend[];
  /** Looks at the node from outside, where no flag asks for it: the node itself stays as it is without. */
  onlooker?: { readonly clock: Clock };
}

/** What the parts of a node share. */
interface Parts {
  config: NodeConfig;
  /** The ports as they were given, without what the node puts before them. */
  outside: Ports;
  o: NodeOptions;
  facts: NodeFacts;
  recorder: Recorder;
  history: History | null;
  usage: UsageLog;
  started: { wallMs: number; monoMs: number };
  /** Throws before it is built. */
  live(): SupervisionTree;
}

/**
 * @throws when the host has no name, or has less than is reserved of it, or its CPUs cannot be allocated as configured; everything
 * else is an actor's failure, handled in the tree.
 */
export async function createNode(config: NodeConfig, outside: Ports, o: NodeOptions = {}): Promise<Node> {
  let tree: SupervisionTree | undefined;
  const facts = liveFacts(config, await readNodeFacts(config, outside), {
    cri: () => tree?.registry.read(criView)?.value,
    node: () => tree?.registry.read(apiView.node)?.value,
  });
  const recorder = createRecorder(o.recorderEntries);
  const { clock } = outside;
  const history = historyFor(config, clock, o.onlooker);
  const started = { wallMs: clock.wallMs(), monoMs: clock.monoMs() };
  const live = (): SupervisionTree => {
    if (tree === undefined) throw new Error('the tree is not built yet');
    return tree;
  };
  const parts: Parts = { config, outside, o, facts, recorder, history, usage: createUsageLog(), started, live };
  const { extensions, ports } = extended(parts);
  const built = createTree(nodeTree(treeOptions(config, treeInput(parts, ports, extensions))), ports, {
    observers: observersOf(parts, ports),
    subjectOf: podOfMessage,
    around: (uid, step) => handlingPod(ports, uid, step),
    ...(o.heartbeat === undefined ? {} : { heartbeat: o.heartbeat }),
    ...(o.inspect === undefined ? {} : { inspect: o.inspect }),
    acting: o.acting,
  });
  tree = built;
  // Layers behind it start anew with it: none goes by versions and objects that the API server does not have any more.
  built.registry.watch(apiView.restored, () => void built.kill('node/api', 'a restored API server'));
  addIdleFamilies(config, ports.metrics);
  if (history !== null) built.registry.watch(statusesView, (statuses) => history.see(statuses));
  return {
    tree: built,
    facts,
    start: () => built.start(),
    stop: () => built.stop(),
    recorder: (limit) => recorder.dump(limit === undefined ? {} : { limit }),
    inspected: history !== null && (isLookedAt(config) || o.onlooker !== undefined) ? inspectedOf(parts, history, extensions) : null,
  };
}

/** Families of managers that this node may be without: at 0 then, as in the kubelet. */
function addIdleFamilies({ gates }: NodeConfig, metrics: Ports['metrics']): void {
  for (const provider of PROVIDERS) provider.metrics?.(metrics);
  topologyMetrics(metrics);
  if (gates.enabled('GracefulNodeShutdown') && gates.enabled('GracefulNodeShutdownBasedOnPodPriority')) shutdownTimes(metrics);
}

/** What the runtime says, and what the controller of a cloud says of the node's addresses, is read anew each time. */
function liveFacts(
  config: NodeConfig,
  fixed: Awaited<ReturnType<typeof readNodeFacts>>,
  { cri, node }: { cri(): CriView | undefined; node(): NodeView | undefined },
): NodeFacts {
  const { flags } = config;
  const byCloud = flags.cloudProvider === 'external' && flags.kubeconfig !== '' && flags.nodeIPs.length === 0;
  const cgroupDriver = driverOfRuntime(config, cri);
  // The last one stays while the link to it begins anew: it is a part of every container's id.
  let runtimeName = '';
  return {
    ...fixed,
    get hostIPs() {
      return byCloud ? addressesByCloud(node()?.addresses ?? []) : fixed.hostIPs;
    },
    get cgroupDriver() {
      return cgroupDriver();
    },
    get runtimeName() {
      runtimeName = cri()?.runtimeName || runtimeName;
      return runtimeName;
    },
    get recursiveReadOnly() {
      return cri()?.handlers?.flatMap((h) => (h.recursiveReadOnlyMounts ? [h.name] : []));
    },
  };
}

function watchedPorts({ outside, history }: Parts): Ports {
  const ports = history === null ? outside : { ...outside, cri: history.watch(outside.cri) };
  return ports.cgroups === undefined ? ports : { ...ports, cgroups: measuredCgroups(ports.cgroups, ports) };
}

/** What stands beside the kubelet, and the ports as actors get them with it. */
function extended(parts: Parts): { extensions: readonly Extension[]; ports: Ports } {
  const { config, outside, o, facts, recorder, live } = parts;
  const record = (path: string, what: string) => recorder.note({ path, what, atMs: outside.clock.wallMs() });
  const host = { config, facts, inspect: inspectOf(parts), outside, tree: live, record };
  const extensions = (o.extensions ?? []).map((extend) => extend(host));
  const ports = extensions.reduce((under, extension) => extension.ports?.(under) ?? under, watchedPorts(parts));
  return { extensions, ports };
}

function treeInput(parts: Parts, ports: Ports, extensions: readonly Extension[]): TreeInput {
  return {
    facts: () => parts.facts,
    inspect: inspectOf(parts),
    build: parts.o.build ?? UNKNOWN_BUILD,
    extensions,
    plugins: ports.csi !== undefined,
    devicePlugins: ports.devicePlugins !== undefined,
    dra: ports.dra !== undefined,
    podResources: ports.podResources !== undefined,
    podsApi: ports.podsApi !== undefined,
    kernelLog: ports.kernelLog !== undefined,
    inhibitor: ports.inhibitor !== undefined,
    iptables: ports.iptables !== undefined,
    observer: ports.observer !== undefined,
    host: parts.outside.host,
  };
}

function inspectOf(parts: Parts): Inspect {
  const { config, o, facts, recorder, history, started, live } = parts;
  return {
    state: () => live().state(),
    stateAt: (path) => live().stateAt(path),
    recorder: (filter) => recorder.read(filter),
    recorderFrom: (from, filter) => linesFrom(recorder, from, filter),
    // The driver that is at work: the runtime's, where it says it.
    configz: () => toV1beta1({ ...config.config, cgroupDriver: facts.cgroupDriver ?? config.config.cgroupDriver }),
    chart: (path) => chartAt(live(), path),
    timeline: (uid) => timelineOf(uid, { recorder, history }),
    ...(o.page === undefined ? {} : { page: o.page }),
    identity: { name: facts.nodeName, version: o.build?.gitVersion ?? '', kubeconfig: config.flags.kubeconfig },
    started,
    ...(history === null
      ? {}
      : {
          secrets: { of: (uid) => history.secretsOf(uid), hidden: (text) => history.hidden(text), learn: (words) => history.learn(words) },
        }),
    usage: parts.usage,
    ...(o.flagz === undefined ? {} : { flagz: o.flagz }),
  };
}

function observersOf({ config, recorder, history }: Parts, ports: Ports): ((e: SupervisionEvent) => void)[] {
  const observers: ((e: SupervisionEvent) => void)[] = [(e) => recorder.observe(e)];
  if (history !== null) observers.push((e) => history.observe(e));
  if (config.config.logging.verbosity >= TRANSITIONS_VERBOSITY) observers.push(logTransition(ports));
  return observers;
}

function inspectedOf({ outside, o, facts, recorder, started, live }: Parts, history: History, extensions: readonly Extension[]): Inspected {
  return {
    tree: live(),
    recorder,
    history,
    clock: o.onlooker?.clock ?? outside.clock,
    log: outside.log,
    nodeName: facts.nodeName,
    version: o.build?.gitVersion ?? '',
    startedAtMs: started.wallMs,
    faults: faultsOf(extensions),
  };
}

/**
 * What the node keeps for itself is on its own clock, and each look at that is an input of a recording. An onlooker gets the
 * one that the node has, as it has it, and another clock only where the node has none.
 */
function historyFor(config: NodeConfig, clock: Clock, onlooker: NodeOptions['onlooker']): History | null {
  const lookedAt = isLookedAt(config);
  // Bundles of facts about deaths are made of it, too. A recording of an older release says nothing of them.
  if (lookedAt || config.flags.deathsMax > 0) return createHistory(clock, { lean: !lookedAt });
  return onlooker === undefined ? null : createHistory(onlooker.clock);
}

/** Whether pods' histories are kept for the page, the recording, or traces. */
function isLookedAt({ flags, config }: NodeConfig): boolean {
  return flags.inspect !== '' || flags.record !== '' || (config.tracing?.samplingRatePerMillion ?? 0) > 0;
}

function linesFrom(recorder: Recorder, from: number, { path, limit }: { path?: string; limit: number }) {
  const next = recorder.recorded;
  const entries = recorder.since(from, next);
  const missed = from > 0 ? Math.max(0, next - from - entries.length) : 0;
  const lines = entries.filter((e) => path === undefined || isBelow(e.path, path)).map(entryLine);
  return { next, lines: lines.slice(-limit), missed };
}

function chartAt(tree: SupervisionTree, path: string): ReturnType<Moment['chart']> {
  const chart = chartOf(tree.machineAt(path));
  return chart === null ? null : { chart, state: tree.rowAt(path)?.state ?? '' };
}
