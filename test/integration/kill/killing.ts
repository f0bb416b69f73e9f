/** Killing an actor in a chosen state and judging what came after: against what was before, and against a run without the kill. */
import { expect } from 'vitest';
import type { ActorState } from '../../../src/actors/supervision/types.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { isUp } from '../../../src/machines/supervision/actorState.ts';
import { pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

type Listed = Omit<Pod, 'kind' | 'apiVersion'>;

export interface KillCase {
  /** `MACHINE STATE`, as the coverage list names it; `MACHINE` where it has no states. */
  covers: string;
  /** Whom to kill. */
  path: string | ((h: VirtualNode) => string);
  options?: VirtualNodeOptions;
  /** Drives the node there. */
  arrange?(h: VirtualNode): Promise<void>;
  /** What must hold at the kill. Default: the actor's state is the one in `covers`. */
  at?(h: VirtualNode): boolean;
  /** What else lets go of what held the state open: before it, all is {@link heal healed}. */
  release?(h: VirtualNode): void;
  /** The subject has come to rest. */
  rests?(h: VirtualNode): boolean;
  restsWithinMs?: number;
  /** Cases of one story differ only in whom they kill: they share the run without the kill. Default: a story of its own. */
  story?: string;
  /** Errors in the log that belong to the story. */
  errors?: RegExp;
}

/** Cases that have this in common. */
export function sharing<C extends Partial<KillCase>>(
  common: C,
  cases: readonly (Omit<KillCase, keyof C> & Partial<KillCase>)[],
): KillCase[] {
  return cases.map((c) => ({ ...common, ...c }) as KillCase);
}

/** Nothing that a story put in the way is in the way any more: everything around the node answers at once, and rightly. */
export function heal(h: VirtualNode): void {
  const [atOnce, never] = [() => 0, () => undefined];
  Object.assign(h.faults, { latencyMs: {}, fault: never, deaf: false, away: false, hintsRefused: undefined });
  h.runtime.setCondition('NetworkReady', true, '');
  Object.assign(h.fs, { delayMs: atOnce, failing: never, watchRefused: undefined });
  Object.assign(h.mounts.trouble, { delayMs: atOnce, failing: never });
  Object.assign(h.cgroups, { delayMs: atOnce, failing: () => null });
  Object.assign(h.iptables, { stuck: false, refused: '' });
  Object.assign(h.logind, { callMs: 5, reachable: true });
  h.net.serve = () => Promise.resolve();
  Object.assign(h.probes, { answer: () => 200, afterMs: 1 });
  Object.assign(h.kube, { initialEvents: 'send', progress: true });
  Object.assign(h.kube.trouble, { verdict: () => ({ delayMs: 0 }), line: () => 'pass', down: false });
  for (const driver of h.drivers.sockets.values()) driver.down = false;
  Object.assign(h.drivers, { latencyMs: () => 1, answerMs: atOnce, fault: never });
  Object.assign(h.devices, { latencyMs: () => 1, bindError: undefined });
  Object.assign(h.dra, { latencyMs: () => 1, fault: never });
}

/** Healthy pods that must not notice anything. */
export const BYSTANDERS: Record<string, object> = {
  web: pod('web'),
  full: pod('full', {
    lives: { 'init-0': 'run=100ms' },
    inits: [{}, { restartPolicy: 'Always' }],
    spec: {
      containers: [
        { name: 'main', image: 'busybox:1' },
        { name: 'second', image: 'busybox:2' },
      ],
    },
  }),
};

export function allActors(root: ActorState): ActorState[] {
  return [root, ...root.children.flatMap(allActors)];
}

/** Names with their lifecycle of what neither runs nor sleeps. */
export function notRunning(h: VirtualNode): string[] {
  return allActors(h.tree.state())
    .filter((a) => !isUp(a))
    .map((a) => `${a.path} ${a.lifecycle}`);
}

/** Pods that are wanted and not at their end, and have nobody who looks after them. */
export function workerless(h: VirtualNode): string[] {
  const workers = new Set(h.actor('node/pods/workers')?.children.map((c) => c.path.split('/').at(-1)));
  return h
    .pods()
    .filter((p) => !/Succeeded|Failed/.test(p.status?.phase ?? '') && !workers.has(p.metadata.uid))
    .map((p) => p.metadata.name);
}

export async function bystandersUp(h: VirtualNode): Promise<void> {
  await h.until('the bystanders run', () => h.running('web').length === 1 && h.running('full').length === 3);
  await h.until('their status says so', () => ['web', 'full'].every((n) => h.phase(n) === 'Running' && ready(h, n)));
}
function ready(h: VirtualNode, name: string): boolean {
  return (h.status(name)?.status.containerStatuses ?? []).every((c) => c.ready);
}

/** Times that a restarted actor may put anew: when podConfig first saw a pod, since when a condition holds, when the pod started. */
function withoutMovingTimes(p: Listed): unknown {
  const { annotations, ...metadata } = p.metadata;
  const { 'kubernetes.io/config.seen': _seen, ...kept } = annotations ?? {};
  const { startTime: _start, ...status } = p.status ?? {};
  return {
    ...p,
    metadata: { ...metadata, annotations: kept },
    status: { ...status, conditions: status.conditions?.map(({ lastTransitionTime: _t, ...c }) => c) },
  };
}
/** What two runs of the same story have in common: everything but ids, addresses and times. */
function withoutIdentities(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutIdentities);
  if (typeof value !== 'object' || value === null) return value;
  const gone = new Set([
    'containerID',
    'imageID',
    'startedAt',
    'finishedAt',
    'podIP',
    'podIPs',
    'ip',
    'uid',
    'lastTransitionTime',
    'startTime',
  ]);
  return Object.fromEntries(Object.entries(value).flatMap(([k, v]) => (gone.has(k) || v === undefined ? [] : [[k, withoutIdentities(v)]])));
}

