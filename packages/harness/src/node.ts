/** A throw-away node for tests of one's own pods: a daemon of its own, in a folder of its own. docs/testing-your-pods.md. */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type AdminClient, adminClient } from '@actorlet/admin/src/client.ts';
import { type LoadedImage, loadImages } from '@actorlet/admin/src/images.ts';
import { printLogs } from '@actorlet/admin/src/logs.ts';
import type { LogFile } from '@actorlet/kubelet/machines/edge/podLogs.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { canonicalJson } from '@actorlet/kubelet/machines/pod/names.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { type ContainerView, heldContainers, statedContainers } from './containers.ts';
import { type Injected, inject, type ScenarioInput, scenarioText } from './faults.ts';
import { endText, History, type Look, type PodView, podText, type TimelineEntry, type Timings } from './history.ts';
import { type Manifest, type ReadPod, readManifests } from './manifests.ts';
import { notYet, nowMs, Observer, type Verdict, yes } from './observer.ts';
import { freePort, type NodeOptions, type Plan, prepare, START_TIMEOUT_MS, TIMEOUT_MS, writeConfig } from './options.ts';
import { keyOf, type LogOptions, PodHandle, type PodName, type PodNode, podName } from './pod.ts';
import { checkNode, programs } from './programs.ts';
import { type DaemonEnd, Reaper } from './reaper/client.ts';
import { WaitError } from './waitError.ts';

/** Lines of the daemon's log in an error. */
const LOG_LINES = 20;
/** An explanation is not worth a longer wait when something has failed already. */
const WHY_TIMEOUT_MS = 5_000;
/** What the read-only port may take for: somebody else may take a free port first. */
const PORT_TRIES_MAX = 5;
const PORT_TAKEN = 'already in use';

/** Brings a node up and waits until it answers. Dispose of it (`await using`, or `dispose()`): that removes all of it. */
export async function startNode(o: NodeOptions = {}): Promise<TestNode> {
  checkNode(process.versions.node);
  const { daemon, reaper, sandbox } = programs();
  const plan = prepare(o, sandbox);
  let kept: Reaper;
  try {
    kept = await Reaper.start(reaper, plan.charge);
  } catch (error) {
    rmSync(plan.layout.dir, { recursive: true, force: true });
    throw error;
  }
  const node = new TestNode(o, { plan, reaper: kept, entry: daemon });
  try {
    await node.restart();
    return node;
  } catch (error) {
    await node.dispose();
    throw error;
  }
}

export class TestNode implements AsyncDisposable {
  /** What pods carry behind their names on this node. */
  readonly name: string;
  /** Everything of this node is below it: `daemon.log`, `config.yaml`, `manifests/`, `logs/`, `root/`. */
  readonly dir: string;
  /** For `actorctl --socket`. */
  readonly adminSocket: string;
  readonly #o: NodeOptions;
  readonly #plan: Plan;
  readonly #reaper: Reaper;
  readonly #entry: string;
  readonly #admin: AdminClient;
  readonly #history: History;
  readonly #observer: Observer;
  readonly #applied = new Map<string, { atMs: number; read: ReadPod }>();
  readonly #listeners = new Set<(e: TimelineEntry) => void>();
  readonly #podNode: PodNode;
  #daemon: { pid: number; ended: Promise<DaemonEnd> } | undefined;
  /** How the daemon ended without having been told to. */
  #broken = '';
  #telling = false;
  #port = 0;
  #disposed: Promise<void> | undefined;

