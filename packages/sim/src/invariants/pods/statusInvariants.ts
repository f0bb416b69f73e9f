/** Invariants about what the node says: phases, restart counts and versions of pod statuses, and incarnations. */

import { DEADLINE_OVERRIDE, SANDBOX_LOST } from '@actorlet/kubelet/machines/pod/ends/byNode.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { StatusEntry } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { EVICTED } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import { NOT_ADMITTED, TERMINATED } from '@actorlet/kubelet/machines/reclaim/nodeShutdown/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, type Scene, TURNED_AWAY, targetOf } from '../checker.ts';

const TERMINAL = new Set(['Succeeded', 'Failed']);
/** After a change to a pod its old and new life may both still speak. */
const SLACK_MS = 60_000;

/** The version of a pod's status only grows, as long as it is known. */
export function versionGrows(): Checker {
  const seen = new Map<string, Map<string, number>>();
  return {
    name: 'status-version-grows',
    statuses(s, statuses) {
      const before = seen.get(s.node.name);
      seen.set(s.node.name, new Map([...statuses].map(([uid, e]) => [uid, e.version])));
      for (const [uid, e] of statuses) {
        const was = before?.get(uid);
        if (was !== undefined && e.version < was)
          return `${s.node.name}: status of pod ${uid} went from version ${was} back to ${e.version}`;
      }
      return undefined;
    },
    exited(s) {
      seen.delete(s.node.name);
    },
  };
}

interface Life {
  phase: string;
  reason: string;
  restarts: Map<string, number>;
  name: string;
  sinceMs: number;
  /** Daemons so far when it was last looked at. */
  boots: number;
  /** Status managers so far, of all daemons, when it was last looked at. */
  memories: number;
}

/** Verdicts that a node comes to by itself: no container tells of them. */
const OWN_VERDICTS: ReadonlySet<string> = new Set([...TURNED_AWAY, 'DeadlineExceeded', SANDBOX_LOST, TERMINATED, NOT_ADMITTED]);

function podName(s: Scene, uid: string): string | undefined {
  const box = s.node.runtime.hollow.dump().sandboxes.find((b) => b.uid === uid);
  return box === undefined ? undefined : manifestName(box.name, s.node);
}

/** A life that is on its way out, however long that takes, says nothing of the one that may follow under its UID. */
function isLeaving(s: Scene, uid: string): boolean {
  const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
  const phase = record?.worker?.phase;
  return record === undefined || !isWanted(record) || phase === 'terminating' || phase === 'terminated';
}

/** A deadline counts in wall time: put back, it is ahead again, and a daemon that restarts then does not know better. */
function timeWentBack(s: Scene, name: string): boolean {
  const { spec } = (s.operator.wanted.get(name)?.pod.manifest ?? {}) as { spec?: { activeDeadlineSeconds?: number } };
  return spec?.activeDeadlineSeconds !== undefined && (s.nemesis.counts.get('clock.jump') ?? 0) > 0;
}

/** What was said of it is kept by the API server. */
function isOfApi(s: Scene, uid: string): boolean {
  return s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.source === 'api';
}

/** The API server has it that this pod came to its end. */
function isKept(s: Scene, uid: string): boolean {
  const told = s.kube?.store.list('pods').find((o) => o.metadata.uid === uid);
  return isRecord(told?.status) && TERMINAL.has(String(told.status.phase));
}

/** A container tells why its pod failed. None does where the sandbox was lost, and the word about that was refused. */
function anyFailed(s: Scene, uid: string): boolean {
  return s.node.runtime.hollow.dump().containers.some((c) => c.podUid === uid && c.state === 'CONTAINER_EXITED' && c.exitCode !== 0);
}

/**
 * A verdict of the node's own is in no container: it outlives the memory it was in only once the API server has been told,
 * and that of a pod that is not of the API does not. Nor does it that such a pod was removed and came again under its UID, and that its deadline began with that.
 */
function verdictIsForgotten(s: Scene, uid: string, life: Life, now: { reason: string; memories: number }): boolean {
  if (now.memories <= life.memories) return false;
  const own = OWN_VERDICTS.has(life.reason) || (life.phase === 'Failed' && life.reason === '' && !anyFailed(s, uid));
  return isOfApi(s, uid) ? own && !isKept(s, uid) : own || now.reason === DEADLINE_OVERRIDE.reason;
}

