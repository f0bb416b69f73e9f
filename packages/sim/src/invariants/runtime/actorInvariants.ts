/** Invariants about supervision: who crashes, and when a supervisor gives up. */
import { EscalationError } from '@actorlet/kubelet/actors/supervision/errors.ts';
import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Checker, targetOf } from '../checker.ts';

/** Limits of `src/actors/tree.ts`, written down a second time on purpose: a changed limit is to be noticed. */
interface Limit {
  max: number;
  periodMs: number;
}
const LAYER: Limit = { max: 5, periodMs: 60_000 };
const LIMITS: Readonly<Record<string, Limit>> = {
  node: { max: 3, periodMs: 300_000 },
  'node/edge': { max: 20, periodMs: 60_000 },
  'node/pods': { max: 3, periodMs: 60_000 },
};
/** An actor of its own that crashes more often than this makes its supervisor give up, however few its siblings' crashes. */
const CHILD: Limit = { max: 5, periodMs: 60_000 };
/** Children of these are not restarted by their supervisor in groups: every crash counts at once. */
const EVERY_CRASH_COUNTS = new Set(['node/foundation', 'node/runtime', 'node/reclaim', 'node/pods/sources']);

/** No crash of an actor that nobody caused: an error exit is a fault of the node, whatever the weather. Giving up is not one. */
export function nothingCrashes(): Checker {
  return {
    name: 'nothing-crashes',
    supervision(s, e) {
      if (e.kind !== 'child.exited' || e.reason.kind !== 'error' || e.reason.error instanceof EscalationError) return undefined;
      return `${s.node.name}: ${e.path} crashed: ${e.reason.error.stack ?? e.reason.error.message}`;
    },
  };
}

/** A supervisor gives up when its children crash more often than its limit says, neither sooner nor later. */
export function supervisorsGiveUpInTime(): Checker {
  /** By node, boot and path of the supervisor: when which child crashed. */
  const crashes = new Map<string, { child: string; atMs: number }[]>();
  const over = new Map<string, number>();
  return {
    name: 'supervisors-give-up-in-time',
    supervision(s, e) {
      const run = `${s.node.name} ${s.node.boots} `;
      if (e.kind === 'child.exited') {
        const above = e.path.slice(0, Math.max(0, e.path.lastIndexOf('/')));
        if (above === '' || above === 'node/pods/workers') return undefined;
        if (e.reason.kind !== 'killed' && e.reason.kind !== 'error') {
          // The supervisor itself begins anew, or was stopped: its windows go with it.
          crashes.delete(`${run}${e.path}`);
          over.delete(`${run}${e.path}`);
          return undefined;
        }
        crashes.delete(`${run}${e.path}`);
        over.delete(`${run}${e.path}`);
        const { periodMs, max } = LIMITS[above] ?? LAYER;
        const list = [
          ...(crashes.get(`${run}${above}`) ?? []).filter((c) => c.atMs > s.monoMs - periodMs),
          { child: e.path, atMs: s.monoMs },
        ];
        crashes.set(`${run}${above}`, list);
        if (!EVERY_CRASH_COUNTS.has(above) || list.length <= max + 1) return undefined;
        const said = over.get(`${run}${above}`);
        return said === undefined
          ? `${s.node.name}: ${above} goes on after ${list.length} crashes of its children within ${periodMs / 1_000} s, its limit is ${max}`
          : undefined;
      }
      if (e.kind !== 'supervisor.escalated') return undefined;
      over.set(`${run}${e.path}`, s.monoMs);
      const { periodMs, max } = LIMITS[e.path] ?? LAYER;
      const list = (crashes.get(`${run}${e.path}`) ?? []).filter((c) => c.atMs >= s.monoMs - periodMs);
      const byChild = new Map<string, number>();
      for (const c of list) byChild.set(c.child, (byChild.get(c.child) ?? 0) + 1);
      if (list.length > max || [...byChild.values()].some((n) => n > CHILD.max)) return undefined;
      return `${s.node.name}: ${e.path} gave up after ${list.length} crashes of its children within ${periodMs / 1_000} s, its limit is ${max}`;
    },
    exited(s) {
      for (const map of [crashes, over]) for (const key of map.keys()) if (key.startsWith(`${s.node.name} `)) map.delete(key);
    },
  };
}

/** An incarnation that has ended takes no further step: each state is left for the next by the one actor that lives at its path. */
export function theDeadDoNotMove(): Checker {
  /** By node, boot and path: the state it was seen in last, null once it has ended. */
  const states = new Map<string, string | null>();
  return {
    name: 'the-dead-do-not-move',
    supervision(s, e) {
      const key = `${s.node.name} ${s.node.boots} ${'path' in e ? e.path : ''}`;
      if (e.kind === 'child.started') states.set(key, '');
      if (e.kind === 'child.woken') states.set(key, e.state);
      if (e.kind === 'child.exited' || e.kind === 'child.asleep') states.set(key, null);
      if (e.kind !== 'transition') return undefined;
      const was = states.get(key);
      states.set(key, e.to);
      if (was === undefined || was === e.from) return undefined;
      return `${s.node.name}: ${e.path} went from ${e.from} to ${e.to} when it ${was === null ? 'had ended' : `was ${was === '' ? 'starting' : was}`}`;
    },
    exited(s) {
      for (const key of states.keys()) if (key.startsWith(`${s.node.name} `)) states.delete(key);
    },
  };
}