export interface Picture {
  pods: Map<string, Listed>;
  /** Ids of running containers by pod and name. */
  running: Map<string, string>;
}
export function picture(h: VirtualNode): Picture {
  const names = new Map(h.runtime.dump().sandboxes.map((s) => [s.id, s.name]));
  return {
    pods: new Map(h.pods().map((p) => [p.metadata.name, structuredClone(p)])),
    running: new Map(h.running().map((c) => [`${names.get(c.sandboxId)} ${c.name}`, c.id])),
  };
}
const BYSTANDER = /^(web|full)-n1( |$)/;

/** The state in `covers`. */
export function stateOf({ covers }: KillCase): string {
  const space = covers.indexOf(' ');
  return space < 0 ? '' : covers.slice(space + 1);
}

/** A node with the bystanders, driven to where the case is about to kill. `before`: what ran before that. */
export async function arranged(c: KillCase): Promise<{ h: VirtualNode; path: string; before: Picture }> {
  const h = await virtualNode({ ...c.options, manifests: { ...BYSTANDERS, ...c.options?.manifests } });
  try {
    await bystandersUp(h);
    const before = picture(h);
    await c.arrange?.(h);
    const path = typeof c.path === 'string' ? c.path : c.path(h);
    const state = stateOf(c);
    const there = () => (c.at === undefined ? h.state(path) === state : c.at(h));
    await h.until(`${path} is ${state} (now: ${h.state(path)})`, there, 120_000);
    return { h, path, before };
  } catch (error) {
    await h[Symbol.asyncDispose]();
    throw error;
  }
}

/** Who sees the runs without a kill. */
export interface Observer {
  options: VirtualNodeOptions;
  /** The node is where another run is killed, or at rest after it. */
  look(): void;
}

interface Play {
  before: Picture;
  atKill: Picture;
  after: Picture;
}

