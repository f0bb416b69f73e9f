/** Containers of a hollow runtime: each lives the life that its annotations, its image and the script give it. */
import { shareData } from '@actorlet/kubelet/machines/data/sharedData.ts';
import type { CriContainerState } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { CriContainerStats, CriSandboxMetrics, CriSandboxStats } from '@actorlet/kubelet/machines/wire/criStats.ts';
import { CODE, containerItem, containerKey, containerStatus, exitReason, matchContainer, RuntimeRefusal } from '../../shared/model.ts';
import { annotatedLife, DEFAULT_LIFE, type HollowLife } from '../life.ts';
import type { Container, Sandbox, Shared } from '../state.ts';
import type { HollowHeldContainer, ScriptedContainer, StreamAsk } from '../types.ts';
import { annotatedUsage, DEFAULT_USAGE } from '../usage.ts';
import type { Images } from './images.ts';
import { containerStats, sandboxMetrics, sandboxStats } from './stats.ts';

/** A killed process that the kernel holds is looked at again this often. */
const HELD_LOOK_MS = 100;
const NO_BYTES = new Uint8Array(0);

export class Containers {
  readonly #o: Shared;
  readonly #images: Images;
  /** Of the container that was made last, and how it lives: most containers of a node differ in a few names. */
  #last: Pick<Container, 'config' | 'life'> | undefined;

  constructor(o: Shared, images: Images) {
    this.#o = o;
    this.#images = images;
  }

