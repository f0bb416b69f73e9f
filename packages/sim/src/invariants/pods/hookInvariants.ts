/** Invariants about lifecycle hooks (pod lifecycle 5.13, 5.14): in which order, for how long, and what waits for them. */

import type { LifecycleHandler } from '@actorlet/kubelet/machines/kube/podTable.ts';
import { findContainer } from '@actorlet/kubelet/machines/pod/runtime/killOrder.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { CRI_ANNOTATIONS } from '@actorlet/kubelet/machines/wire/cri.ts';
import { HOOK_COMMAND } from '@actorlet/world/src/runtime/runtimeClient.ts';
import type { HookSeen } from '@actorlet/world/src/runtime/types.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, isEvicted, type Scene, targetOf } from '../checker.ts';
import { isRestartedWholly } from './restartInvariants.ts';

/** A hook's answer and the end of its grace may come in the same moment, and calls take their time. */
const TOGETHER_MS = 1_000;
/** Longest time after the grace in which a hook is given up: the node may be slow. */
const GIVEN_UP_MS = 60_000;
/** A link that was away for as long as the grace lets no hook begin; it takes a moment to come back. */
const TROUBLE_MS = 10_000;
const LINK = ['node', 'node/runtime', 'node/runtime/cri'];

function ofThisDaemon(s: Scene, containerId: string, which: string): HookSeen[] {
  return s.node.runtime.hooks.filter((h) => h.boot === s.node.boots && h.containerId === containerId && h.which === which);
}

/** The preStop command that counts at present; undefined where nobody can say, or it is no command. */
function preStopOf(
  s: Scene,
  uid: string,
  c: { name: string; annotations: Readonly<Record<string, string>> },
): LifecycleHandler | undefined {
  const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
  if (record === undefined || record.source === 'runtime') return undefined;
  const handler = findContainer(record.pod, c.name)?.lifecycle?.preStop;
  if (handler?.exec?.command?.[0] !== HOOK_COMMAND) return undefined;
  // A definition that changed meanwhile: its worker may have acted on either.
  return c.annotations[CRI_ANNOTATIONS.preStopHandler]?.includes(JSON.stringify(handler.exec.command)) === true ? handler : undefined;
}

/** A container is asked to stop when its preStop hook has ended, or when the grace is used up; without having run it never. */
export function hooksComeFirst(): Checker {
  const troubleAtMs = new Map<string, number>();
  return {
    name: 'hooks-come-first',
    supervision(s, e) {
      if (e.kind === 'child.exited' && LINK.includes(e.path)) troubleAtMs.set(s.node.name, s.monoMs);
      if (e.kind === 'transition' && e.path === 'node/runtime/cri' && !e.to.startsWith('ready')) troubleAtMs.set(s.node.name, s.monoMs);
      return undefined;
    },
    arrived(s, call) {
      if (call.method !== 'StopContainer') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid, id } = targetOf(call, dump);
      const c = dump.containers.find((one) => one.id === id);
      if (c?.state !== 'CONTAINER_RUNNING' || preStopOf(s, uid, c) === undefined) return undefined;
      const pod = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
      const graceSeconds = pod?.metadata.deletionGracePeriodSeconds ?? pod?.spec.terminationGracePeriodSeconds ?? 0;
      const box = dump.sandboxes.find((b) => b.id === c.sandboxId);
      // Deleted by force, evicted, or without any grace: nobody waits for a hook.
      if (graceSeconds === 0 || isRestartedWholly(s.node, uid)) return undefined;
      if (isEvicted(s.node, uid) || s.operator.deleted.has(manifestName(box?.name ?? '', s.node))) return undefined;
      // A shutdown of the machine gives what is left of its time; a stop that it began goes on after its end.
      if (s.node.logind.shutdowns > 0) return undefined;
      const hooks = ofThisDaemon(s, id, 'preStop');
      const who = `${s.node.name}: container ${id} (${c.name} of pod ${uid})`;
      const last = hooks.findLast((h) => h.endedMs === null) ?? hooks.at(-1);
      // With what was spent of the grace on it before, when the runtime was away too briefly for the link to say so.
      const sinceMs = hooks[hooks.findLastIndex((h, i) => i < hooks.length - 1 && !h.unheard) + 1]?.beganMs ?? 0;
      // One that still runs was given up, too: it runs on until its container ends.
      const cutMs = last !== undefined && (last.cancelled || last.endedMs === null) ? (last.endedMs ?? s.monoMs) - sinceMs : null;
      const troubled = s.monoMs - (troubleAtMs.get(s.node.name) ?? Number.NEGATIVE_INFINITY) < graceSeconds * 1_000 + TROUBLE_MS;
      if (troubled) return undefined;
      // The question spent so much of the grace on its way to the link; it may have been given up there.
      const lateMs = s.nemesis.lateMs(s.node.index, 'node/runtime/cri', s.monoMs - graceSeconds * 1_000 - TROUBLE_MS);
      if (last === undefined)
        return lateMs >= graceSeconds * 1_000 ? undefined : `${who} is asked to stop, and its preStop hook was not run`;
      return cutMs === null || cutMs + lateMs >= graceSeconds * 1_000 - TOGETHER_MS
        ? undefined
        : `${who} is asked to stop after its preStop hook was given up ${cutMs} ms after it began, of ${graceSeconds} s`;
    },
    beat(s) {
      const dump = s.node.runtime.hollow.dump();
      for (const hook of s.node.runtime.hooks) {
        if (hook.endedMs !== null || hook.boot !== s.node.boots || hook.which !== 'preStop') continue;
        const c = dump.containers.find((one) => one.id === hook.containerId);
        const grace = Number(c?.annotations[CRI_ANNOTATIONS.podTerminationGracePeriod] ?? Number.NaN);
        const overMs = s.monoMs - hook.beganMs - grace * 1_000;
        if (c?.state === 'CONTAINER_RUNNING' && overMs > GIVEN_UP_MS + 4 * Math.max(0, s.nemesis.slowUntilMs(s.node.index) - hook.beganMs))
          return `${s.node.name}: the preStop hook of container ${c.id} (${c.name} of pod ${c.podUid}) is waited for ${overMs} ms longer than its grace`;
      }
      return undefined;
    },
  };
}

