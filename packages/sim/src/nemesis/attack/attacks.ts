/**
 * Weather that is aimed: trouble of one kind around one pod with an own UID, while its definition is changed and in the end
 * taken away. Faults that come one by one seldom meet a pod in the few moments in which these would.
 */
import { MANIFESTS, ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';
import { Attack, beats, CHANCE, WORKERS } from './attack.ts';
import { OBJECT_ATTACK, RARE_ATTACKS } from './rareAttacks.ts';

/** Each begins about `at`, with half a minute before it that the pod may need to run. */
const ATTACKS: Readonly<Record<string, (f: Attack, at: number) => void>> = {
  /** Without a network no sandbox is made. */
  network(f, at) {
    f.begin(at - 8_000);
    f.add(at, { kind: 'network.down', ...CHANCE, select: {} }, 25_000);
    for (const t of beats(f.rng, { from: at + 4_000, count: 3, everyMs: 3_000 })) f.stopSandbox(t);
    for (const t of beats(f.rng, { from: at + 9_000, count: 4, everyMs: 2_500 })) f.edit(t);
    f.end(at + f.rng.between(18_000, 24_000));
  },
  /** A sandbox that does not stay. */
  unrest(f, at) {
    f.begin(at - 8_000);
    for (const t of beats(f.rng, { from: at, count: 30, everyMs: 900 })) f.stopSandbox(t);
    for (const t of beats(f.rng, { from: at + 6_000, count: 2, everyMs: 8_000 })) f.relabel(t);
    f.end(at + f.rng.between(14_000, 19_000));
  },
  /** A sandbox that cannot be made. */
  refusal(f, at) {
    f.begin(at - 8_000);
    f.calls(at, 20_000, { methods: ['RunPodSandbox'], action: 'error' });
    f.stopSandbox(at + 100);
    for (const t of beats(f.rng, { from: at + 2_000, count: 3, everyMs: 4_000 })) f.edit(t);
    f.end(at + f.rng.between(10_000, 18_000));
  },
  /** Ends that are announced before they are shown, each beside a change. */
  ends(f, at) {
    f.begin(at - 8_000, { containersMin: 3 });
    // Later on they wait for their back-off, and nothing of this pod ends.
    const soon = f.rng.chance(0.6);
    for (const t of beats(f.rng, { from: at, count: soon ? 1 : 8, everyMs: 1_500 })) {
      f.exit(t);
      f.exit(t + 20);
      if (soon) f.end(t + f.rng.between(-40, 200), 30);
      else f.relabel(t + f.rng.between(-60, 200));
    }
  },
  /** Changes of a pod that waits for its back-off. */
  loops(f, at) {
    f.begin(at - 8_000, { fate: 'loops' });
    for (const t of beats(f.rng, { from: at, count: 6, everyMs: 3_000 })) f.edit(t);
    f.end(at + 20_000);
  },
  /** Volumes that take their time, and some that cannot be set up at all. */
  volumes(f, at) {
    const select = {
      ops: ['write', 'rename', 'remove'] as const,
      paths: [`${ROOT_DIR}/pods/*/volumes/**`, `${ROOT_DIR}/pods/*/plugins/**`],
    };
    if (f.rng.chance(0.5)) f.disk(at, 12_000, { ...select, probability: f.rng.between(0.2, 1) });
    if (f.rng.chance(0.7)) f.add(at, { kind: 'disk.slow', ...CHANCE, select, delayMs: f.rng.int(9_000) }, 25_000);
    f.begin(at + f.rng.between(-6_000, 500), { full: true });
    for (const t of beats(f.rng, { from: at + 1_000, count: 6, everyMs: 2_000 })) f.rng.chance(0.5) ? f.edit(t) : f.relabel(t);
    if (f.rng.chance(0.5)) f.kill(at + f.rng.between(1_000, 8_000), 'node/services/volumes');
    const last = at + f.rng.between(3_000, 12_000);
    if (f.rng.chance(0.5)) f.end(last);
    else {
      f.remove(last);
      f.begin(last + f.rng.between(100, 9_000), { full: true });
    }
  },
  /** Volumes that cannot be taken down, while who takes them down dies over it. */
  busy(f, at) {
    f.begin(at - 8_000, { full: true });
    const paths = [`${ROOT_DIR}/pods/*/volumes/**`, `${ROOT_DIR}/pods/*/plugins/**`];
    f.disk(at, 18_000, { ops: ['remove'], paths, probability: f.rng.pick([0.6, 1] as const) ?? 1 });
    if (f.rng.chance(0.5)) f.add(at, { kind: 'disk.slow', ...CHANCE, select: { ops: ['remove'], paths }, delayMs: 5_000 }, 18_000);
    if (f.rng.chance(0.5)) f.end(at + 1_000, 2);
    else {
      f.remove(at + 1_000);
      if (f.rng.chance(0.6)) f.begin(at + f.rng.between(2_000, 8_000), { full: true });
    }
    for (const t of beats(f.rng, { from: at + 4_000, count: 3, everyMs: 5_000 })) f.kill(t, 'node/services/volumes');
    if (f.rng.chance(0.3)) f.die(at + f.rng.between(6_000, 16_000), 100);
  },
  /** Stops that fail. */
  stops(f, at) {
    f.begin(at - 8_000);
    f.calls(at, 14_000, { methods: ['StopContainer', 'StopPodSandbox'], action: 'error', probability: 0.7 });
    for (const t of beats(f.rng, { from: at + 100, count: 5, everyMs: 2_500 })) f.edit(t);
    for (const t of beats(f.rng, { from: at + 1_000, count: 5, everyMs: 3_000 })) f.stopSandbox(t);
    f.end(at + f.rng.between(8_000, 13_000));
  },
  /** Looks at the runtime that fail between one act and the next. */
  blindness(f, at) {
    f.begin(at - 8_000);
    f.add(
      at,
      {
        kind: 'cri',
        probability: 0.35,
        select: { methods: ['ListPodSandbox', 'ListContainers', 'PodSandboxStatus', 'ContainerStatus'] },
        action: 'error',
        delayMs: 0,
        code: 13,
      },
      20_000,
    );
    for (const t of beats(f.rng, { from: at + 200, count: 25, everyMs: 1_000 })) f.stopSandbox(t);
    for (const t of beats(f.rng, { from: at + 400, count: 10, everyMs: 2_000 })) f.exit(t);
    f.end(at + 19_000);
  },
  /**
   * What is dead is collected, which takes long; workers wait for it, before they begin, before a sandbox is replaced and
   * before they stop: and the link to the runtime dies over it.
   */
  takeover(f, at) {
    f.begin(at - 8_000, { containersMin: 2 });
    f.sibling(at - 6_000, at + 200);
    for (const t of beats(f.rng, { from: at - 5_000, count: 5, everyMs: 1_200 })) f.stopSandbox(t);
    f.calls(at, 30_000, { methods: ['RemoveContainer', 'RemovePodSandbox'], action: 'delay', delayMs: 6_000 });
    // A worker that was killed comes back after 1 s, then 2 s.
    const kill = (t: number, times: number) => {
      f.kill(t, WORKERS, true);
      f.exit(t + 1_000 * times + f.rng.between(200, 1_500));
      f.kill(t + 1_000 * times + f.rng.between(300, 2_000), 'node/runtime/cri');
    };
    const lose = (t: number, act: (at: number) => void) => {
      act(t);
      f.kill(t + f.rng.between(50, 1_500), 'node/runtime/cri');
    };
    const what = f.rng.int(3);
    if (what === 0) for (const n of [1, 2]) kill(at + n * 4_000 - 1_500, n);
    if (what === 1) for (const n of [1, 2, 3]) lose(at + n * 3_000, (t) => f.stopSandbox(t));
    if (what === 2) lose(at + f.rng.between(1_500, 6_000), (t) => (f.rng.chance(0.5) ? f.end(t, 30) : f.remove(t)));
  },
  /** The directory of manifests comes and goes. */
  manifests(f, at) {
    f.begin(at - 5_000);
    for (const t of beats(f.rng, { from: at, count: 3, everyMs: 7_000 })) {
      if (f.rng.chance(0.3)) f.add(t, { kind: 'manifests.swap' });
      else f.add(t, { kind: 'manifests.away' }, Math.round(f.rng.chance(0.5) ? f.rng.between(20, 1_500) : f.rng.between(1_500, 6_000)));
      if (f.rng.chance(0.4)) f.die(t + f.rng.between(0, 500), 100);
    }
  },
  /** It cannot be read, and watches of it end. */
  unreadable(f, at) {
    f.begin(at - 5_000);
    f.add(at, { kind: 'disk.error', ...CHANCE, select: { ops: ['read'], paths: [MANIFESTS] }, code: 'EACCES' }, 15_000);
    for (const t of beats(f.rng, { from: at + 100, count: 5, everyMs: 3_500 })) f.add(t, { kind: 'watch.break', ...CHANCE, select: {} });
    if (f.rng.chance(0.5)) f.die(at + 60, 100);
  },
  /** A daemon that boots over a runtime that is away, with a pod that finds no room; and one that is told to stop before it is up. */
  boots(f, at) {
    f.begin(at - 5_000);
    f.add(at, { kind: 'runtime.down', ...CHANCE, select: {} }, 9_000);
    f.die(at + 100, 0);
    f.add(at + 10_000, { kind: 'disk.slow', ...CHANCE, select: { paths: [`${ROOT_DIR}/actorlet/**`] }, delayMs: 4_000 }, 12_000);
    for (const t of beats(f.rng, { from: at + 10_500, count: 3, everyMs: 5_000 })) {
      f.die(t, 0);
      f.add(t + f.rng.between(50, 2_500), { kind: 'node.stop', ...CHANCE, select: {}, downMs: 100 });
    }
  },
  /** Events of things that cannot be looked up. */
  unknownContainers(f, at) {
    f.add(
      at,
      {
        kind: 'cri',
        probability: 0.8,
        select: { methods: ['ContainerStatus', 'PodSandboxStatus'] },
        action: 'error',
        delayMs: 0,
        code: 13,
      },
      14_000,
    );
    f.begin(at + 200, { containersMin: 3 });
    for (const t of beats(f.rng, { from: at + 500, count: 5, everyMs: 3_000 })) f.stopSandbox(t);
    for (const t of beats(f.rng, { from: at + 500, count: 30, everyMs: 500 })) f.exit(t);
    for (const t of beats(f.rng, { from: at + 500, count: 70, everyMs: 150 })) f.add(t, { kind: 'ask.listing' });
  },
  /** A layer that gave up and waits, on a node that is told to stop. */
  parked(f, at) {
    for (const t of beats(f.rng, { from: at, count: 60, everyMs: 500 })) f.kill(t, 'node/edge/healthz');
    f.add(at + f.rng.between(20_000, 26_000), { kind: 'node.stop', ...CHANCE, select: {}, downMs: 100 });
  },
  /** Questions of somebody who may ask for something and never did. */
  questions(f, at) {
    f.begin(at - 8_000);
    f.calls(at, 20_000, { methods: ['StopContainer'], action: 'delay', delayMs: 3_000 });
    for (const t of beats(f.rng, { from: at, count: 10, everyMs: 800 })) f.exit(t);
    for (const t of beats(f.rng, { from: at, count: 25, everyMs: 500 })) f.add(t, { kind: 'ask.listing' });
    f.add(at + 4_000, { kind: 'ask.flood' });
    f.end(at + 9_000, 30);
    for (const t of beats(f.rng, { from: at + 9_200, count: 4, everyMs: 1_000 })) f.add(t, { kind: 'ask.hurry' });
  },
  /** Probes that fail, and some that are answered by nobody. */
  sickness(f, at) {
    f.begin(at - 8_000, { full: true });
    f.calls(at, 25_000, { methods: ['ExecSync'], action: 'error', probability: 0.4 });
    f.calls(at, 25_000, { methods: ['StopContainer'], action: 'delay', delayMs: 4_000 });
    for (const t of beats(f.rng, { from: at, count: 3, everyMs: 9_000 })) {
      f.add(t, { kind: 'probes.fail' }, Math.round(f.rng.between(3_000, 7_000)));
      f.kill(t + f.rng.between(3_000, 6_500), 'node/services/probes');
    }
    for (const t of beats(f.rng, { from: at + 500, count: 4, everyMs: 4_000 })) f.exit(t);
    // What is known of it comes late: a container is replaced before anybody looked at its end.
    const late = { actors: ['node/services/probes'] };
    f.add(at - 1_000, { kind: 'mailbox', probability: 0.9, action: 'delay', delayMs: 2_500, select: late }, 8_000);
    f.exit(at - 500);
  },
};

/** What they aim at is rarely hit. */
const OFTEN = ['ends', 'takeover', 'volumes', 'busy', 'takeover', 'unknownContainers', 'busy', 'sickness'] as const;

/** For nodes of a cluster. */
const CLUSTER_ATTACKS: readonly ((f: Attack, at: number) => void)[] = [
  /** The API server is away when a daemon begins, and comes back. */
  (f, at) => {
    f.begin(at - 6_000);
    const refusing = { kind: 'api.call', ...CHANCE, select: {}, action: 'error', delayMs: 0, status: 503 } as const;
    for (const t of beats(f.rng, { from: at, count: 2, everyMs: 14_000 })) {
      f.add(t, f.rng.chance(0.5) ? refusing : { kind: 'api.partition', ...CHANCE, select: {} }, Math.round(f.rng.between(3_000, 14_000)));
      f.die(t + f.rng.between(50, 1_500), 100);
    }
    f.add(at + 12_000, { kind: 'history.compact' });
  },
  /** It answers some and not others; somebody asks about it. */
  (f, at) => {
    const call = { kind: 'api.call', delayMs: 4_000, status: 500 } as const;
    f.begin(at - 6_000);
    f.add(at, { ...call, probability: 1, select: { verbs: ['get'] }, action: 'delay' }, 18_000);
    f.add(at, { ...call, probability: 0.5, select: { verbs: ['patch', 'update', 'create'] }, action: 'lost-without-effect' }, 18_000);
    for (const t of beats(f.rng, { from: at, count: 20, everyMs: 1_400 })) f.add(t, { kind: 'ask.api' });
    for (const t of beats(f.rng, { from: at + 500, count: 5, everyMs: 3_000 })) f.exit(t);
  },
  /** Events that it does not take, lists that are older than what was seen. */
  (f, at) => {
    const call = { kind: 'api.call', probability: 1, action: 'error', delayMs: 0 } as const;
    f.begin(at - 6_000);
    f.add(at, { ...call, select: { resources: ['events'] }, status: 500 }, 20_000);
    f.add(at + 2_000, { kind: 'api.watch', delayMs: 0, ...CHANCE, select: { resources: ['pods'] }, action: 'close' }, 6_000);
    f.add(at + 2_000, { ...call, select: { verbs: ['watch'], resources: ['pods'] }, status: 410 }, 6_000);
    f.add(at + 2_000, { kind: 'history.behind' }, 6_000);
    for (const t of beats(f.rng, { from: at + 500, count: 40, everyMs: 600 })) f.add(t, { kind: 'ask.api' });
    for (const t of beats(f.rng, { from: at + 500, count: 6, everyMs: 2_000 })) f.exit(t);
  },
  /** Its writers die over what they have to write. */
  (f, at) => {
    f.begin(at - 8_000);
    f.add(
      at,
      { kind: 'api.call', probability: 0.8, select: { resources: ['pods', 'pods/status'] }, action: 'error', delayMs: 0, status: 503 },
      15_000,
    );
    f.rng.chance(0.5) ? f.end(at + 500, 2) : f.remove(at + 500);
    for (const t of beats(f.rng, { from: at + 4_000, count: 3, everyMs: 4_000 }))
      f.kill(t, f.rng.chance(0.6) ? 'node/api/podWriters' : 'node/api/*');
  },
];

/** Drawn once more, beside the others, since a few hundred seeds would else not bring about all that they aim at. */
const AGAIN = ['ends', 'takeover', 'volumes', 'loops', 'stops', 'sickness', 'unrest', 'blindness'] as const;
const ONCE_MORE = 0.6;
const OBJECTS = 0.5;

/** One to three of them on a node, from about eight seconds after the faults begin; often one more, and one about objects of the API. */
export function attacks(rng: SimRng, o: { spanMs: number; node: number; api: boolean }, add: Add): void {
  const kinds = [
    ...Object.values(ATTACKS),
    ...OFTEN.flatMap((name) => ATTACKS[name] ?? []),
    ...(o.api ? [...CLUSTER_ATTACKS, ...CLUSTER_ATTACKS] : []),
  ];
  const open = (mine: SimRng, i: number, kind: ((f: Attack, at: number) => void) | undefined): void => {
    const uid = `00000000-0000-4000-8000-${String(o.node).padStart(4, '0')}${String(90_000_000 + i)}`;
    const place = { spanMs: o.spanMs, node: o.node, name: `f${i}`, uid };
    const attack = new Attack(mine, { ...place, add: (at, a, forMs) => add(Math.max(0, at), a, forMs) });
    kind?.(attack, 8_000 + mine.next() * Math.max(0, o.spanMs - 28_000));
  };
  const count = Math.min(rng.pick([1, 2, 2, 3] as const) ?? 1, Math.ceil(o.spanMs / 20_000));
  for (let i = 0; i < count; i++) {
    const mine = rng.fork(`front-${i}`);
    open(mine, i, mine.pick(kinds));
  }
  const more = rng.fork('once-more');
  if (more.chance(ONCE_MORE)) open(more, 8, more.pick([...RARE_ATTACKS, ...AGAIN.flatMap((name) => ATTACKS[name] ?? [])]));
  const objects = rng.fork('objects');
  if (o.api && objects.chance(OBJECTS)) open(objects, 9, OBJECT_ATTACK);
}