const WORKERS = 'node/pods/workers/';
/** Calls that nobody else makes: the CPU manager and the garbage collection have some of their own for a pod that sleeps. */
const WORKERS_OWN: ReadonlySet<string> = new Set<CriMethod>(['RunPodSandbox', 'CreateContainer', 'StartContainer', 'StopContainer']);

/**
 * A sleeper has nothing to do, is woken once, and goes on in the state that it slept in: its first step comes from there, and is no
 * start.
 */
export function sleepersGoOn(): Checker {
  /** By node, boot and path: as it fell asleep; `woken` once it was. */
  const sleepers = new Map<string, { incarnation: number; state: string; woken: boolean }>();
  const inFlight = new Map<string, Set<unknown>>();
  const forget = (map: Map<string, unknown>, node: string): void => {
    for (const key of map.keys()) if (key.startsWith(`${node} `)) map.delete(key);
  };
  return {
    name: 'sleepers-go-on',
    arrived(s, call) {
      if (!WORKERS_OWN.has(call.method)) return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const key = `${s.node.name} ${call.boot} ${uid}`;
      inFlight.set(key, (inFlight.get(key) ?? new Set()).add(call));
      return undefined;
    },
    settled(_, call) {
      for (const [key, calls] of inFlight) if (calls.delete(call) && calls.size === 0) inFlight.delete(key);
    },
    supervision(s, e) {
      if (!('path' in e)) return undefined;
      const key = `${s.node.name} ${s.node.boots} ${e.path}`;
      const sleeper = sleepers.get(key);
      const who = `${s.node.name}: ${e.path}`;
      switch (e.kind) {
        case 'child.asleep': {
          sleepers.set(key, { incarnation: e.incarnation, state: e.state, woken: false });
          if (sleeper?.woken === false) return `${who} fell asleep twice`;
          if (!e.path.startsWith(WORKERS)) return undefined;
          if (e.state !== 'syncing.settled') return `${who} fell asleep in ${e.state}`;
          const calls = inFlight.get(`${s.node.name} ${s.node.boots} ${e.path.slice(WORKERS.length)}`);
          return calls === undefined ? undefined : `${who} fell asleep with ${calls.size} calls of the runtime in flight`;
        }
        case 'child.woken':
          if (sleeper === undefined || sleeper.woken) return `${who} was woken and did not sleep`;
          sleeper.woken = true;
          if (e.state === sleeper.state && e.incarnation === sleeper.incarnation + 1) return undefined;
          return `${who} slept in ${sleeper.state} and woke in ${e.state}, as ${e.incarnation} after ${sleeper.incarnation}`;
        case 'transition':
          sleepers.delete(key);
          return sleeper === undefined || e.event !== 'start' ? undefined : `${who} slept in ${sleeper.state} and began anew in ${e.to}`;
        case 'child.exited':
          // With a supervisor go those that slept below it.
          for (const other of sleepers.keys()) if (other === key || other.startsWith(`${key}/`)) sleepers.delete(other);
          return undefined;
        case 'child.started':
          return sleeper === undefined ? undefined : `${who} slept and was started anew`;
        default:
          return undefined;
      }
    },
    exited(s) {
      forget(sleepers, s.node.name);
      forget(inFlight, s.node.name);
    },
  };
}

/** `maxPods`, by default. */
const PODS_MAX = 110;
/** Bounds of mailboxes as their actors ask for them. */
const CAPACITY: Readonly<Record<string, number>> = {
  'node/foundation/checkpoint': 256,
  'node/foundation/telemetry': 4_096,
  'node/edge/admin': 16,
  'node/edge/healthz': 16,
  'node/edge/readOnly': 16,
  'node/runtime/cri': 8_192,
  'node/runtime/imagePuller': 4_096,
  'node/runtime/pleg': 4_096,
  'node/pods/status': 8_192,
  'node/pods/podManager': 8 * PODS_MAX + 256,
  'node/pods/workers': 4 * PODS_MAX + 64,
  'node/pods/config': 16,
  'node/reclaim/containerGc': 64,
  'node/reclaim/housekeeping': 64,
};
/** The bound is that of each lane. Data may fill its own; of messages that overtake it there are never more than these. */
const CONTROL_MAX = 64;
/** The kernel's own. */
const CAPACITY_DEFAULT = 1_024;

export function mailboxesAreBounded(): Checker {
  const look = (a: ActorState): string | undefined => {
    const max = CAPACITY[a.path] ?? CAPACITY_DEFAULT;
    if (a.mailbox !== undefined && a.mailbox.depthMax > max + CONTROL_MAX)
      return `mailbox of ${a.path} held ${a.mailbox.depthMax}, bound ${max}`;
    for (const c of a.children) {
      const found = look(c);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return {
    name: 'mailboxes-are-bounded',
    beat(s, state) {
      const found = look(state);
      return found === undefined ? undefined : `${s.node.name}: ${found}`;
    },
  };
}