/** Within one life of a pod, which daemons' restarts do not end: a terminal phase is never left, restart counts never fall. */
export function livesOnlyGoForward(): Checker {
  const lives = new Map<string, Life>();
  const memoriesOf = new Map<string, number>();
  /** Pods, by node, of which an instance was cleared away that never ran: its place in the count was in itself alone. */
  const cleared = new Set<string>();
  const restartsOf = (e: StatusEntry): Map<string, number> =>
    // Init containers begin anew with a new sandbox, which removes every trace of the old ones (pod lifecycle 5.3).
    new Map((e.status.containerStatuses ?? []).map((c) => [c.name, c.restartCount ?? 0]));
  return {
    name: 'lives-only-go-forward',
    supervision(s, e) {
      if (e.kind === 'child.started' && e.path === 'node/pods/status') memoriesOf.set(s.node.name, (memoriesOf.get(s.node.name) ?? 0) + 1);
      return undefined;
    },
    arrived(s, call) {
      if (call.method !== 'RemoveContainer') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid, id } = targetOf(call, dump);
      if (dump.containers.find((c) => c.id === id)?.state === 'CONTAINER_CREATED') cleared.add(`${s.node.name} ${uid}`);
      return undefined;
    },
    statuses(s, statuses) {
      const memories = memoriesOf.get(s.node.name) ?? 0;
      for (const [uid, e] of statuses) {
        const key = `${s.node.name} ${uid}`;
        const life = lives.get(key);
        // Nothing is kept of a pod that its source has deleted: a source that names it after a restart gets it anew, and gone.
        const name = life?.name ?? podName(s, uid);
        if (s.operator.wanted.get(name ?? '')?.pod.fate === 'deleted') continue;
        // After a shutdown that was cancelled a static pod has another life under its UID.
        if (s.node.logind.shutdowns > 0 && !isOfApi(s, uid)) continue;
        const { phase = '', reason = '' } = e.status;
        const restarts = restartsOf(e);
        if (life === undefined || s.operator.touchedMs(life.name) > life.sinceMs) {
          if (name === undefined || s.monoMs < s.operator.touchedMs(name) + SLACK_MS || isLeaving(s, uid)) continue;
          lives.set(key, { phase, reason, restarts, name, sinceMs: s.monoMs, boots: s.node.boots, memories });
          continue;
        }
        // Only the runtime knows that a container of a Never pod had ended, once the daemon was restarted without an API server.
        const forgotten = timeWentBack(s, life.name) || s.nemesis.robbed.has(uid) || verdictIsForgotten(s, uid, life, { reason, memories });
        if (TERMINAL.has(life.phase) && phase !== life.phase && !forgotten)
          return `${s.node.name}: pod ${uid} (${life.name}) went from ${life.phase} to ${phase}`;
        // Only the earlier memory knew of a container that was removed from outside: what it counted for that is in no container.
        const robbed = s.nemesis.robbed.has(uid);
        const lost = (cleared.has(key) || robbed) && !isOfApi(s, uid) && memories > life.memories;
        const untold = lost || (robbed && s.node.boots > life.boots);
        for (const [container, was] of untold ? [] : life.restarts) {
          const now = restarts.get(container);
          if (now !== undefined && now < was)
            return `${s.node.name}: restart count of ${container} in pod ${uid} (${life.name}) fell from ${was} to ${now}`;
        }
        life.phase = phase;
        life.reason = reason;
        life.boots = s.node.boots;
        life.memories = memories;
        life.restarts = restarts;
      }
      return undefined;
    },
  };
}

/** A restart is counted up, never reused: what runs at a path has a newer incarnation than what ran there before. */
export function incarnationsGrow(): Checker {
  const seen = new Map<string, number>();
  return {
    name: 'incarnations-grow',
    supervision(s, e) {
      if (e.kind !== 'child.started' && e.kind !== 'child.woken') return undefined;
      const key = `${s.node.name} ${s.node.boots} ${e.path}`;
      const was = seen.get(key) ?? 0;
      seen.set(key, e.incarnation);
      return e.incarnation > was ? undefined : `${s.node.name}: ${e.path} started as incarnation ${e.incarnation} after ${was}`;
    },
  };
}

/** Whatever can make a node think that it is short of something. */
const SHORTAGES = ['pressure.memory.hit', 'pressure.disk.hit', 'disk.full.hit'];

/** What is said of one that wrote more than it may. */
const OWN_LIMIT = /exceeds the (total )?limit|exceeded its local ephemeral storage limit/;

/** By what its containers are said to hold. */
function writesTooMuch(s: Scene, uid: string): boolean {
  const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
  return Object.values(record?.pod.metadata.annotations ?? {}).some((text) => text.includes('writes='));
}

/** A pod is evicted, or not let in, only where something really ran short, and never one that is static. */
export function nobodyIsEvictedForNothing(): Checker {
  return {
    name: 'nobody-is-evicted-for-nothing',
    statuses(s, statuses) {
      for (const [uid, { status }] of statuses) {
        if (status.reason !== EVICTED) continue;
        if (OWN_LIMIT.test(status.message ?? '')) {
          const name = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.pod.metadata.name;
          if (name === undefined || writesTooMuch(s, uid)) continue;
          return `${s.node.name}: pod ${uid} (${name}) is evicted for what it wrote, and wrote too little: ${status.message ?? ''}`;
        }
        if (!SHORTAGES.some((kind) => (s.nemesis.counts.get(kind) ?? 0) > 0))
          return `${s.node.name}: pod ${uid} is ${status.phase ?? '-'}, ${status.message ?? ''}, and nothing was ever short`;
        const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
        if (record !== undefined && record.source !== 'api' && record.source !== 'runtime')
          return `${s.node.name}: pod ${uid} of source ${record.source} is evicted`;
      }
      return undefined;
    },
  };
}
