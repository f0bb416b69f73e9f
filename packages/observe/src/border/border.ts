/**
 * The border of a node whose kubelet is another program: nothing that changes anything leaves it. It fails closed: a port, or a
 * function of a port, that is not in the table is refused.
 */
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { UnexpectedAct } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Cgroups } from '@actorlet/kubelet/ports/machine/cgroups.ts';
import type { Observer } from '@actorlet/kubelet/ports/machine/observer.ts';
import type { Clock, Ports } from '@actorlet/kubelet/ports/ports.ts';
import { backsOffUntilMs } from '@actorlet/shown/src/observer/backOff.ts';
import { KubeBorder } from './api/kube.ts';
import { isCreating } from './api/podStatus.ts';
import { pullWords } from './api/shows.ts';
import { FileBorder } from './disk/files.ts';
import { csiBorder, mounterBorder } from './disk/mounts.ts';
import { Expectations } from './expectations.ts';
import { countActs } from './metrics.ts';
import { netBorder } from './net.ts';
import { CriBorder } from './runtime/cri.ts';
import { PORTS, type Verdict } from './table.ts';
import { untilShown } from './waiting.ts';

export interface ObservedOptions {
  /** Of the kubelet. */
  config: NodeConfig;
  /** Where this program keeps its own state. */
  stateDir: string;
  /** Of the machine, for each core. */
  load?: () => number;
}

/** Without a deadline of its own. */
const CGROUP_WAIT_MS = 60_000;

export interface Observed {
  ports: Ports;
  expectations: Expectations;
}

export function observedPorts(outside: Ports, { config, stateDir, load }: ObservedOptions): Observed {
  const { clock } = outside;
  const { rootDir } = config.flags;
  const expectations = new Expectations(clock, load);
  countActs(expectations, outside.metrics);
  const kube =
    outside.kube === undefined
      ? null
      : new KubeBorder(outside.kube, {
          ...{ clock, expectations, gates: config.config.featureGates },
          ...{ stateOf: (id) => cri.listings.stateOf(id), isRunning: (uid) => cri.listings.isRunning(uid) },
        });
  const podOf = (uid: string): string => podNamed(kube, uid);
  const cri: CriBorder = new CriBorder(outside.cri, {
    clock,
    expectations,
    pullFailure: (image, uid) => pullFailure(kube, image, uid),
    usersOf: (image, uid) => podsOf(kube, uid).flatMap(({ spec }) => usersOf(spec, image)),
    createFailure: (of) => wordsOf(statusOf(kube, of), 'CreateContainerError'),
    startFailure: (id) => wordsOf(statusOfId(kube, id), 'RunContainerError'),
    backsOffUntilMs: (of) => backsOffUntilMs(statusOf(kube, of)),
    isCreating: (uid) => podsOf(kube, uid).some((pod) => isCreating(pod.status)),
  });
  const files = new FileBorder(outside.fs, { clock, expectations, rootDir, stateDir, podOf });
  const mounts = { clock, expectations, rootDir, podOf, isStarted: (uid: string) => cri.listings.hasAny(uid) };
  const replaced: { readonly [P in keyof Ports]?: object } = {
    cri: { call: cri.call, hints: cri.hints },
    fs: files,
    net: netBorder(outside.net, { stateDir, podSource: config.config.staticPodURL }),
    ...(kube === null ? {} : { kube: { request: kube.request, watch: kube.watch, close: kube.close } }),
    ...(outside.mounter === undefined ? {} : { mounter: mounterBorder(outside.mounter, mounts) }),
    ...(outside.csi === undefined ? {} : { csi: csiBorder(outside.csi, { ...mounts, mounter: outside.mounter }) }),
    ...(outside.cgroups === undefined ? {} : { cgroups: cgroupBorder(outside.cgroups, { clock, expectations }) }),
    ...(outside.gzip === undefined ? {} : { gzip: { compress: (_: string, to: string) => files.writeFile(to, '') } }),
  };
  const ports: Record<string, unknown> = {};
  for (const [name, port] of Object.entries(outside) as [keyof Ports, object | undefined][]) {
    if (port === undefined) continue;
    const row = (PORTS as Readonly<Record<string, unknown>>)[name];
    if (row === 'absent' || row === undefined) continue;
    ports[name] = fenced(name, port, { row: row as Readonly<Record<string, Verdict>>, replaced: replaced[name] ?? {} });
  }
  ports.observer = {
    ledger: () => expectations.ledger(),
    watch: (changed: () => void) => expectations.watch(changed),
    pods: (names: ReadonlyMap<string, string>) => expectations.pods(names),
    unexpected: (acts: readonly UnexpectedAct[]) => expectations.unexpected(acts),
  } satisfies Observer;
  return { ports: ports as unknown as Ports, expectations };
}

/**
 * A port of which no function is reached that the table does not pass or replace. It is an object of its own, with the border's functions
 * alone: who goes by the prototypes of a port, as the recorder of inputs does, finds no other.
 */
