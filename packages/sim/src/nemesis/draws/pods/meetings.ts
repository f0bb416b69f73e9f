/**
 * Two things at one moment that single faults bring together in a few seeds of a thousand: each is aimed at here, so that
 * some seeds of a hundred have it. Drawn last and apart: no other draw moves for one.
 */

import { CRITICAL_PRIORITY } from '@actorlet/kubelet/machines/pod/phase.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { Attack, beats, CHANCE } from '../../attack/attack.ts';
import type { Add } from '../../entries.ts';
import { drawPod } from '../../workload/pods.ts';
import type { SimPod } from '../../workload/subjects.ts';
import type { DrawnManifest } from './podDraw.ts';

/** What a node has of what meetings are about. */
export interface Place {
  spanMs: number;
  node: number;
  /** Pods that the seed draws for it. */
  pods: number;
  api: boolean;
  evicts: boolean;
  /** Its API is served; with certificates of its cluster. */
  edge: boolean;
  serving: boolean;
  oneManifest: boolean;
}
interface Meeting {
  chance: number;
  on(o: Place): boolean;
  /** `at`: begins about then, with ten seconds before it and half a minute behind it. */
  draw(f: Attack, at: number, o: Place): void;
}

const VOLUMES = [`${ROOT_DIR}/pods/*/volumes/**`, `${ROOT_DIR}/pods/*/plugins/**`];
/** Names of its pods in the API, and of the one with a UID of its own. */
const ASKING = 'ma';
const OTHER = 'mo';
const WHOLE = 'mw';
const OWN = 'mf';
const TRIES_MAX = 40;

/** A pod for the API whose containers run for good. */
function steady(rng: SimRng, name: string, change: (spec: DrawnManifest['spec']) => void): SimPod {
  const draw = (i: number) => drawPod(rng.fork(`${name}-${i}`), { name, rev: 0 });
  let pod = draw(0);
  for (let i = 1; i < TRIES_MAX && pod.fate !== 'steady'; i++) pod = draw(i);
  const manifest = structuredClone(pod.manifest) as DrawnManifest;
  change(manifest.spec);
  return { ...pod, manifest };
}
/** In half of the seeds the pod as a whole asks for it, too. */
function asking(f: Attack, at: number, cpu: string): void {
  const whole = f.rng.fork('whole').chance(0.5);
  const pod = steady(f.rng, ASKING, (spec) => {
    for (const c of spec.containers.slice(0, 1)) c.resources = { ...c.resources, requests: { cpu } };
    if (whole) spec.resources = { requests: { cpu } };
  });
  f.add(at, { kind: 'pod.put', pod, source: 'api' });
}
function limited(f: Attack, at: number): void {
  const pod = steady(f.rng, ASKING, (spec) => {
    for (const c of spec.containers) c.resources = { ...c.resources, limits: { 'ephemeral-storage': '1Gi' } };
  });
  // Whatever it was drawn to write is within that.
  f.add(at, { kind: 'pod.put', pod: { ...pod, writesTooMuch: false }, source: 'api' });
}
function everywhere(f: Attack, at: number, forMs: number, o: { methods: readonly CriMethod[]; delayMs?: number }): void {
  const { methods, delayMs } = o;
  const action = delayMs === undefined ? 'error' : 'delay';
  f.add(at, { kind: 'cri', ...CHANCE, select: { methods }, action, delayMs: delayMs ?? 0, code: 13 }, forMs);
}

