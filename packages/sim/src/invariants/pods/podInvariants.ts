/** Invariants about how a pod is wound down, succeeded and restarted: who may be stopped, with how much grace, who may begin, how often. */

import type { Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { fullName } from '@actorlet/kubelet/machines/pod/names.ts';
import { MIN_CONTAINER_GRACE_SECONDS } from '@actorlet/kubelet/machines/pod/runtime/killOrder.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { PodStorage } from '@actorlet/kubelet/machines/pods/podConfig/merge.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { CRI_ANNOTATIONS } from '@actorlet/kubelet/machines/wire/cri.ts';

import type { HollowContainerDump, HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, isEvicted, type Scene, targetOf } from '../checker.ts';
import { isAskedFor, isRestartedWholly } from './restartInvariants.ts';

const GRACE = 'io.kubernetes.pod.terminationGracePeriod';
/** Starts of one container of one pod that the back-off allows in a window: 0, 10, 20 s and so on, with room for what others cause. */
const STARTS_MAX = 12;
const STARTS_WINDOW_MS = 60_000;

function records(s: Scene) {
  return s.node.daemon?.tree.registry.read(podsView)?.value;
}
function up(c: HollowContainerDump): boolean {
  return c.state === 'CONTAINER_RUNNING';
}

function isSyncing(s: Scene, uid: string): boolean {
  return s.node.daemon?.tree.stateAt(`node/pods/workers/${uid}`)?.state.startsWith('syncing') === true;
}

/** The status that the pod's worker gave last. */
function wordOf(s: Scene, uid: string): PodStatus | undefined {
  const tree = s.node.daemon?.tree;
  const path = `node/pods/workers/${uid}`;
  // A sleeper had told all that it knew.
  if (tree?.stateAt(path)?.lifecycle === 'asleep') return tree.registry.read(statusesView)?.value.get(uid)?.status;
  const snapshot = tree?.actorAt(path)?.getSnapshot() as { context?: { apiStatus?: PodStatus } } | undefined;
  return snapshot?.context?.apiStatus;
}
function hasEnded(status: PodStatus | undefined): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/** podConfig has heard every source; the pod manager may still wait for the admission of what they named. */
function everySourceIsHeard(s: Scene): boolean {
  const snapshot: unknown = s.node.daemon?.tree.actorAt('node/pods/config')?.getSnapshot();
  return snapshot !== null && typeof snapshot === 'object' && 'value' in snapshot && snapshot.value === 'complete';
}

/** All that the sources have named, as far as they were heard. */
function namedPods(s: Scene): Pod[] {
  const snapshot = s.node.daemon?.tree.actorAt('node/pods/config')?.getSnapshot() as { context?: { storage?: PodStorage } } | undefined;
  return [...(snapshot?.context?.storage?.pods.values() ?? [])].flatMap((pods) => [...pods.values()].map(({ pod }) => pod));
}

/** Whether a source has named another pod of that name, which may still wait to be admitted. */
function hasSuccessor(s: Scene, uid: string, name: string): boolean {
  return namedPods(s).some((pod) => pod.metadata.uid !== uid && fullName(pod) === name);
}

/** A source names the very pod. */
function isNamed(s: Scene, uid: string): boolean {
  return namedPods(s).some((pod) => pod.metadata.uid === uid);
}

/** Before every source has delivered, nothing is stopped for want of an owner (pod lifecycle 1.8, trap 6). */
export function nobodyIsStoppedUnheard(): Checker {
  /** Once a pod gave way to its successor it is wound down to the end, also if that one goes, too. */
  const gaveWay = new Set<string>();
  const lifeOf = (s: Scene, uid: string): string => `${s.node.name} ${s.node.boots} ${uid}`;
  return {
    name: 'nobody-is-stopped-unheard',
    // Its hooks, or its worker's way to the runtime, may take longer than its successor stays.
    supervision(s, e) {
      if (e.kind !== 'message' || e.to !== 'node/pods/podManager') return undefined;
      const ledger = records(s);
      if (ledger === undefined || ledger.sourcesReady) return undefined;
      for (const [uid, r] of ledger.records) if (!isWanted(r) && hasSuccessor(s, uid, fullName(r.pod))) gaveWay.add(lifeOf(s, uid));
      return undefined;
    },
    arrived(s, call) {
      if (call.method !== 'StopContainer' && call.method !== 'StopPodSandbox') return undefined;
      const ledger = records(s);
      if (ledger === undefined || ledger.sourcesReady || everySourceIsHeard(s)) return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid, id } = targetOf(call, dump);
      if (!dump.containers.some((c) => up(c) && (c.id === id || c.sandboxId === id))) return undefined;
      const record = ledger.records.get(uid);
      if (record !== undefined && isWanted(record)) return undefined;
      // It is over for a reason of its own: its deadline, an eviction, an end that the API server showed.
      const shown = s.node.daemon?.tree.registry.read(statusesView)?.value.get(uid)?.status;
      // What its worker has to say is not shown while an init container that had ended runs again, in another sandbox.
      if (hasEnded(shown) || hasEnded(wordOf(s, uid))) return undefined;
      // Its source had asked for its end before it named it no more.
      if (record?.pod.metadata.deletionTimestamp) return undefined;
      // Its worker winds nothing down: it brings the pod to the definition that was named last, whatever was noted since.
      if (record !== undefined && isSyncing(s, uid)) return undefined;
      // Its successor by name was named, and a name has one pod: what had it before is not wanted, even while other sources are silent.
      const name = record === undefined ? '' : fullName(record.pod);
      const life = lifeOf(s, uid);
      for (const [other, r] of ledger.records) if (other !== uid && isWanted(r) && fullName(r.pod) === name) gaveWay.add(life);
      if (hasSuccessor(s, uid, name)) gaveWay.add(life);
      // It has an owner: it gave way to a definition that was named for no longer than a moment, and comes back when it has ended.
      if (gaveWay.has(life) || (record !== undefined && !isWanted(record) && isNamed(s, uid))) return undefined;
      return `${s.node.name}: ${call.method} for pod ${uid}, which ${record === undefined ? 'no source has named yet' : 'is to go'}, before every source has delivered`;
    },
  };
}

