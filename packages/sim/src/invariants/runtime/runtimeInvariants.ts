/** Invariants about what the node does to its runtime: doubles, starts during a stop, overlapping acts, healthy containers stopped. */
import type { HollowContainerDump, HollowDump, HollowSandboxDump } from '@actorlet/runtimes/src/hollow/index.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, isEvicted, type Scene, targetOf } from '../checker.ts';
import { isAskedFor, isRestartedWholly } from '../pods/restartInvariants.ts';

/** Longest time in which a node may still act on what was true before a change: missed hints, late effects, a slow disk. */
const SLACK_MS = 60_000;
/** A watch that was opened into a dead connection is given up after a minute, and waits before the next. */
const DEAD_WATCH_MS = 90_000;

function running(dump: HollowDump): HollowContainerDump[] {
  return dump.containers.filter((c) => c.state === 'CONTAINER_RUNNING');
}

/** At most one running container per pod UID and container name. */
export function oneRunningPerName(): Checker {
  return {
    name: 'one-running-per-name',
    changed(s, dump) {
      const seen = new Map<string, string>();
      for (const c of running(dump)) {
        const key = `${c.podUid} ${c.name}`;
        const other = seen.get(key);
        if (other !== undefined)
          return `${s.node.name}: containers ${other} and ${c.id} of pod ${c.podUid}, name ${c.name}, run at the same time`;
        seen.set(key, c.id);
      }
      return undefined;
    },
  };
}

/** Never two ready sandboxes of one pod that both hold running containers. */
export function oneSandboxInUse(): Checker {
  return {
    name: 'one-sandbox-in-use',
    changed(s, dump) {
      const used = new Map<string, string>();
      const ready = new Map(dump.sandboxes.filter((b) => b.ready).map((b) => [b.id, b]));
      for (const c of running(dump)) {
        const box = ready.get(c.sandboxId);
        if (box === undefined) return `${s.node.name}: container ${c.id} runs in sandbox ${c.sandboxId}, which is not ready`;
        const other = used.get(box.uid);
        if (other !== undefined && other !== box.id)
          return `${s.node.name}: pod ${box.uid} runs containers in sandboxes ${other} and ${box.id}`;
        used.set(box.uid, box.id);
      }
      return undefined;
    },
  };
}

const STARTING = new Set(['RunPodSandbox', 'CreateContainer', 'StartContainer']);
const GOING = new Set(['terminating', 'terminated', 'cleaningAgain', 'finished']);

/** Nothing is made or started for a pod whose worker has begun to wind it down. */
export function nothingStartsWhileStopping(): Checker {
  return {
    name: 'nothing-starts-while-stopping',
    arrived(s, call) {
      if (!STARTING.has(call.method)) return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const snapshot: unknown = s.node.daemon?.tree.actorAt(`node/pods/workers/${uid}`)?.getSnapshot();
      if (snapshot === null || typeof snapshot !== 'object' || !('value' in snapshot)) return undefined;
      const { value } = snapshot;
      const top = typeof value === 'string' ? value : value !== null && typeof value === 'object' ? (Object.keys(value)[0] ?? '') : '';
      return GOING.has(top) ? `${s.node.name}: ${call.method} for pod ${uid}, whose worker is in ${top}` : undefined;
    },
  };
}

/** Acts on one pod follow each other: no call that changes it while one of another act is in flight. */
export function oneActPerPod(): Checker {
  const open = new Map<string, Map<unknown, string>>();
  const uids = new Map<unknown, string>();
  return {
    name: 'one-act-per-pod',
    arrived(s, call) {
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      if (uid === '') return undefined;
      const key = `${s.node.name} ${call.boot} ${uid}`;
      const mine = open.get(key) ?? new Map<unknown, string>();
      const other = [...mine.values()].find((m) => m !== call.method);
      open.set(key, mine.set(call, call.method));
      uids.set(call, key);
      return other === undefined ? undefined : `${s.node.name}: ${call.method} of pod ${uid} was sent while ${other} was in flight`;
    },
    settled(_, call) {
      const key = uids.get(call);
      if (key === undefined) return;
      uids.delete(call);
      const mine = open.get(key);
      mine?.delete(call);
      if (mine?.size === 0) open.delete(key);
    },
    exited() {
      open.clear();
      uids.clear();
    },
  };
}

/** Running containers that a call would end. */
function victims(call: { method: string }, id: string, dump: HollowDump): HollowContainerDump[] {
  switch (call.method) {
    case 'StopContainer':
    case 'RemoveContainer':
      return running(dump).filter((c) => c.id === id);
    case 'StopPodSandbox':
    case 'RemovePodSandbox':
      return running(dump).filter((c) => c.sandboxId === id);
    default:
      return [];
  }
}

interface Probed {
  name: string;
  livenessProbe?: object;
  startupProbe?: object;
  /** The container's own, beside the pod's. */
  restartPolicy?: string;
}

