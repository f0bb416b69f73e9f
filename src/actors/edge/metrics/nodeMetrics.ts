/** Metrics computed from views and the tree at each scrape: pods as the kubelet counts them, and the tree itself. */

import { apiView } from '../../../machines/api/messages.ts';
import { isRefused, isWanted, type PodRecord, podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import type { WorkerPhase } from '../../../machines/pods/workers/messages.ts';
import { volumesView } from '../../../machines/services/volumes/messages.ts';
import { isUp } from '../../../machines/supervision/actorState.ts';
import { gaugeRows } from '../../../ports/gaugeRows.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { ActorState, Registry } from '../../supervision/types.ts';

/** What kubernetes_build_info says; empty fields are allowed. */
export interface BuildInfo {
  major: string;
  minor: string;
  /** As `--version` prints it, without `Kubernetes `. */
  gitVersion: string;
  gitCommit: string;
  buildDate: string;
  platform: string;
  /** What runs the program: `Node.js v24.1.0`. */
  runtime?: string;
}

const LIFECYCLES = ['sync', 'terminating', 'terminated'] as const;

/** Registers them; a restarted actor may call it again (the collectors replace the earlier ones). */
export function addNodeMetrics(metrics: Metrics, o: { registry: Registry; state(): ActorState; nodeName: string; build: BuildInfo }): void {
  const build = {
    major: o.build.major,
    minor: o.build.minor,
    git_version: o.build.gitVersion,
    git_commit: o.build.gitCommit,
    git_tree_state: '',
    build_date: o.build.buildDate,
    go_version: '',
    compiler: 'node',
    platform: o.build.platform,
  };
  const help = 'A metric with a constant 1 value labeled by build information.';
  metrics.gauge('kubernetes_build_info', help, Object.keys(build)).set(1, build);
  metrics.gauge('kubelet_node_name', "The node's name. The count is always 1.", ['node']).set(1, { node: o.nodeName });
  addPodMetrics(metrics, o.registry);
  addVolumeMetrics(metrics, o.registry);
  addTreeMetrics(metrics, o);
}

// ---- pods ----------------------------------------------------------------------------------------------------------

function addPodMetrics(metrics: Metrics, registry: Registry): void {
  const desired = metrics.gauge('kubelet_desired_pods', 'The number of pods the kubelet is being instructed to run.', ['static']);
  const active = metrics.gauge('kubelet_active_pods', 'The number of pods the kubelet considers active.', ['static']);
  const working = metrics.gauge('kubelet_working_pods', 'Number of pods the kubelet is actually running, by lifecycle phase and origin.', [
    'lifecycle',
    'config',
    'static',
  ]);
  const mirror = metrics.gauge('kubelet_mirror_pods', 'The number of mirror pods the kubelet will try to create.');
  metrics.onCollect(() => {
    const counts = countPods(registry.read(podsView)?.value.records ?? new Map(), (uid) => {
      const phase = registry.read(statusesView)?.value.get(uid)?.status.phase;
      return phase === 'Succeeded' || phase === 'Failed';
    });
    for (const isStatic of ['', 'true']) {
      desired.set(counts.desired.get(isStatic) ?? 0, { static: isStatic });
      active.set(counts.active.get(isStatic) ?? 0, { static: isStatic });
    }
    for (const lifecycle of LIFECYCLES) {
      for (const [config, isStatic] of [
        ['desired', ''],
        ['desired', 'true'],
        ['orphan', ''],
        ['orphan', 'true'],
        ['runtime_only', 'unknown'],
      ] as const) {
        working.set(counts.working.get(`${lifecycle} ${config} ${isStatic}`) ?? 0, { lifecycle, config, static: isStatic });
      }
    }
    // One for each static pod, where there is an API server to show it to.
    mirror.set(registry.read(apiView.pods) === undefined ? 0 : (counts.desired.get('true') ?? 0));
  }, 'nodeMetrics.pods');
}

function countPods(records: ReadonlyMap<string, PodRecord>, terminal: (uid: string) => boolean) {
  const desired = new Map<string, number>();
  const active = new Map<string, number>();
  const working = new Map<string, number>();
  const add = (to: Map<string, number>, key: string) => to.set(key, (to.get(key) ?? 0) + 1);
  for (const [uid, record] of records) {
    const isStatic = record.source === 'runtime' ? 'unknown' : record.source === 'api' ? '' : 'true';
    const config = record.source === 'runtime' ? 'runtime_only' : isWanted(record) ? 'desired' : 'orphan';
    if (config === 'desired') add(desired, isStatic);
    if (config === 'desired' && !isRefused(record) && !terminal(uid)) add(active, isStatic);
    if (record.worker !== null) add(working, `${lifecycleOf(record.worker.phase)} ${config} ${isStatic}`);
  }
  return { desired, active, working };
}

function lifecycleOf(phase: WorkerPhase): (typeof LIFECYCLES)[number] {
  switch (phase) {
    case 'waiting':
    case 'syncing':
      return 'sync';
    case 'terminating':
      return 'terminating';
    case 'terminated':
    case 'finished':
      return 'terminated';
  }
}

// ---- volumes -------------------------------------------------------------------------------------------------------

/** Wanted by pods that are not gone, and set up on this node, by plugin. */
function addVolumeMetrics(metrics: Metrics, registry: Registry): void {
  const show = gaugeRows(metrics.gauge('volume_manager_total_volumes', 'Number of volumes in Volume Manager', ['plugin_name', 'state']));
  metrics.onCollect(() => {
    const records = registry.read(podsView)?.value.records;
    const rows = [...(registry.read(volumesView)?.value ?? [])].flatMap(([uid, volumes]) => {
      const record = records?.get(uid);
      const states = (state: string) => [
        ...(record !== undefined && isWanted(record) ? ['desired_state_of_world'] : []),
        ...(IN_PLACE.has(state) ? ['actual_state_of_world'] : []),
      ];
      return volumes.flatMap((v) => states(v.state).map((state) => [{ plugin_name: v.servedBy, state }, 1] as const));
    });
    show(rows);
  }, 'nodeMetrics.volumes');
}
/** Phases of a volume in which something of it stands on this node. */
const IN_PLACE: ReadonlySet<string> = new Set(['mounted', 'stale', 'uncertain', 'unmounting', 'unmountFailed']);

// ---- the tree ------------------------------------------------------------------------------------------------------

interface Sum {
  /** Sleepers too: they have no place in memory, and are there. */
  running: number;
  asleep: number;
  total: number;
  oldestMs: number | null;
}

/**
 * What the kernel does not count by itself (it counts mailboxes and restarts). Children of a dynamic supervisor share one
 * series (`.../workers/*`): a series per pod would never stop growing.
 */
function addTreeMetrics(metrics: Metrics, o: { registry: Registry; state(): ActorState }): void {
  const running = metrics.gauge('actorlet_actors_running', 'Actors of this path that run or sleep.', ['path']);
  const asleep = metrics.gauge(
    'actorlet_actors_asleep',
    'Actors of this path that sleep: nothing happens to them, and what comes wakes them.',
    ['path'],
  );
  const total = metrics.gauge('actorlet_actors', 'Actors of this path.', ['path']);
  const age = metrics.gauge('actorlet_mailbox_oldest_age_seconds', 'How long the oldest waiting message has waited.', ['path']);
  const letters = metrics.counter('actorlet_dead_letters_total', 'Messages that reached nobody.', ['reason']);
  const counted = new Map<string, number>();
  let shown = new Set<string>();
  metrics.onCollect(() => {
    const sums = sumTree(o.state());
    for (const [path, s] of sums) {
      running.set(s.running, { path });
      asleep.set(s.asleep, { path });
      total.set(s.total, { path });
      if (s.oldestMs !== null) age.set(s.oldestMs / 1000, { path });
    }
    for (const path of shown) {
      if (sums.has(path)) continue;
      running.set(0, { path });
      asleep.set(0, { path });
      total.set(0, { path });
      age.remove({ path });
    }
    shown = new Set(sums.keys());
    for (const [reason, n] of Object.entries(o.registry.deadLetters().byReason)) {
      const more = n - (counted.get(reason) ?? 0);
      if (more > 0) letters.inc({ reason }, more);
      counted.set(reason, n);
    }
  }, 'nodeMetrics.tree');
}

function sumTree(root: ActorState): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  const visit = (actor: ActorState, path: string) => {
    const s = sums.get(path) ?? { running: 0, asleep: 0, total: 0, oldestMs: null };
    s.total++;
    if (isUp(actor)) s.running++;
    if (actor.lifecycle === 'asleep') s.asleep++;
    if (actor.mailbox !== undefined) s.oldestMs = Math.max(s.oldestMs ?? 0, actor.mailbox.oldestAgeMs);
    sums.set(path, s);
    for (const child of actor.children) {
      visit(child, actor.type === 'dynamic' ? `${path}/*` : `${path}/${child.path.slice(child.path.lastIndexOf('/') + 1)}`);
    }
  };
  visit(root, root.path);
  return sums;
}