/** A regular container is asked to stop with the grace that its pod was given, and never with less than two seconds (traps 31, 32). */
export function graceIsKept(): Checker {
  return {
    name: 'grace-is-kept',
    arrived(s, call) {
      if (call.method !== 'StopContainer') return undefined;
      const { containerId, timeout } = call.req as { containerId: string; timeout?: number | bigint };
      const c = s.node.runtime.hollow.dump().containers.find((one) => one.id === containerId);
      const grace = Number(c?.annotations[GRACE] ?? Number.NaN);
      // A sidecar waits for the others first, and what it waited is taken from its own grace.
      if (c === undefined || Number.isNaN(grace) || !c.name.startsWith('c')) return undefined;
      // A deletion brings a grace of its own.
      const box = s.node.runtime.hollow.dump().sandboxes.find((b) => b.id === c.sandboxId);
      const name = manifestName(box?.name ?? '', s.node);
      if (s.operator.deleted.has(name)) return undefined;
      // A pod that is evicted is given as much as the eviction manager allows.
      if (isEvicted(s.node, c.podUid)) return undefined;
      if (isRestartedWholly(s.node, c.podUid)) return undefined;
      const want = Math.max(MIN_CONTAINER_GRACE_SECONDS, grace);
      // What its hook took is taken from the grace.
      const hooked = c.annotations[CRI_ANNOTATIONS.preStopHandler] !== undefined;
      const given = Number(timeout ?? 0);
      // A shutdown of the machine gives what is left of its time; a stop that it began goes on after its end.
      if (s.node.logind.shutdowns > 0 && given < want) return undefined;
      return given === want || (hooked && given >= MIN_CONTAINER_GRACE_SECONDS && given < want)
        ? undefined
        : `${s.node.name}: container ${c.id} (${c.name} of pod ${c.podUid}) is stopped with ${String(timeout)} s, its pod gives it ${want} s`;
    },
  };
}

