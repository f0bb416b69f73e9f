/**
 * Pods for the simulation: manifests drawn from the seed, with lives for the hollow runtime and what is to be expected of
 * each. Only fields that this node honours.
 */

import { HOLLOW_ANNOTATION } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { HOOK_COMMAND } from '@actorlet/world/src/runtime/runtimeClient.ts';
import { drawRestarts, drawWholeRestarts } from '../draws/node/restarts.ts';
import { type PodDraw, withDraw } from '../draws/pods/podDraw.ts';
import { drawStorage } from '../draws/pods/storage.ts';
import { drawUsers } from '../draws/pods/users.ts';
import { drawHugePages, drawImageVolume } from '../draws/pods/volumes.ts';
import type { PodFate, SimPod } from './subjects.ts';

/** What any pod may have beside what {@link drawPod} draws itself, by the name that its chances are forked by. */
const DRAWS: Readonly<Record<string, PodDraw>> = {
  users: drawUsers,
  storage: drawStorage,
  restarts: drawRestarts,
  'image-volume': drawImageVolume,
  'huge-pages': drawHugePages,
  'whole-restarts': drawWholeRestarts,
};

/** What a container does that no node has room for. */
const TOO_LARGE = 'run=1ms,exit=1';
/** Sleep of a hook, in seconds. */
const LONG_SLEEP_S = 8;
const GRACES = [0, 1, 2, 5, 30] as const;

interface Drawn {
  rng: SimRng;
  lives: Record<string, string>;
  images: Record<string, string>;
}

/** A life that ends up running for good. */
function steadyLife({ rng }: Drawn): string {
  const start = rng.chance(0.3) ? `startDelay=${rng.int(3_000)}ms,` : '';
  const term = rng.chance(0.25) ? ',term=ignore' : rng.chance(0.4) ? `,term=${rng.int(2_000)}ms` : '';
  const good = `${start}run=forever${term}`;
  if (rng.chance(0.1)) return `startError=no such file;${good}`;
  if (rng.chance(0.15)) return `${start}run=${200 + rng.int(4_000)}ms,exit=1;${good}`;
  return good;
}
function finiteLife({ rng }: Drawn, exit: number): string {
  const once = `run=${200 + rng.int(15_000)}ms,exit=${exit}`;
  return exit === 0 && rng.chance(0.3) ? `run=${200 + rng.int(2_000)}ms,exit=${1 + rng.int(3)};${once}` : once;
}

function container(d: Drawn, name: string, life: string): object {
  const { rng, lives } = d;
  const image = `app-${rng.int(6)}:1`;
  d.images[name] = image;
  const slowExec = rng.chance(0.1) ? ',execDelay=2s' : '';
  lives[`${HOLLOW_ANNOTATION}.${name}`] =
    slowExec === ''
      ? life
      : life
          .split(';')
          .map((l) => l + slowExec)
          .join(';');
  return {
    name,
    image,
    ...(rng.chance(0.2) ? { imagePullPolicy: 'Always' } : {}),
    ...(life === TOO_LARGE ? { resources: { requests: { cpu: '64' } } } : {}),
  };
}