function fenced<T extends object>(port: string, of: T, { row, replaced }: { row: Readonly<Record<string, Verdict>>; replaced: object }): T {
  const made: Record<string, unknown> = {};
  for (const name of membersOf(of)) {
    const own = Reflect.get(replaced, name) as unknown;
    const value = Reflect.get(of, name, of) as unknown;
    const verdict = Object.hasOwn(row, name) ? row[name] : undefined;
    if (typeof own === 'function') made[name] = own;
    else if (typeof value !== 'function')
      Object.defineProperty(made, name, { enumerable: true, get: () => dataOf(`${port}.${name}`, Reflect.get(of, name, of) as unknown) });
    else if (verdict === 'read' || verdict === 'own') made[name] = value.bind(of) as unknown;
    else made[name] = refusal(`${port}.${name}`);
  }
  return made as T;
}

/** Data of a port. What it can do is in no row of the table: an object among it has no function that is reached. */
function dataOf(what: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return fenced(what, value, { row: {}, replaced: {} });
}

/** Its own and those of its prototypes. */
function membersOf(of: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = of; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null)
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  return names;
}

function refusal(what: string): () => never {
  return () => {
    throw Object.assign(new Error(`${what} is refused: this node is only observed`), { code: 'EPERM' });
  };
}

function cgroupBorder(cgroups: Cgroups, o: { clock: Clock; expectations: Expectations }): Partial<Cgroups> {
  const until = async (path: string, what: string, look: () => Promise<true | undefined>): Promise<void> => {
    const expectation = o.expectations.expect({ kind: 'Cgroup', pod: '', uid: '', what: `${what} ${path}` });
    const { kind } = await untilShown(o.clock, { look, timeoutMs: CGROUP_WAIT_MS });
    if (kind === 'shown') return expectation.came();
    expectation.unanswered();
    throw Object.assign(new Error(`the kubelet has not ${what} ${path}`), { code: 'ETIMEDOUT' });
  };
  return {
    create: (path) => until(path, 'made the cgroup', async () => ((await cgroups.exists(path)) ? true : undefined)),
    remove: (path) => until(path, 'removed the cgroup', async () => ((await cgroups.exists(path)) ? undefined : true)),
    kill: (path) => until(path, 'ended the processes of', async () => ((await cgroups.pids(path)).length === 0 ? true : undefined)),
    // Values that another program writes are not judged.
    apply: async () => undefined,
  };
}

function podNamed(kube: KubeBorder | null, uid: string): string {
  const [pod] = podsOf(kube, uid);
  return pod === undefined ? '' : `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`;
}

/** That a pod is never to pull says nothing of the image. */
const PULL_FAILURES: readonly unknown[] = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName'];

/** What a pod's status says of an image that the kubelet cannot pull. */
function pullFailure(kube: KubeBorder | null, image: string, uid?: string): string | null {
  for (const pod of podsOf(kube, uid)) {
    const names = usersOf(pod.spec, image);
    const waiting = statusesOf([pod]).map((s) => (names.includes(String(s.name)) ? waitingOf(s) : {}));
    const found = waiting.find(({ reason }) => PULL_FAILURES.includes(reason));
    if (found !== undefined) return pullWords(String(found.message ?? found.reason));
  }
  return null;
}

function podsOf(kube: KubeBorder | null, uid?: string): KubeObject[] {
  return [...(kube?.seen.all('pods') ?? [])].filter(({ metadata }) => uid === undefined || metadata.uid === uid);
}
function statusesOf(pods: readonly KubeObject[]): readonly Readonly<Record<string, unknown>>[] {
  const lists = ({ status: s }: KubeObject) =>
    isRecord(s) ? [s.containerStatuses, s.initContainerStatuses, s.ephemeralContainerStatuses] : [];
  return pods.flatMap(lists).flatMap(listOf);
}

/** Containers that run an image, or have it as a volume. */
function usersOf(spec: unknown, image: string): string[] {
  if (!isRecord(spec)) return [];
  const volumes = listOf(spec.volumes).filter((v) => isRecord(v.image) && v.image.reference === image);
  const mounts = (c: Readonly<Record<string, unknown>>) => listOf(c.volumeMounts).some((m) => volumes.some((v) => v.name === m.name));
  const containers = [...listOf(spec.containers), ...listOf(spec.initContainers)];
  return containers.filter((c) => c.image === image || mounts(c)).map((c) => String(c.name));
}

/** What a pod's status says of one of its containers. */
function statusOf(kube: KubeBorder | null, { uid, name }: { uid: string; name: string }): Readonly<Record<string, unknown>> {
  return statusesOf(podsOf(kube, uid)).find((s) => s.name === name) ?? {};
}
function statusOfId(kube: KubeBorder | null, id: string): Readonly<Record<string, unknown>> {
  return statusesOf(podsOf(kube)).find(({ containerID: of }) => typeof of === 'string' && of.endsWith(`://${id}`)) ?? {};
}
function waitingOf({ state }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isRecord(state) && isRecord(state.waiting) ? state.waiting : {};
}
/** What a container that waits for this reason is said to wait for. */
function wordsOf(status: Readonly<Record<string, unknown>>, reason: string): string | null {
  const waiting = waitingOf(status);
  return waiting.reason === reason ? String(waiting.message ?? reason) : null;
}

function listOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isRecord) : [];
}