/** Its definition has a postStart command, and is not one of several of its UID that its start may have been decided on. */
function postStartOf(s: Scene, uid: string, name: string): boolean {
  const record = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
  // A pod that goes begins no hook any more, also of a container that was just started.
  if (record === undefined || record.source === 'runtime' || !isWanted(record) || record.pod.metadata.deletionTimestamp) return false;
  if (record.worker?.phase === 'terminating') return false;
  const wanted = s.operator.wanted.get(manifestName(record.pod.metadata.name, s.node));
  if (wanted === undefined) return false;
  const settled = wanted.pod.rev === 0 || wanted.pod.uid === undefined || s.monoMs - wanted.sinceMs > GIVEN_UP_MS;
  return settled && findContainer(record.pod, name)?.lifecycle?.postStart?.exec?.command?.[0] === HOOK_COMMAND;
}

/** While its postStart hook runs a container does not count as running, and what waits for a sidecar waits for its hook, too (trap 46). */
export function hooksAreWaitedFor(): Checker {
  const underWay = (s: Scene): HookSeen[] =>
    s.node.runtime.hooks.filter((h) => h.which === 'postStart' && h.boot === s.node.boots && h.endedMs === null);
  /** Containers that the present workers of this daemon have asked to start, by node; true: and were told that they did. */
  const started = new Map<string, Map<string, boolean>>();
  const forget = (s: Scene): void => void started.delete(s.node.name);
  return {
    name: 'hooks-are-waited-for',
    supervision(s, e) {
      // The worker that started it has not run its hook, or the question was lost: nobody runs it any more.
      const lost = e.kind === 'child.exited' && (e.path.startsWith('node/pods') || LINK.includes(e.path));
      if (lost || (e.kind === 'transition' && e.path === 'node/runtime/cri' && !e.to.startsWith('ready'))) forget(s);
      return undefined;
    },
    exited: forget,
    settled(s, call, outcome) {
      if (call.method !== 'StartContainer' || outcome !== 'done') return;
      const { containerId } = call.req as { containerId: string };
      const own = started.get(s.node.name);
      // The asker may be gone by the time of the answer: then nobody runs the hook.
      if (own?.has(containerId) === true) own.set(containerId, true);
    },
    statuses(s, statuses) {
      for (const [uid, { status }] of statuses) {
        for (const c of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
          const id = c.containerID?.split('://')[1] ?? '';
          if (c.state.running === undefined || started.get(s.node.name)?.get(id) !== true) continue;
          started.get(s.node.name)?.delete(id);
          if (postStartOf(s, uid, c.name) && ofThisDaemon(s, id, 'postStart').length === 0)
            return `${s.node.name}: ${c.name} of pod ${uid} is said to run, and its postStart hook was not run (container ${id})`;
        }
      }
      for (const { containerId } of underWay(s)) {
        for (const [uid, { status }] of statuses) {
          const shown = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
          const early = shown.find((c) => c.containerID?.endsWith(containerId) === true && c.state.running !== undefined);
          if (early !== undefined)
            return `${s.node.name}: ${early.name} of pod ${uid} is said to run while its postStart hook runs (container ${containerId})`;
        }
      }
      return undefined;
    },
    arrived(s, call) {
      if (call.method === 'StartContainer') {
        const { containerId } = call.req as { containerId: string };
        started.set(s.node.name, (started.get(s.node.name) ?? new Map()).set(containerId, false));
      }
      // It is taken down again, for whatever reason, before its hook was begun.
      if (call.method === 'StopContainer') started.get(s.node.name)?.delete((call.req as { containerId: string }).containerId);
      if (call.method !== 'CreateContainer') return undefined;
      const dump = s.node.runtime.hollow.dump();
      const { uid } = targetOf(call, dump);
      const { config } = call.req as { config?: { metadata?: { name?: string; attempt?: number } } };
      const name = config?.metadata?.name ?? '';
      const side = underWay(s)
        .map((h) => dump.containers.find((c) => c.id === h.containerId))
        .find((c) => c?.podUid === uid && c.name === 'side' && c.attempt === 0);
      // The first of it: what began before a sidecar was started again goes on.
      if (side === undefined || name === 'side' || (config?.metadata?.attempt ?? 0) > 0) return undefined;
      return `${s.node.name}: ${name} of pod ${uid} is made while the postStart hook of its sidecar ${side.id} runs`;
    },
  };
}
