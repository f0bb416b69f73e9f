/** Invariants about what pods share a node by: whose ids of the host are whose, and who has to make room for whom. */

import { CRITICAL_PRIORITY } from '@actorlet/kubelet/machines/pod/phase.ts';
import { PREEMPTING } from '@actorlet/kubelet/machines/pods/admission/preemption.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { userNamespaceClaims } from '@actorlet/kubelet/machines/reclaim/userNamespaces.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { type Checker, type Scene, targetOf } from '../checker.ts';

interface Asked {
  config?: {
    linux?: { securityContext?: { namespaceOptions?: { usernsOptions?: { mode?: string; uids?: readonly { hostId?: number }[] } } } };
  };
}

function records(s: Scene) {
  return s.node.daemon?.tree.registry.read(podsView)?.value.records;
}

const PODS = `${ROOT_DIR}/pods/`;
const { dir: CLAIMS } = userNamespaceClaims(ROOT_DIR);

/** A pod that asks for users of its own gets some, the same with each sandbox of one life, and no other pod that is there has them. */
export function usersAreNotShared(): Checker {
  /** First id by node and pod, as the newest sandbox was given it. */
  const given = new Map<string, number>();
  return {
    name: 'users-are-not-shared',
    arrived(s, call) {
      if (call.method !== 'RunPodSandbox') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid } = targetOf(call, dump);
      const users = (call.req as Asked).config?.linux?.securityContext?.namespaceOptions?.usernsOptions;
      const wants = records(s)?.get(uid)?.pod.spec.hostUsers === false;
      const who = `${s.node.name}: the sandbox of pod ${uid}`;
      if (users === undefined) return wants ? `${who} gets the users of the host` : undefined;
      const first = users.uids?.[0]?.hostId ?? 0;
      if (users.mode !== 'POD' || first === 0) return `${who} gets ids of the host: ${JSON.stringify(users)}`;
      const before = given.get(`${s.node.name} ${uid}`);
      // In a sandbox that was stopped nobody runs under its ids any more; nor does anybody in one that came after its
      // creation was given up and its pod was gone: it is empty, and taken down when it is seen.
      const isUsed = (of: string): boolean =>
        records(s)?.get(of)?.worker?.phase === 'syncing' || dump.containers.some((c) => c.podUid === of && c.state === 'CONTAINER_RUNNING');
      const held = dump.sandboxes.filter(
        (b) => b.ready && given.get(`${s.node.name} ${b.uid}`) === first && b.uid !== uid && isUsed(b.uid),
      );
      if (held[0] !== undefined) return `${who} gets ids from ${first} on, which pod ${held[0].uid} has`;
      if (before !== undefined && before !== first) return `${who} gets ids from ${first} on, an earlier one had them from ${before} on`;
      given.set(`${s.node.name} ${uid}`, first);
      return undefined;
    },
    /** They go with the pod's directory, also where that was lost with the power, and every sandbox with it. */
    removing({ node }, path) {
      const [uid = '', part = ''] = path.startsWith(PODS) ? path.slice(PODS.length).split('/') : [];
      if (part === '' || part === 'userns') given.delete(`${node.name} ${uid}`);
      const owner = path.startsWith(`${CLAIMS}/`) ? node.disk.linkAt(path)?.split('/').at(-1) : undefined;
      if (owner !== undefined && !node.disk.has(`${PODS}${owner}`)) given.delete(`${node.name} ${owner}`);
      return undefined;
    },
  };
}

/** A pod that no node has room for asks for this or more: some are drawn, also with several such containers. */
const NOWHERE_MILLI = 64_000;
const fitsNowhere = (message: string): boolean => Number(/requested: (\d+), /.exec(message)?.[1] ?? 0) >= NOWHERE_MILLI;
/** Refusals for want of room, and the ends of those that made some. */
const FOR_ROOM = [PREEMPTING, 'OutOfcpu'];

/** A pod goes, or is not let in, for want of room only where a critical pod wants or takes it, or pods ask for whole CPUs, and no critical pod has to go. */
export function nobodyGoesForNothing(): Checker {
  /** Nodes that critical pods of the API came to. */
  const crowded = new Set<string>();
  return {
    name: 'nobody-goes-for-nothing',
    object(s, { resource, object }) {
      if (resource === 'pods' && isRecord(object.spec) && Number(object.spec.priority ?? 0) >= CRITICAL_PRIORITY) crowded.add(s.node.name);
      return undefined;
    },
    statuses(s, statuses) {
      const known = records(s);
      for (const [uid, { status }] of statuses) {
        if (!FOR_ROOM.includes(status.reason ?? '') || fitsNowhere(status.message ?? '')) continue;
        if (!crowded.has(s.node.name) && s.node.tuning.cpus === null)
          return `${s.node.name}: pod ${uid} is ${status.phase ?? '-'}, ${status.reason ?? ''}, and no critical pod was ever here`;
        const record = known?.get(uid);
        if (status.reason !== PREEMPTING || record === undefined || record.source === 'runtime') continue;
        if (record.source !== 'api' || (record.pod.spec.priority ?? 0) >= CRITICAL_PRIORITY)
          return `${s.node.name}: pod ${uid} of source ${record.source} had to make room`;
      }
      return undefined;
    },
  };
}
