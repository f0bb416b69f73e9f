/**
 * The border of a node whose kubelet is another program: nothing that changes anything leaves it. It fails closed: a port, or a
 * function of a port, that is not in the table is refused.
 */
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { UnexpectedAct } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
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
  expectations.count(outside.metrics);
  const kube =
    outside.kube === undefined
      ? null
      : new KubeBorder(outside.kube, { clock, expectations, stateOf: (id) => cri.listings.stateOf(id), gates: config.config.featureGates });
  const podOf = (uid: string): string => podNamed(kube, uid);
  const cri: CriBorder = new CriBorder(outside.cri, {
    clock,
    expectations,
    pullFailure: (image) => pullFailure(kube, image),
    createFailure: (of) => createFailure(kube, of),
    startFailure: (id) => startFailure(kube, id),
    backsOffUntilMs: (of) => backsOffUntilMs(statusOf(kube, of)),
    isCreating: (uid) => [...(kube?.seen.all('pods') ?? [])].some((pod) => pod.metadata.uid === uid && isCreating(pod.status)),
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
  for (const { metadata } of kube?.seen.all('pods') ?? []) if (metadata.uid === uid) return `${metadata.namespace ?? ''}/${metadata.name}`;
  return '';
}

const PULL_FAILURES: readonly unknown[] = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'];

/** What a pod's status says of an image that the kubelet cannot pull. */
function pullFailure(kube: KubeBorder | null, image: string): string | null {
  for (const { status, spec } of kube?.seen.all('pods') ?? []) {
    if (!isRecord(status) || !isRecord(spec)) continue;
    const containers = listOf(spec.containers).concat(listOf(spec.initContainers));
    const names = containers.filter((c) => c.image === image).map((c) => c.name);
    for (const s of listOf(status.containerStatuses).concat(listOf(status.initContainerStatuses))) {
      const waiting = isRecord(s.state) && isRecord(s.state.waiting) ? s.state.waiting : {};
      if (names.includes(s.name) && PULL_FAILURES.includes(waiting.reason)) return pullWords(String(waiting.message ?? waiting.reason));
    }
  }
  return null;
}

/** What a pod's status says of one of its containers. */
function statusOf(kube: KubeBorder | null, { uid, name }: { uid: string; name: string }): Readonly<Record<string, unknown>> {
  for (const { metadata, status } of kube?.seen.all('pods') ?? []) {
    if (metadata.uid !== uid || !isRecord(status)) continue;
    const all = [status.containerStatuses, status.initContainerStatuses, status.ephemeralContainerStatuses].flatMap(listOf);
    return all.find((s) => s.name === name) ?? {};
  }
  return {};
}
/** Why the kubelet cannot start a container that is there. */
function startFailure(kube: KubeBorder | null, containerId: string): string | null {
  for (const { status } of kube?.seen.all('pods') ?? []) {
    const all = isRecord(status) ? [status.containerStatuses, status.initContainerStatuses].flatMap(listOf) : [];
    const found = all.find((s) => typeof s.containerID === 'string' && s.containerID.endsWith(`://${containerId}`));
    const { reason, message } = waitingOf(found ?? {});
    if (reason === 'RunContainerError') return String(message ?? reason);
  }
  return null;
}
function waitingOf({ state }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isRecord(state) && isRecord(state.waiting) ? state.waiting : {};
}

/** Why the kubelet cannot make a container. */
function createFailure(kube: KubeBorder | null, of: { uid: string; name: string }): string | null {
  const { reason, message } = waitingOf(statusOf(kube, of));
  return reason === 'CreateContainerError' ? String(message ?? reason) : null;
}

function listOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isRecord) : [];
}