const MEETINGS: Readonly<Record<string, Meeting>> = {
  /** Resources that the runtime does not set, or whose use it does not tell, while others are asked for. */
  'resizes-fail': {
    chance: 0.2,
    on: (o) => o.api,
    draw(f, at) {
      const resize = (t: number, what: 'less' | 'more' | 'most'): void =>
        f.add(t, { kind: 'pod.meddle', name: ASKING, what: `resize.${what}` });
      asking(f, at - 9_000, '200m');
      resize(at - 500, 'more');
      everywhere(f, at, 5_000, { methods: ['UpdateContainerResources'] });
      resize(at + 200, 'most');
      resize(at + f.rng.between(2_500, 4_500), 'more');
      const why = f.rng.int(3);
      if (why !== 0) everywhere(f, at + 8_000, 4_000, { methods: ['ContainerStats'] });
      if (why !== 1) f.add(at + (why === 0 ? 8_000 : 12_000), { kind: 'figures.away' }, 4_000);
      resize(at + 8_200, 'less');
      resize(at + f.rng.between(18_000, 22_000), 'more');
    },
  },
  /** A change of resources that nobody has room for, and a pod that others have to make room for. */
  'resize-and-critical': {
    chance: 0.15,
    on: (o) => o.api,
    draw(f, at) {
      asking(f, at - 9_000, '250m');
      f.add(at, { kind: 'pod.meddle', name: ASKING, what: 'resize.never' });
      const pod = steady(f.rng, OTHER, (spec) => {
        spec.priority = CRITICAL_PRIORITY;
        for (const c of spec.containers.slice(0, 1)) c.resources = { ...c.resources, requests: { cpu: '3800m' } };
      });
      f.add(at + f.rng.between(500, 6_000), { kind: 'pod.put', pod, source: 'api' });
    },
  },
  /** A node that is said to be at another address, while it cannot say otherwise and asks for a certificate. */
  addresses: {
    chance: 0.4,
    on: (o) => o.serving,
    draw(f, at) {
      const call = { kind: 'api.call', probability: 1, action: 'error', delayMs: 0, status: 500 } as const;
      const requests = { resources: ['certificatesigningrequests'] };
      for (const t of [at, at + 14_000]) {
        const held = f.rng.chance(0.7);
        const forMs = Math.round(f.rng.between(1_500, 8_000));
        if (held) f.add(t, { ...call, select: { verbs: ['patch', 'update'], resources: ['nodes/status'] } }, forMs);
        if (f.rng.chance(0.5)) f.add(t, { ...call, select: { verbs: ['create'], ...requests } }, forMs);
        else f.add(t, { kind: 'api.watch', delayMs: 0, ...CHANCE, select: requests, action: 'close' }, forMs + 4_000);
        f.add(t + 100, { kind: 'node.moved' });
        for (const asked of [t + 200, t + forMs + 100, t + forMs + 900]) f.add(asked, { kind: 'ask.api' });
      }
    },
  },
  /** Certificates are looked at while they are looked at. */
  'certificates-twice': {
    chance: 0.15,
    on: (o) => o.edge,
    draw(f, at) {
      for (const t of beats(f.rng, { from: at, count: 3, everyMs: 6_000 })) f.add(t, { kind: 'ask.certificates' });
    },
  },
  /** A victim that does not come to its end. */
  'long-end': {
    chance: 0.25,
    on: (o) => o.evicts && o.api,
    draw(f, at) {
      asking(f, at - 9_000, '10m');
      everywhere(f, at, 45_000, { methods: ['StopContainer', 'StopPodSandbox'], delayMs: 40_000 });
      f.add(at, { kind: 'pressure.memory', ...CHANCE, select: {}, availableBytes: 10 * 1024 ** 2 }, 45_000);
    },
  },
  /** What pods wrote cannot be told when they are first held to it. */
  'limits-untold': {
    chance: 0.25,
    on: (o) => o.evicts && o.api,
    draw(f, at) {
      limited(f, at - 9_000);
      everywhere(f, at, 8_000, { methods: ['ListContainerStats'] });
      f.kill(at + 500, 'node/reclaim/eviction');
    },
  },
  /** A pod comes back while nobody but the volume manager minds what it left; that takes long, or cannot be taken down. */
  'volumes-left': {
    chance: 0.1,
    on: () => true,
    draw(f, at) {
      f.begin(at - 9_000, { full: true });
      f.die(at, 2_000);
      f.remove(at + 300);
      for (const t of beats(f.rng, { from: at + 200, count: 3, everyMs: 400 })) f.stopSandbox(t);
      f.add(at, { kind: 'disk.slow', ...CHANCE, select: { ops: ['remove'], paths: VOLUMES }, delayMs: 6_000 }, 14_000);
      if (f.rng.chance(0.5)) f.disk(at, 14_000, { ops: ['remove'], paths: VOLUMES });
      f.begin(at + f.rng.between(4_500, 10_000), { full: true });
    },
  },
  /** The one manifest is not there when it is looked for, and then it is. */
  'manifest-comes': {
    chance: 0.7,
    on: (o) => o.oneManifest,
    draw(f, at, o) {
      // One file at most is looked for: whose pod it is just now is the seed's doing.
      for (let i = 0; i < o.pods; i++) f.remove(at - 4_000, `p${i}`);
      f.kill(at - 2_000, 'node/pods/sources/file');
      f.begin(at);
    },
  },
  /** A pod that stays asks for other resources as a whole, again and again; among them for more than there is. */
  'whole-resizes': {
    chance: 0.1,
    on: (o) => o.api,
    draw(f, at) {
      const pod = steady(f.rng, WHOLE, (spec) => {
        for (const c of spec.containers.slice(0, 1)) c.resources = { ...c.resources, requests: { cpu: '50m' } };
        spec.resources = { requests: { cpu: '200m' } };
      });
      f.add(at - 9_000, { kind: 'pod.put', pod, source: 'api' });
      const kinds = ['resize.more', 'resize.less', 'resize.never', 'resize.most'] as const;
      for (const t of beats(f.rng, { from: at, count: 5, everyMs: 5_000 }))
        f.add(t, { kind: 'pod.meddle', name: WHOLE, what: f.rng.pick(kinds) ?? 'resize.more' });
      if (f.rng.chance(0.5)) f.add(at + 28_000, { kind: 'pod.meddle', name: WHOLE, what: 'resize.never' });
    },
  },
};

/** None or several on a node, in the midst of what else is drawn for it. */
export function meetings(rng: SimRng, o: Place, add: Add): void {
  for (const [i, [name, { chance, on, draw }]] of Object.entries(MEETINGS).entries()) {
    const mine = rng.fork(name);
    if (!on(o) || !mine.chance(chance)) continue;
    const uid = `00000000-0000-4000-8000-${String(o.node).padStart(4, '0')}${String(93_000_000 + i)}`;
    const place = { spanMs: o.spanMs, node: o.node, name: `${OWN}${i}`, uid };
    const attack = new Attack(mine, { ...place, add: (at, a, forMs) => add(Math.max(0, at), a, forMs) });
    draw(attack, 10_000 + mine.next() * Math.max(0, o.spanMs - 35_000), o);
  }
}