/** A container whose liveness or startup is probed is stopped when probes failed. */
function mayBeSick(s: Scene, manifest: object, container: string): boolean {
  if ((s.nemesis.counts.get('probes.fail') ?? 0) === 0) return false;
  const { spec } = manifest as { spec: { containers: Probed[] } };
  const probed = (c: Probed | undefined): boolean => c?.livenessProbe !== undefined || c?.startupProbe !== undefined;
  const of = spec.containers.find((other) => other.name === container);
  // A sidecar ends with its pod, and that may be over with a container that does not begin again.
  return of === undefined ? spec.containers.some((c) => c.restartPolicy !== undefined && probed(c)) : probed(of);
}

/** A container whose postStart hook failed, or was never answered, is stopped. */
function hookFailed(s: Scene, containerId: string): boolean {
  return s.node.runtime.hooks.some((h) => h.containerId === containerId && h.which === 'postStart' && h.endedMs !== null && !h.ok);
}

/** A container is stopped for a reason: its pod goes, its definition or its sandbox changed, or its start was in doubt. */
export function healthyIsLeftAlone(): Checker {
  const madeAt = new Map<string, number>();
  const doubtful = new Set<string>();
  /** Starts under way, by node. */
  const starting = new Map<string, Set<string>>();
  const podOf = new Map<string, { name: string; rev: string }>();
  const reasonToStop = (s: Scene, c: HollowContainerDump, boxes: HollowSandboxDump[]): boolean => {
    const box = boxes.find((b) => b.id === c.sandboxId);
    if (box === undefined || !box.ready || doubtful.has(c.id)) return true;
    const same = boxes.filter((b) => b.uid === box.uid);
    if (same.some((b) => s.nemesis.disturbed.has(b.id)) || same.filter((b) => b.ready).length > 1) return true;
    if (isEvicted(s.node, box.uid)) return true;
    if (isRestartedWholly(s.node, box.uid)) return true;
    if (isAskedFor(s, box.uid, madeAt.get(`${s.node.name} ${c.id}`) ?? 0)) return true;
    const wanted = s.operator.wanted.get(manifestName(box.name, s.node));
    if (wanted === undefined || wanted.broken || wanted.pod.restartPolicy !== 'Always') return true;
    const current = wanted.pod.uid === undefined ? podOf.get(box.uid)?.rev === String(wanted.pod.rev) : box.uid === wanted.pod.uid;
    const madeMs = madeAt.get(`${s.node.name} ${c.id}`);
    if (mayBeSick(s, wanted.pod.manifest, c.name) || hookFailed(s, c.id)) return true;
    // It may start long after it was made, under another definition.
    if (!current || madeMs === undefined || madeMs < wanted.sinceMs) return true;
    // A container that was made soon after a change may belong to what was there before it.
    const slackMs =
      SLACK_MS + (wanted.source === 'api' ? DEAD_WATCH_MS : 0) + 4 * Math.max(0, s.nemesis.slowUntilMs(s.node.index) - wanted.sinceMs);
    return wanted.quietMs < slackMs && madeMs < wanted.sinceMs + slackMs;
  };
  return {
    name: 'healthy-is-left-alone',
    arrived(s, call) {
      if (call.method === 'RunPodSandbox') {
        const { config } = call.req as { config: { metadata: { uid: string; name: string }; labels?: Record<string, string> } };
        podOf.set(config.metadata.uid, { name: config.metadata.name, rev: config.labels?.rev ?? '' });
        return undefined;
      }
      const dump = s.node.runtime.hollow.dump();
      const { id } = targetOf(call, dump);
      if (call.method === 'StartContainer') starting.set(s.node.name, new Set([...(starting.get(s.node.name) ?? []), id]));
      const victim = victims(call, id, dump).find((c) => !reasonToStop(s, c, dump.sandboxes));
      if (victim === undefined) return undefined;
      return `${s.node.name}: ${call.method} ends container ${victim.id} (${victim.name} of pod ${victim.podUid}), which is wanted, unchanged and well`;
    },
    settled(s, call, outcome) {
      if (call.method !== 'StartContainer') return;
      const { containerId } = call.req as { containerId: string };
      starting.get(s.node.name)?.delete(containerId);
      if (outcome !== 'done') doubtful.add(containerId);
    },
    exited(s) {
      // A start in the middle of which its daemon died is of unknown outcome for the next one.
      for (const id of starting.get(s.node.name) ?? []) doubtful.add(id);
      starting.delete(s.node.name);
    },
    changed(s, dump) {
      for (const c of dump.containers) {
        const key = `${s.node.name} ${c.id}`;
        if (!madeAt.has(key)) madeAt.set(key, s.monoMs);
      }
      return undefined;
    },
  };
}

/** What a running container needs of its pod's directory is not removed: the directory, its hosts file, the container's own folder. */
export function podDirStays(): Checker {
  const prefix = `${ROOT_DIR}/pods/`;
  return {
    name: 'pod-dir-stays',
    removing(s, path) {
      if (!path.startsWith(prefix)) return undefined;
      const [uid = '', part = '', name = '', file] = path.slice(prefix.length).split('/');
      // One instance's file goes when that instance does, while its successor runs.
      if (file !== undefined) return undefined;
      const user = running(s.node.runtime.hollow.dump()).find(
        (c) => c.podUid === uid && (part !== 'containers' || name === '' || c.name === name),
      );
      return user === undefined
        ? undefined
        : `${s.node.name}: ${path} is removed while container ${user.id} (${user.name}) of that pod runs`;
    },
  };
}
