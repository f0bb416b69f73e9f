/** Invariants about who is started again: what its own policy and rules, or its pod's policy, say of the end it came to. */

import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { ALL_RESTARTING } from '@actorlet/kubelet/machines/pod/runtime/restartAll.ts';
import { isRefused, isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { HollowContainerDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { RESTARTS_ALL } from '../../nemesis/draws/node/restarts.ts';
import { type Checker, type Scene, targetOf } from '../checker.ts';

/** In words of its own: the node's are what is held against it. */
function startsAgain(container: Container, pod: Pod, exitCode: number): boolean {
  for (const { action, exitCodes } of container.restartPolicyRules ?? []) {
    const listed = new Set(exitCodes?.values).has(exitCode);
    if (action === 'Restart' && (exitCodes?.operator === 'In') === listed) return true;
  }
  switch (container.restartPolicy ?? pod.spec.restartPolicy ?? 'Always') {
    case 'Never':
      return false;
    case 'OnFailure':
      return exitCode !== 0;
    default:
      return true;
  }
}

/** A regular container that ended by itself is made anew in its sandbox only after an end that its policy and rules restart. */
export function endsAreHeeded(): Checker {
  /** Containers that were asked to stop: by a changed definition, a probe or a hook. They may begin anew whatever their policy says. */
  const asked = new Set<string>();
  return {
    name: 'ends-are-heeded',
    arrived(s, call) {
      const dump = s.node.runtime.hollow.dump();
      const { uid, id } = targetOf(call, dump);
      if (call.method === 'StopContainer') asked.add(`${s.node.name} ${id}`);
      if (call.method !== 'CreateContainer') return undefined;
      const { config, podSandboxId } = call.req as { config?: { metadata?: { name?: string } }; podSandboxId: string };
      const name = config?.metadata?.name ?? '';
      const pod = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
      const container = pod?.spec.containers.find((c) => c.name === name);
      if (pod === undefined || container === undefined) return undefined;
      const earlier = dump.containers.filter((c) => c.sandboxId === podSandboxId && c.name === name);
      const [newest] = earlier.sort((a, b) => b.attempt - a.attempt);
      if (newest?.state !== 'CONTAINER_EXITED' || newest.startedAtMs === 0 || asked.has(`${s.node.name} ${newest.id}`)) return undefined;
      return startsAgain(container, pod, newest.exitCode)
        ? undefined
        : `${s.node.name}: ${name} of pod ${uid} ended with ${newest.exitCode}, after which it is to stay so, and is made anew`;
    },
  };
}

/** A person asked for the restart of this pod when, or after, a container of it was made. */
export function isAskedFor({ node, nemesis }: Scene, uid: string, madeMs: number): boolean {
  return nemesis.restarts.some((one) => one.node === node.name && one.uid === uid && one.answeredMs >= madeMs);
}

/** Faults may hold it up; none lasts that long. */
const ASKED_MS_MAX = 10 * 60_000;

/** What a person was told to restart ends, unless the daemon that said so ends before it. */
export function askedRestartsHappen(): Checker {
  const fulfilled = new Set<object>();
  return {
    name: 'asked-restarts-happen',
    beat(s) {
      const late = s.nemesis.restarts.filter(
        (one) => !fulfilled.has(one) && one.node === s.node.name && one.boot === s.node.boots && s.monoMs > one.answeredMs + ASKED_MS_MAX,
      );
      const dump = late.length === 0 ? null : s.node.runtime.hollow.dump();
      for (const one of late) {
        const left = dump?.containers.find((c) => c.state === 'CONTAINER_RUNNING' && one.ends.includes(c.id));
        if (left !== undefined)
          return `${s.node.name}: ${left.name} of pod ${one.uid} was to restart at ${one.answeredMs} ms, and its instance ${left.id} still runs`;
        fulfilled.add(one);
      }
      return undefined;
    },
  };
}

const askedForAll = (c: HollowContainerDump): boolean => c.state === 'CONTAINER_EXITED' && c.exitCode === RESTARTS_ALL;

/**
 * A container of that pod ended so that all of its containers are stopped at once, without hooks, and removed; or its status still
 * says so: what was being started when that container was removed is taken away after it.
 */
export function isRestartedWholly(node: SimNode, uid: string): boolean {
  const status = node.daemon?.tree.registry.read(statusesView)?.value.get(uid)?.status;
  return (
    node.runtime.hollow.dump().containers.some((c) => c.podUid === uid && askedForAll(c)) ||
    status?.conditions?.some((c) => c.type === ALL_RESTARTING && c.status === 'True') === true
  );
}

/** What ended so that all containers of its pod restart is made again with all of them, and is the last that is taken away for that. */
export function allRestartTogether(): Checker {
  return {
    name: 'all-restart-together',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' && call.method !== 'RemoveContainer') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid, id } = targetOf(call, dump);
      const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
      if (record === undefined || !isWanted(record) || isRefused(record) || record.worker?.phase !== 'syncing') return undefined;
      const own = dump.containers.filter((c) => c.podUid === uid && !record.pod.spec.ephemeralContainers?.some((e) => e.name === c.name));
      if (call.method === 'CreateContainer') {
        const { podSandboxId, config } = call.req as { podSandboxId: string; config?: { metadata?: { name?: string } } };
        const name = config?.metadata?.name ?? '';
        const newest = own.filter((c) => c.name === name && c.sandboxId === podSandboxId).sort((a, b) => b.attempt - a.attempt)[0];
        return newest !== undefined && askedForAll(newest)
          ? `${s.node.name}: ${name} of pod ${uid} is made anew alone, and ended so that all containers restart`
          : undefined;
      }
      const gone = own.find((c) => c.id === id);
      // What was started after that end is new already. What was made late and never ran has nothing of the time before.
      const left = own.find((c) => !askedForAll(c) && c.startedAtMs > 0 && c.startedAtMs <= (gone?.finishedAtMs ?? 0));
      const newer = own.some((c) => c.name === gone?.name && c.attempt > gone.attempt);
      return gone === undefined || !askedForAll(gone) || newer || left === undefined
        ? undefined
        : `${s.node.name}: ${gone.name} of pod ${uid} ended so that all containers restart, and is removed before ${left.name}`;
    },
  };
}