/** `uid` when the pod is to keep it through edits; `full`: with every volume and probe there is. */
export function drawPod(rng: SimRng, o: { name: string; rev: number; uid?: string; full?: boolean }): SimPod {
  const d: Drawn = { rng, lives: {}, images: {} };
  const fate: PodFate = rng.chance(0.7) ? 'steady' : rng.chance(0.6) ? 'ends' : 'loops';
  const restartPolicy = fate === 'ends' ? (rng.chance(0.5) ? 'OnFailure' : 'Never') : 'Always';
  const names = Array.from({ length: 1 + rng.int(3) }, (_, i) => `c${i}`);
  const containers = names.map((name, i) => {
    const finite = fate === 'ends' || (fate === 'loops' && i === 0);
    const exit = restartPolicy === 'OnFailure' ? 0 : rng.int(2);
    const refused = fate === 'ends' && i === 0 && rng.chance(0.08);
    return container(d, name, refused ? TOO_LARGE : finite ? finiteLife(d, exit) : steadyLife(d));
  });
  const sidecars = rng.chance(0.15) ? ['side'] : [];
  const inits = Array.from({ length: rng.chance(0.3) ? 1 + rng.int(2) : 0 }, (_, i) => `i${i}`);
  const initContainers = [
    ...sidecars.map((name) => ({ ...container(d, name, 'run=forever'), restartPolicy: 'Always' })),
    ...inits.map((name) => {
      const good = `run=${rng.int(1_500)}ms,exit=0`;
      return container(d, name, restartPolicy !== 'Never' && rng.chance(0.3) ? `run=300ms,exit=1;${good}` : good);
    }),
  ];
  const slow = [
    ...(rng.chance(0.2) ? [`sandboxDelay=${rng.int(3_000)}ms`] : []),
    ...(rng.chance(0.2) ? [`pullDelay=${rng.int(8_000)}ms`] : []),
  ].join(',');
  const annotations = { ...(slow === '' ? {} : { [HOLLOW_ANNOTATION]: slow }), ...d.lives };
  const { name, rev, uid } = o;
  const volumes = drawVolumes(rng.fork('volumes'), o.full === true);
  const mounts = drawMounts(rng.fork('sub-paths'), volumes, o.full === true);
  const graceSeconds = rng.pick(GRACES) ?? 30;
  const hooked = hooks(rng.fork('hooks'), { graceSeconds, steady: fate === 'steady', full: o.full === true });
  const probes = fate === 'steady' ? drawProbes(rng.fork('probes'), o.full === true) : {};
  const drawn: SimPod = {
    name,
    rev,
    uid,
    fate,
    restartPolicy,
    containers: [...names, ...sidecars],
    images: d.images,
    manifest: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { rev: String(rev) }, annotations, ...(uid === undefined ? {} : { uid }) },
      spec: {
        restartPolicy,
        terminationGracePeriodSeconds: graceSeconds,
        ...(fate === 'ends' && rng.chance(0.2) ? { activeDeadlineSeconds: 1 + rng.int(12) } : {}),
        ...(rng.chance(0.1) ? { hostNetwork: true } : {}),
        ...(initContainers.length === 0 ? {} : { initContainers: initContainers.map((c) => ('restartPolicy' in c ? hooked(c) : c)) }),
        containers: containers.map((c, i) =>
          hooked(i > 0 ? c : { ...c, ...probes, ...(mounts.length === 0 ? {} : { env: [WHO], volumeMounts: mounts }) }),
        ),
        ...(volumes.length === 0 ? {} : { volumes }),
      },
    },
  };
  return Object.entries(DRAWS).reduce((pod, [draw, of]) => withDraw(of, rng.fork(draw), pod, o.full), drawn);
}

/** Hooks of every kind; some take longer than any grace, some fail in a container's first instance and in no other. */
function hooks(rng: SimRng, of: { graceSeconds: number; steady: boolean; full: boolean }): (container: object) => object {
  const command = (which: string, ms: number, fails: boolean): object => ({
    exec: { command: [HOOK_COMMAND, which, String(ms), fails ? 'first' : 'never'] },
  });
  const long = rng.fork('long-sleep');
  // One as long as its pod's grace outlasts what a deletion leaves of that.
  const sleep = (): object => {
    const short = Math.min(of.graceSeconds, 1 + rng.int(2));
    return { sleep: { seconds: long.chance(0.3) ? Math.max(short, Math.min(of.graceSeconds, LONG_SLEEP_S)) : short } };
  };
  const preStop = (): object => {
    if (rng.chance(0.15)) return sleep();
    if (rng.chance(0.15)) return { httpGet: { port: 80, path: '/bye' } };
    return command('preStop', rng.chance(0.2) ? 3_600_000 : rng.int(4_000), false);
  };
  const postStart = (): object => (rng.chance(0.2) ? sleep() : command('postStart', rng.int(3_000), rng.chance(0.25)));
  return (container) => {
    const some = (): boolean => rng.chance(0.2) || of.full;
    const lifecycle = { ...(some() ? { preStop: preStop() } : {}), ...(some() && of.steady ? { postStart: postStart() } : {}) };
    return Object.keys(lifecycle).length === 0 ? container : { ...container, lifecycle };
  };
}