/** A new pod waits until the one that had its name before is over (trap 2); of the API: until nothing of that one runs. */
export function onePodPerName(): Checker {
  /** Pods that ever began: one that goes before it did has nothing to wait for. */
  const begun = new Set<string>();
  return {
    name: 'one-pod-per-name',
    arrived(s, call) {
      if (call.method !== 'RunPodSandbox') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid } = targetOf(call, dump);
      begun.add(`${s.node.name} ${uid}`);
      const ledger = records(s);
      const mine = ledger?.records.get(uid);
      if (ledger === undefined || mine === undefined) return undefined;
      const { name, namespace } = mine.pod.metadata;
      for (const [other, r] of ledger.records) {
        if (other === uid || r.pod.metadata.name !== name || r.pod.metadata.namespace !== namespace) continue;
        if (r.worker === null || r.worker.phase === 'finished' || r.worker.phase === 'waiting') continue;
        // Only what this node let run under the name before: it may learn of orphaned pods too late.
        if (r.source === 'runtime' || !begun.has(`${s.node.name} ${other}`)) continue;
        if (r.source === 'api' && !dump.containers.some((c) => c.podUid === other && up(c))) continue;
        return `${s.node.name}: pod ${uid} begins while pod ${other} of the same name ${namespace}/${name} is ${r.worker.phase}`;
      }
      return undefined;
    },
  };
}

/** An instance has a higher attempt than every one of its name that ran and is still there (trap 20). */
export function attemptsGrow(): Checker {
  return {
    name: 'attempts-grow',
    arrived(s, call) {
      if (call.method !== 'CreateContainer') return undefined;
      const { config } = call.req as { config?: { metadata?: { name?: string; attempt?: number } } };
      const name = config?.metadata?.name ?? '';
      const attempt = config?.metadata?.attempt ?? 0;
      const dump = s.node.runtime.hollow.dump();
      const { uid } = targetOf(call, dump);
      const earlier = dump.containers.filter((c) => c.podUid === uid && c.name === name && c.startedAtMs > 0);
      const highest = Math.max(-1, ...earlier.map((c) => c.attempt));
      return attempt > highest
        ? undefined
        : `${s.node.name}: ${name} of pod ${uid} is created as attempt ${attempt}, attempt ${highest} has run already`;
    },
  };
}

/** Crash loops are slowed down (traps 12 to 15): no container starts more often in a minute than back-off and accidents allow. */
export function crashLoopsAreSlow(): Checker {
  const starts = new Map<string, number[]>();
  const seen = new Set<string>();
  return {
    name: 'crash-loops-are-slow',
    changed(s, dump: HollowDump) {
      for (const c of dump.containers) {
        if (c.startedAtMs === 0 || seen.has(`${s.node.name} ${c.id}`)) continue;
        seen.add(`${s.node.name} ${c.id}`);
        // A sandbox that somebody stopped is replaced, and with it everything in it: no crash.
        if (dump.sandboxes.some((b) => b.uid === c.podUid && s.nemesis.disturbed.has(b.id))) continue;
        const key = `${s.node.name} ${c.podUid} ${c.name}`;
        // Its back-off ended with that.
        if (isAskedFor(s, c.podUid, starts.get(key)?.at(-1) ?? s.monoMs)) starts.delete(key);
        const recent = [...(starts.get(key) ?? []).filter((at) => at > s.monoMs - STARTS_WINDOW_MS), s.monoMs];
        starts.set(key, recent);
        if (recent.length > STARTS_MAX)
          return `${s.node.name}: ${c.name} of pod ${c.podUid} was started ${recent.length} times within ${STARTS_WINDOW_MS / 1_000} s`;
      }
      return undefined;
    },
  };
}