async function play(c: KillCase, { kill, look }: { kill: boolean; look?: () => void }): Promise<Play> {
  const { h, path, before } = await arranged(c);
  try {
    look?.();
    const atKill = picture(h);
    const incarnation = h.actor(path)?.incarnation ?? 0;
    if (kill) {
      expect(h.kill(path), `there is a ${path} to kill`).toBe(true);
      await h.settle();
      expect(h.events.some((e) => e.kind === 'child.exited' && e.path === path && e.reason.kind === 'killed')).toBe(true);
    }
    heal(h);
    c.release?.(h);
    await h
      .until('every actor runs', () => notRunning(h).length === 0, 120_000)
      .catch((error: unknown) => {
        throw new Error(`${error instanceof Error ? error.message : error}: ${notRunning(h).join(', ')}`);
      });
    if (kill) {
      const now = h.actor(path);
      if (now !== undefined) expect(now.incarnation, `${path} is a later incarnation`).toBeGreaterThan(incarnation);
    }
    await h.until('the subject rests', () => c.rests?.(h) ?? true, c.restsWithinMs ?? 120_000);
    look?.();
    await h.advance(20_000);
    expect(notRunning(h)).toEqual([]);
    expect(workerless(h), 'pods without a worker').toEqual([]);
    expect(h.violations).toEqual([]);
    const crashes = h.events.flatMap((e) =>
      e.kind === 'child.exited' && e.reason.kind === 'error' ? [`${e.path}: ${e.reason.error.message}`] : [],
    );
    expect(crashes, 'nothing crashed by itself').toEqual([]);
    const refused = h.lines.filter((l) => l.level === 'error').map((l) => `${l.msg} ${JSON.stringify(l.fields)}`);
    const unexpected = refused.filter(
      (l) => !/static pod|server:|the container runtime does not answer/.test(l) && c.errors?.test(l) !== true,
    );
    if (unexpected.length > 0) throw new Error(`errors were logged: ${unexpected.join('; ')}`);
    return { before, atKill, after: picture(h) };
  } finally {
    await h[Symbol.asyncDispose]();
  }
}

/** Plays a case without and with the kill. Cases of one story share the run without it. */
export interface Judge {
  withoutKill(c: KillCase): Promise<unknown>;
  /** Compares both runs. */
  killed(c: KillCase): Promise<void>;
}

export function createJudge(observer?: Observer): Judge {
  const controls = new Map<string, Promise<Play>>();
  const withoutKill = (c: KillCase): Promise<Play> => {
    const story = c.story ?? c.covers;
    const options = { ...c.options, ...observer?.options };
    const control = controls.get(story) ?? play({ ...c, options }, { kill: false, ...(observer && { look: () => observer.look() }) });
    controls.set(story, control);
    return control;
  };
  return { withoutKill, killed: async (c) => judge(c, await withoutKill(c)) };
}

async function judge(c: KillCase, control: Play): Promise<void> {
  const killed = await play(c, { kill: true });
  // The bystanders: exactly as they were.
  for (const [name, p] of killed.before.pods) {
    if (!BYSTANDER.test(name)) continue;
    const after = killed.after.pods.get(name);
    expect(after === undefined ? undefined : withoutMovingTimes(after), `${name} in /pods`).toEqual(withoutMovingTimes(p));
  }
  for (const [key, id] of killed.before.running)
    if (BYSTANDER.test(key)) expect(killed.after.running.get(key), `the container of ${key}`).toBe(id);
  // What ran at the kill and would have gone on running without it goes on running.
  for (const [key, id] of killed.atKill.running) {
    const untouched = control.after.running.get(key) !== undefined && control.after.running.get(key) === control.atKill.running.get(key);
    if (untouched) expect(killed.after.running.get(key), `the container of ${key}`).toBe(id);
  }
  // Everything ends as it does without the kill: states, reasons, restart counts.
  const shape = (pods: Picture['pods']) => Object.fromEntries([...pods].map(([name, p]) => [name, withoutIdentities(p.status)]));
  expect(shape(killed.after.pods)).toEqual(shape(control.after.pods));
  expect([...killed.after.running.keys()].sort()).toEqual([...control.after.running.keys()].sort());
}