function drawVolumes(rng: SimRng, full: boolean): { name: string; [source: string]: unknown }[] {
  const labels = { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } };
  const some = (): boolean => rng.chance(0.2) || full;
  const host = rng.fork('host').chance(0.1) || full;
  return [
    ...(some() ? [{ name: 'scratch', emptyDir: {} }] : []),
    ...(some() ? [{ name: 'memory', emptyDir: { medium: 'Memory' } }] : []),
    ...(some() ? [{ name: 'labels', downwardAPI: { items: [labels] } }] : []),
    ...(host ? [{ name: 'host', hostPath: { path: '/srv/data', type: 'DirectoryOrCreate' } }] : []),
  ];
}

/** What an expression for a part of a volume draws on. */
const WHO = { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } };
/** Parts of each volume that can be asked for; the last is a file there, through the links of the atomic writer. */
const PARTS: Readonly<Record<string, readonly object[]>> = {
  scratch: [{ subPath: 'deep/er' }, { subPathExpr: 'of/$(WHO)' }],
  memory: [{ subPath: 'part' }],
  host: [{ subPathExpr: '$(WHO)' }],
  labels: [{ subPath: 'labels' }],
};

/** Mounts one of them twice, perhaps: in full and in part. */
function drawMounts(rng: SimRng, volumes: readonly { name: string }[], full: boolean): { name: string; mountPath: string }[] {
  return volumes.flatMap(({ name }) => {
    const part = rng.pick(PARTS[name] ?? []);
    const whole = { name, mountPath: `/${name}` };
    if (part === undefined || !(full || rng.chance(0.5))) return [whole];
    const partial = { name, mountPath: `/part-of-${name}`, ...part };
    return rng.chance(0.5) ? [whole, partial] : [partial];
  });
}

/** Probes that are answered as the world has it; a container that fails them is replaced, and well again later. */
function drawProbes(rng: SimRng, full: boolean): object {
  if (rng.chance(0.75) && !full) return {};
  const port = { port: 80 };
  const handler = (): object => (rng.chance(0.5) ? { tcpSocket: port } : { httpGet: { ...port, path: '/healthz' } });
  const probe = (over: object): object => ({ ...handler(), periodSeconds: 1, ...over });
  // The runtime runs commands, and what it cannot run says nothing of a container: only readiness hears of it.
  const command = { exec: { command: ['check'] }, periodSeconds: 1, timeoutSeconds: 2 };
  return {
    ...(rng.chance(0.4) ? { startupProbe: probe({ failureThreshold: 30 }) } : {}),
    ...(rng.chance(0.7) || full ? { readinessProbe: rng.chance(0.5) || full ? command : probe({}) } : {}),
    ...(rng.chance(0.6) || full ? { livenessProbe: probe({ failureThreshold: 3, initialDelaySeconds: rng.int(3) }) } : {}),
  };
}

/**
 * The same pod with other images: an edit in place. Nothing else changes, since the hollow runtime reads lives from the
 * annotations its sandbox was made with.
 */
export function editImages(rng: SimRng, pod: SimPod, rev: number): SimPod {
  const images: Record<string, string> = {};
  for (const name of Object.keys(pod.images)) images[name] = rng.chance(0.5) ? `app-${rng.int(6)}:1` : (pod.images[name] ?? '');
  const copy = structuredClone(pod.manifest) as {
    metadata: { labels: Record<string, string> };
    spec: { containers: { name: string; image: string }[]; initContainers?: { name: string; image: string }[] };
  };
  copy.metadata.labels.rev = String(rev);
  for (const c of [...copy.spec.containers, ...(copy.spec.initContainers ?? [])]) c.image = images[c.name] ?? c.image;
  return { ...pod, rev, images, manifest: copy };
}

/** The same pod with another label and nothing else: no container has to change for it. */
export function relabel(pod: SimPod, rev: number): SimPod {
  const manifest = structuredClone(pod.manifest) as { metadata: { labels: Record<string, string> } };
  manifest.metadata.labels.rev = String(rev);
  return { ...pod, rev, manifest };
}

/** The same pod with a deletion timestamp: its source asks for its end, and still names it. */
export function deletePod(pod: SimPod, graceSeconds: number): SimPod {
  const manifest = structuredClone(pod.manifest) as { metadata: { deletionTimestamp?: string; deletionGracePeriodSeconds?: number } };
  manifest.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  manifest.metadata.deletionGracePeriodSeconds = graceSeconds;
  return { ...pod, fate: 'deleted', manifest };
}