  /** Use {@link startNode}. */
  constructor(o: NodeOptions, at: { plan: Plan; reaper: Reaper; entry: string }) {
    const { charge, layout } = at.plan;
    this.#o = o;
    this.#plan = at.plan;
    this.#reaper = at.reaper;
    this.#entry = at.entry;
    this.name = charge.nodeName;
    this.dir = layout.dir;
    this.adminSocket = layout.adminSocket;
    this.#admin = adminClient(layout.adminSocket, new AbortController().signal);
    this.#history = new History({
      nameOf: (full) => this.#short(full),
      onEntry: (e) => {
        for (const fn of this.#listeners) fn(e);
      },
    });
    this.#observer = new Observer(this.#admin, (look) => this.#history.take(look));
    this.#podNode = {
      find: (look, pod) => this.#find(look, pod),
      wait: (what, probe, w) => this.#wait(what, probe, w),
      timings: (pod, uid) => this.#timings(pod, uid),
      logs: (pod, l) => this.#logs(pod, l),
    };
  }

  /** Address of the read-only port, with option `readOnlyPort`. */
  get url(): string {
    if (this.#port === 0) throw new Error('this node has no port; start it with readOnlyPort: true');
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Process id of the daemon; undefined while it is down. */
  get pid(): number | undefined {
    return this.#daemon?.pid;
  }

  /** What happened since the node was made, as it was seen, oldest first. */
  get timeline(): readonly TimelineEntry[] {
    return this.#history.timeline;
  }

  /** Calls `fn` for each new entry of the timeline. */
  onTimeline(fn: (e: TimelineEntry) => void): Disposable {
    this.#listeners.add(fn);
    return { [Symbol.dispose]: () => void this.#listeners.delete(fn) };
  }

  /** Adds a line of one's own to the timeline. */
  note(kind: TimelineEntry['kind'], pod: string, what: string): void {
    this.#history.add({ atMs: nowMs(), kind, pod, what });
  }

  // ---- pods ----

  /**
   * Puts one pod into the node's manifest folder, in place of an earlier one of that name, and waits until the node has
   * taken it on. @throws what is wrong with the manifest, in the node's words; when it holds several pods.
   */
  async apply(manifest: Manifest): Promise<PodHandle> {
    const [first, second] = this.#read(manifest);
    if (first === undefined || second !== undefined) throw new Error('apply takes a manifest with one pod; applyAll takes any number');
    return this.#apply(first);
  }

  /** As `apply`, for any number of pods: files with several documents, folders. */
  async applyAll(manifest: Manifest): Promise<PodHandle[]> {
    return Promise.all(this.#read(manifest).map((read) => this.#apply(read)));
  }

  /** Takes a pod's manifest away and waits until the node has noticed; `pod(name).gone()` waits for its end. */
  async remove(pod: string | PodHandle): Promise<void> {
    const name = podName(pod);
    const key = keyOf(name);
    const applied = this.#applied.get(key);
    if (applied === undefined)
      throw new Error(
        `pod ${name.name} cannot be removed: none of that name was applied (${[...this.#applied.keys()].join(', ') || 'none at all'})`,
      );
    rmSync(applied.read.file, { force: true });
    this.#applied.delete(key);
    this.note('manifest', name.name, 'manifest removed');
    if (this.#daemon === undefined) return;
    await this.#wait(
      `pod ${name.name} to be removed from the node's list`,
      (look) => {
        const p = this.#find(look, name);
        return p === undefined || p.removed ? yes(undefined) : notYet(podText(p));
      },
      { pod: name },
    );
  }

  /** The pod of that name, or `namespace/name`, whether it is there or not. */
  pod(name: string): PodHandle {
    return new PodHandle(this.#podNode, podName(name));
  }

  /** Every pod the node knows now, those being wound down included. */
  pods(): Promise<readonly PodView[]> {
    return this.#wait("the node's list of pods", (look) => yes(look.pods), {});
  }

  /** Events that the node recorded, of one pod or of all, the latest last. */
  async events(pod?: string | PodHandle): Promise<readonly RecordedEvent[]> {
    const { events } = (await this.#admin.json('/events')) as { events: RecordedEvent[] };
    if (pod === undefined) return events;
    const { name, namespace } = podName(pod);
    return events.filter((e) => e.pod !== undefined && e.pod.namespace === namespace && this.#short(e.pod.name) === name);
  }

  /** Why a pod (or a manifest file) is as it is: the lines of `actorctl why`. */
  async why(pod: string | PodHandle): Promise<string> {
    const query = typeof pod === 'string' ? pod : `${pod.namespace}/${pod.name}-${this.name}`;
    return ((await this.#admin.json('/why', { pod: query })) as { lines: string[] }).lines.join('\n');
  }

  /** The containers of this node, by pod, name and run. */
  async containers(): Promise<readonly ContainerView[]> {
    const { charge } = this.#plan;
    const short = (full: string): string => this.#short(full);
    return charge.runtime === 'hollow' ? statedContainers(await this.pods(), short) : heldContainers(charge, short);
  }

  /** Loads the images of an archive (docker save, podman save, OCI layout), on runtime `oci`. `name`: of its one image. */
  async loadImages(file: string, name = ''): Promise<readonly LoadedImage[]> {
    return loadImages(this.adminSocket, { file, name });
  }

  // ---- breaking it ----

  /** Begins the faults of a scenario (docs/fault-injection.md). They end with their windows, with `stop()`, and with the daemon. */
  async inject(scenario: ScenarioInput): Promise<Injected> {
    if (this.#o.faultInjection === false) throw new Error('this node was started with faultInjection: false');
    return inject(this.adminSocket, scenarioText(scenario), (what) => this.note('fault', '', what));
  }

  /** Ends the daemon with a signal and waits for its end; containers go on, save on the hollow runtime. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined) throw new Error('the daemon is down already');
    this.#telling = true;
    try {
      this.#reaper.signal(signal);
      await this.#reaper.hold(daemon.ended);
    } finally {
      this.#telling = false;
    }
  }

  /** Starts the daemon again, after an orderly end if it runs, and waits until it is up. */
  async restart(): Promise<void> {
    if (this.#disposed !== undefined) throw new Error('this node was disposed of');
    if (this.#daemon !== undefined) await this.kill('SIGTERM');
    for (let tries = 1; ; tries++) {
      if (this.#o.readOnlyPort === true && this.#port === 0) this.#port = await freePort();
      try {
        await this.#up();
        return;
      } catch (error) {
        const taken = this.#o.readOnlyPort === true && error instanceof Error && error.message.includes(PORT_TAKEN);
        if (!taken || tries === PORT_TRIES_MAX) throw error;
        this.#port = 0;
      }
    }
  }

  /** Ends the daemon, removes its pods and files. @throws when something is left, naming it. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#end();
    return this.#disposed;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  // ---- within ----

  async #up(): Promise<void> {
    const { layout, charge } = this.#plan;
    writeConfig(this.#plan, { config: this.#o.config, readOnlyPort: this.#port });
    const flags = [
      `--root-dir=${layout.rootDir}`,
      // Its default is the one folder of the machine's own node.
      `--cert-dir=${join(layout.rootDir, 'pki')}`,
      `--config=${layout.configFile}`,
      `--hostname-override=${charge.nodeName}`,
      ...(this.#o.faultInjection === false ? [] : ['--actorlet-fault-injection=true']),
      ...(this.#o.flags ?? []),
    ];
    this.#broken = '';
    let ended: (end: DaemonEnd) => void = () => undefined;
    const daemon = { pid: 0, ended: new Promise<DaemonEnd>((resolve) => (ended = resolve)) };
    this.#daemon = daemon;
    this.#reaper.onDaemonEnd((end) => {
      ended(end);
      if (this.#daemon !== daemon) return;
      this.#daemon = undefined;
      if (!this.#telling) this.#broken = `the daemon ended by itself: ${endText(end)}`;
      this.note('node', '', this.#telling ? `daemon ended: ${endText(end)}` : this.#broken);
    });
    daemon.pid = await this.#reaper.startDaemon([this.#entry, ...flags], { ...process.env, ...this.#o.env });
    this.#observer.start();
    await this.#wait('the node to be up', () => yes(undefined), { timeoutMs: this.#o.startTimeoutMs ?? START_TIMEOUT_MS });
    this.note('node', '', `up: ${charge.runtime} runtime, process ${daemon.pid}`);
  }

  async #end(): Promise<void> {
    this.#observer.stop();
    this.#telling = true;
    const left = await this.#reaper.end();
    if (left.length > 0) throw new Error(`the test node ${this.name} left something behind:\n${left.map((l) => `  ${l}`).join('\n')}`);
  }

  #read(manifest: Manifest): ReadPod[] {
    return readManifests(manifest, { nodeName: this.name, folder: this.#plan.layout.manifests });
  }

  async #apply(read: ReadPod): Promise<PodHandle> {
    const pod = new PodHandle(this.#podNode, read);
    const { layout } = this.#plan;
    const present = this.#applied.get(keyOf(read));
    const same = present?.read.text === read.text;
    if (!same) this.#applied.set(keyOf(read), { atMs: nowMs(), read });
    if (!same || !existsSync(read.file)) {
      // Renamed into place: the node never reads half of it.
      const beside = join(layout.dir, `apply-${basename(read.file)}`);
      writeFileSync(beside, read.text);
      renameSync(beside, read.file);
      this.note('manifest', read.name, present === undefined ? 'manifest applied' : 'manifest applied again');
    }
    if (this.#daemon === undefined) return pod;
    const { uid } = read.pod.metadata;
    // A pod with a UID of its own keeps it when its definition changes.
    const spec = canonicalJson(read.pod.spec);
    await this.#wait(
      `the node to take on pod ${read.name}`,
      (look) => {
        const found = look.pods.find((p) => p.uid === uid && !p.removed && p.source !== 'runtime');
        if (found === undefined) return notYet('the node does not list this definition');
        return canonicalJson(found.pod.spec) === spec ? yes(undefined) : notYet('the node lists an earlier definition');
      },
      { pod: read, query: basename(read.file) },
    );
    return pod;
  }

  /** A static pod's name carries the node's. */
  #short(full: string): string {
    return full.endsWith(`-${this.name}`) ? full.slice(0, -this.name.length - 1) : full;
  }

  #find(look: Look, pod: PodName): PodView | undefined {
    const all = look.pods.filter((p) => this.#short(p.name) === pod.name && p.namespace === pod.namespace);
    return all.find((p) => !p.removed && p.source !== 'runtime') ?? all[0];
  }

  #timings(pod: PodName, uid: string): Timings {
    const applied = this.#applied.get(keyOf(pod));
    if (applied === undefined) throw new Error(`pod ${pod.name} was not applied here, so it has no times`);
    return this.#history.timings(uid, applied.atMs);
  }

  async #logs(pod: PodName, o: LogOptions): Promise<string> {
    const query = {
      pod: `${pod.namespace}/${pod.name}-${this.name}`,
      container: o.container ?? '',
      ...(o.previous === true ? { previous: '' } : {}),
    };
    let text = '';
    const locate = async () => (await this.#admin.json('/logs', query)) as Extract<LogFile, { ok: true }>;
    const write = (more: string): void => {
      text += more;
    };
    await printLogs(locate, write, { tail: o.tail, follow: false, timestamps: false, signal: new AbortController().signal });
    return text;
  }

  async #wait<T>(
    what: string,
    probe: (look: Look) => Verdict<T> | Promise<Verdict<T>>,
    o: { timeoutMs?: number; pod?: PodName; query?: string },
  ): Promise<T> {
    if (this.#disposed !== undefined) throw new Error(`waiting for ${what}: this node was disposed of`);
    const waited = await this.#observer.until(probe, {
      timeoutMs: o.timeoutMs ?? this.#o.timeoutMs ?? TIMEOUT_MS,
      broken: () => (this.#disposed !== undefined ? 'the node was disposed of' : this.#broken === '' ? undefined : this.#broken),
    });
    if (waited.ok) return waited.value;
    const query = o.query ?? (o.pod === undefined ? '' : `${o.pod.namespace}/${o.pod.name}-${this.name}`);
    const { seen, why: ended, afterMs } = waited;
    throw new WaitError({ what, seen, ended, afterMs, why: await this.#explain(query), daemon: this.#daemonState() });
  }

  /** `''` when there is nothing to explain, or nobody to ask. */
  async #explain(query: string): Promise<string> {
    if (query === '' || this.#daemon === undefined) return '';
    const admin = adminClient(this.adminSocket, AbortSignal.timeout(WHY_TIMEOUT_MS));
    try {
      return ((await admin.json('/why', { pod: query })) as { lines: string[] }).lines.join('\n');
    } catch (error) {
      return `not to be had: ${messageOf(error)}`;
    }
  }

  /** `''` while it runs and answers. */
  #daemonState(): string {
    if (this.#daemon !== undefined && this.#observer.problem === '') return '';
    const state = this.#daemon !== undefined ? `does not answer: ${this.#observer.problem}` : this.#broken || 'down, as it was told';
    return [state, ...this.#logTail()].join('\n');
  }

  #logTail(): string[] {
    try {
      return readFileSync(join(this.dir, 'daemon.log'), 'utf8').trimEnd().split('\n').slice(-LOG_LINES);
    } catch (error) {
      return [`its log cannot be read: ${messageOf(error)}`];
    }
  }
}