  create({ podSandboxId, config }: CriRequest<'CreateContainer'>): CriResponse<'CreateContainer'> {
    const { state } = this.#o;
    const s = state.sandbox(podSandboxId);
    if (!s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${s.id} is not ready`);
    const key = containerKey(s.id, config.metadata);
    if (state.names.has(key)) throw new RuntimeRefusal(CODE.alreadyExists, `container name ${key} is taken`);
    const c = this.#made(s, config, key);
    state.containers.set(c.id, c);
    state.names.add(key);
    state.counts.containersCreated++;
    state.hint('created', c.id, s);
    return { containerId: c.id };
  }

  /** As it was when the process of this runtime ended: it has ended, or runs on for what is left of its life. */
  hold(s: Sandbox, { config, ...was }: HollowHeldContainer): void {
    const { state, timing } = this.#o;
    const image = this.#images.held(config.image.image);
    const key = containerKey(s.id, config.metadata);
    const c = { ...this.#made(s, { ...config, image: { ...config.image, image: image.id } }, key), ...was, createdAtMs: was.startedAtMs };
    state.containers.set(c.id, c);
    state.names.add(key);
    if (c.state === 'CONTAINER_RUNNING') this.#live(c, timing.clock.wallMs() - c.startedAtMs);
    else c.reason ||= exitReason(c.exitCode);
  }

  #made(s: Sandbox, given: Container['config'], key: string): Container {
    const { state, timing } = this.#o;
    const config = shareData(this.#last?.config, given);
    const image = this.#images.present(config.image.image);
    if (image === undefined) throw new RuntimeRefusal(CODE.notFound, `image ${JSON.stringify(config.image.image)} not found`);
    const userImage = config.image.userSpecifiedImage || image.repoTags[0] || config.image.image;
    const life = shareData(this.#last?.life, this.#life(s, config, userImage));
    this.#last = { config, life };
    const script = scripted(s, config, userImage);
    const usage = annotatedUsage(s.annotations, config.metadata.name) ?? this.#o.options.usage?.(script) ?? DEFAULT_USAGE;
    return {
      id: state.newId(),
      sandboxId: s.id,
      metadata: config.metadata,
      image: config.image,
      imageRef: image.id,
      labels: config.labels ?? {},
      annotations: config.annotations ?? {},
      mounts: config.mounts ?? [],
      logPath: config.logPath && s.config.logDirectory ? `${s.config.logDirectory}/${config.logPath}` : '',
      state: 'CONTAINER_CREATED',
      createdAtMs: timing.stampMs(),
      startedAtMs: 0,
      finishedAtMs: 0,
      exitCode: 0,
      reason: '',
      message: '',
      config,
      userImage,
      life,
      usage,
      key,
      resources: config.linux?.resources ?? {},
      starting: false,
      runTimer: undefined,
      logTimer: undefined,
      onExit: [],
    };
  }

  #life(s: Sandbox, config: Container['config'], userImage: string): HollowLife {
    const { name, attempt } = config.metadata;
    return {
      ...DEFAULT_LIFE,
      ...this.#images.known(userImage)?.life,
      ...annotatedLife(s.annotations, name, attempt),
      ...annotatedLife(config.annotations, name, attempt),
      ...this.#o.options.script?.(scripted(s, config, userImage)),
    };
  }

  async start(c: Container): Promise<CriResponse<'StartContainer'>> {
    const { state, timing } = this.#o;
    if (c.state !== 'CONTAINER_CREATED' || c.starting) {
      throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is ${c.starting ? 'being started' : c.state}, not CREATED`);
    }
    c.starting = true;
    try {
      const delay = timing.wait(timing.stretched(c.life.startDelayMs, c.life.jitter));
      if (delay !== undefined) await delay;
    } finally {
      c.starting = false;
    }
    const s = state.sandboxes.get(c.sandboxId);
    if (state.containers.get(c.id) !== c) {
      throw new RuntimeRefusal(CODE.notFound, `container ${c.id} was removed while it was started`);
    }
    if (s === undefined || !s.ready) throw new RuntimeRefusal(CODE.failedPrecondition, `sandbox ${c.sandboxId} is not ready`);
    if (c.life.startError !== '') this.#failStart(c, s);
    c.state = 'CONTAINER_RUNNING';
    c.startedAtMs = timing.stampMs();
    state.counts.containersStarted++;
    this.#say(c, `${c.metadata.name} started (attempt ${c.metadata.attempt})`);
    this.#live(c, 0);
    state.hint('started', c.id, s);
    return {};
  }

  #live(c: Container, livedMs: number): void {
    const { timing } = this.#o;
    this.#talk(c);
    if (c.life.runMs === null) return;
    const leftMs = Math.max(0, timing.stretched(c.life.runMs, c.life.jitter) - livedMs);
    c.runTimer = timing.clock.setTimeout(() => this.end(c, c.life.exitCode, c.life.exitReason), leftMs);
  }

  /** A line now and then, as long as it runs. */
  #talk(c: Container): void {
    const { logEveryMs } = c.life;
    if (logEveryMs === null || this.#o.options.log === undefined) return;
    let line = 0;
    const again = (): void => {
      c.logTimer = this.#o.timing.clock.setTimeout(() => {
        this.#say(c, `${c.metadata.name} line ${++line}`);
        again();
      }, logEveryMs);
    };
    again();
  }

  #failStart(c: Container, s: Sandbox): never {
    c.state = 'CONTAINER_EXITED';
    c.exitCode = 128;
    c.reason = 'StartError';
    c.message = c.life.startError;
    c.finishedAtMs = this.#o.timing.stampMs();
    this.#o.state.hint('stopped', c.id, s);
    throw new RuntimeRefusal(CODE.unknown, c.life.startError);
  }

  async stop(c: Container, graceMs: number): Promise<CriResponse<'StopContainer'>> {
    const { clock } = this.#o.timing;
    if (c.state !== 'CONTAINER_RUNNING') {
      if (c.starting) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is being started and cannot be stopped yet`);
      return {};
    }
    if (graceMs <= 0 && !this.held(c)) {
      this.end(c, 137, '');
      return {};
    }
    await new Promise<void>((resolve) => {
      const obeys = c.life.obeysTerm && c.life.termDelayMs <= graceMs;
      const ended = () => {
        if (this.held(c)) timer = clock.setTimeout(ended, HELD_LOOK_MS);
        else this.end(c, obeys ? c.life.termExitCode : 137, '');
      };
      let timer = clock.setTimeout(ended, obeys ? c.life.termDelayMs : graceMs);
      c.onExit.push(() => {
        clock.clearTimeout(timer);
        resolve();
      });
    });
    return {};
  }

  /** It waits for a disk: no signal ends it. */
  held(c: Container): boolean {
    return c.state === 'CONTAINER_RUNNING' && this.#o.options.held?.(this.#scripted(c)) === true;
  }

  /** `reason`: '' = by exit code. */
  end(c: Container, exitCode: number, reason: string): void {
    const { state, timing } = this.#o;
    if (c.state !== 'CONTAINER_RUNNING') return;
    timing.clock.clearTimeout(c.runTimer);
    timing.clock.clearTimeout(c.logTimer);
    c.runTimer = undefined;
    c.logTimer = undefined;
    c.state = 'CONTAINER_EXITED';
    c.exitCode = exitCode;
    c.reason = reason || exitReason(exitCode);
    c.finishedAtMs = timing.stampMs();
    this.#say(c, `${c.metadata.name} ended with ${exitCode}`);
    for (const fn of c.onExit.splice(0)) fn();
    state.hint('stopped', c.id, state.sandboxes.get(c.sandboxId));
  }

  remove({ containerId }: CriRequest<'RemoveContainer'>): CriResponse<'RemoveContainer'> {
    const c = this.#o.state.containers.get(containerId);
    if (c === undefined) return {};
    if (c.starting) throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} is being started and cannot be removed yet`);
    this.forget(c);
    return {};
  }

  forget(c: Container): void {
    const { state } = this.#o;
    this.end(c, 137, '');
    state.containers.delete(c.id);
    state.names.delete(c.key);
    state.hint('deleted', c.id, state.sandboxes.get(c.sandboxId));
  }

  status({ containerId }: CriRequest<'ContainerStatus'>): CriResponse<'ContainerStatus'> {
    const c = this.#o.state.container(containerId);
    return { status: { ...containerStatus(c), resources: { linux: c.resources } }, info: {} };
  }

  list({ filter }: CriRequest<'ListContainers'>): CriResponse<'ListContainers'> {
    return { containers: [...this.#o.state.containers.values()].filter((c) => matchContainer(c, filter)).map(containerItem) };
  }

  stats({ containerId }: CriRequest<'ContainerStats'>): CriResponse<'ContainerStats'> {
    return { stats: containerStats(this.#o.state.container(containerId), this.#o.timing.clock.wallMs()) };
  }

  listStats({ filter }: CriRequest<'ListContainerStats'>): CriResponse<'ListContainerStats'> {
    const running = [...this.#o.state.containers.values()].filter((c) => c.state === 'CONTAINER_RUNNING' && matchContainer(c, filter));
    return { stats: running.map((c) => containerStats(c, this.#o.timing.clock.wallMs())) };
  }

  #runningIn(sandboxId: string): CriContainerStats[] {
    const running = [...this.#o.state.containers.values()].filter((c) => c.state === 'CONTAINER_RUNNING' && c.sandboxId === sandboxId);
    return running.map((c) => containerStats(c, this.#o.timing.clock.wallMs()));
  }
  sandboxStats(s: Sandbox): CriSandboxStats {
    return sandboxStats(s, this.#runningIn(s.id), this.#o.timing.clock.wallMs());
  }
  sandboxMetrics(s: Sandbox): CriSandboxMetrics {
    return sandboxMetrics(s, this.#runningIn(s.id));
  }

  update({ containerId, linux }: CriRequest<'UpdateContainerResources'>): CriResponse<'UpdateContainerResources'> {
    const c = this.#o.state.container(containerId);
    if (c.state === 'CONTAINER_EXITED') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${c.id} has exited`);
    // Zero and empty mean unchanged.
    const changed = Object.entries(linux ?? {}).filter(([, value]) => Number(value) !== 0 || (typeof value === 'string' && value !== ''));
    const unified = { ...c.resources.unified, ...linux?.unified };
    c.resources = { ...c.resources, ...Object.fromEntries(changed), ...(Object.keys(unified).length === 0 ? {} : { unified }) };
    return {};
  }

  async exec({ containerId, cmd, timeout }: CriRequest<'ExecSync'>): Promise<CriResponse<'ExecSync'>> {
    const { state, timing, options } = this.#o;
    const c = state.running(containerId);
    const limitMs = Number(timeout) * 1000;
    const answer = options.exec?.(this.#scripted(c), cmd);
    const delayMs = answer?.delayMs ?? timing.stretched(c.life.execDelayMs, c.life.jitter);
    const tooLong = limitMs > 0 && delayMs > limitMs;
    const delay = timing.wait(tooLong ? limitMs : delayMs);
    if (delay !== undefined) await delay;
    if (tooLong) throw new RuntimeRefusal(CODE.deadlineExceeded, `command took longer than ${limitMs} ms`);
    if ((c.state as CriContainerState) !== 'CONTAINER_RUNNING') {
      throw new RuntimeRefusal(CODE.unknown, `container ${c.id} ended while the command ran`);
    }
    return { stdout: answer?.stdout ?? NO_BYTES, stderr: answer?.stderr ?? NO_BYTES, exitCode: answer?.exitCode ?? c.life.execExitCode };
  }

  /** Exec with a command, Attach without. */
  stream(containerId: string, ask: StreamAsk): { url: string } {
    const { state, options } = this.#o;
    const c = state.running(containerId);
    if (options.stream === undefined) throw new RuntimeRefusal(CODE.unimplemented, 'the hollow runtime has no processes to stream to');
    return { url: options.stream(this.#scripted(c), ask) };
  }

  #scripted(c: Container): ScriptedContainer {
    return scripted(this.#o.state.sandboxes.get(c.sandboxId), c.config, c.userImage);
  }

  #say(c: Container, text: string): void {
    const { options, timing } = this.#o;
    if (c.logPath !== '') options.log?.(c.logPath, { atMs: timing.clock.wallMs(), stream: 'stdout', text });
  }
}

const NO_POD = { metadata: { name: '', uid: '', namespace: '', attempt: 0 }, labels: {}, annotations: {} };

function scripted(s: Sandbox | undefined, config: Container['config'], image: string): ScriptedContainer {
  const { metadata: pod, labels, annotations } = s ?? NO_POD;
  const { name, attempt } = config.metadata;
  return { pod, name, attempt, image, config, labels, annotations };
}
