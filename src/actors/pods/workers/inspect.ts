/** One pod as the runtime holds it now: sandboxes, containers, termination messages. Reads only. */

import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { composeStatus, toContainer, toSandbox } from '../../../machines/pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer, RuntimeSandbox } from '../../../machines/pod/runtime/seen.ts';
import { chooseTerminationMessage, TERMINATION_LOG_BYTES_MAX } from '../../../machines/pod/runtime/terminationMessage.ts';
import type { InspectionOf } from '../../../machines/pods/workers/io.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { CRI_LABELS, type CriContainer, type PodSandbox } from '../../../machines/wire/cri.ts';
import { CriError, type HostFs, type Ports } from '../../../ports/ports.ts';
import type { CriClient } from '../../runtime/client.ts';
import { OwnActs, type Touched } from './ownActs.ts';

/** gRPC NotFound: gone between the list and the question, so not there (pod lifecycle 4.1, since 1.26). */
const NOT_FOUND = 5;

/**
 * What is ready or running stays as it was read for as long as the listing calls it so, addresses and start times
 * included; but once in a while it is read again, for what a listing does not show (a network that went away).
 */
const KEPT_MS_MAX = 10_000;

interface Known<T> {
  it: T;
  /** An exited container never changes, nor does a sandbox that is not ready any more. */
  final: boolean;
  readMonoMs: number;
}

export interface InspectorOptions {
  /** Where last words and logs of containers are: the runtime may name no other place. */
  facts(): Pick<NodeFacts, 'rootDir' | 'podLogsDir'>;
  /** When the runtime was last listed and held nothing of this pod. */
  nothingAtMonoMs?: (() => number | null) | undefined;
}

/** What was read is kept as the worker keeps it, and not as the runtime told it, which is several times as large. */
export class Inspector {
  readonly cri: CriClient;
  readonly ports: Ports;
  private name = '';
  private namespace = '';
  private known = { sandboxes: new Map<string, Known<RuntimeSandbox>>(), containers: new Map<string, Known<RuntimeContainer>>() };

  /** What the worker's acts touched since the last inspection began. */
  readonly acts = new OwnActs();
  private last: PodRuntimeStatus | null = null;
  private keptMsMax = KEPT_MS_MAX;

  /** When a container was last changed in place, by id: what was read earlier is not kept. */
  private readonly changes = new Map<string, number>();

  /** When the runtime was last listed and held nothing of this pod, and that will do before its first act; null: it is asked. */
  private readonly nothingAtMonoMs: () => number | null;

  private readonly facts: InspectorOptions['facts'];

  constructor(cri: CriClient, ports: Ports, o: InspectorOptions) {
    this.cri = cri;
    this.ports = ports;
    this.facts = o.facts;
    this.nothingAtMonoMs = o.nothingAtMonoMs ?? (() => null);
  }

  /** Goes on with what was seen last before its worker slept. */
  resume(status: PodRuntimeStatus): void {
    const { sandboxes, containers, observedAtMonoMs: readMonoMs } = status;
    this.last = status;
    this.name = status.name;
    this.namespace = status.namespace;
    for (const it of sandboxes) if (!it.ready || it.ips.length > 0) this.known.sandboxes.set(it.id, { it, final: !it.ready, readMonoMs });
    for (const it of containers) {
      const final = it.state === 'exited';
      if (final || it.state === 'running') this.known.containers.set(it.id, { it, final, readMonoMs });
    }
    this.acts.resume();
  }

  /** `partial`: reads only what the worker's own acts touched, if that is known. */
  async inspect({ uid, partial, stopping }: InspectionOf, signal: AbortSignal): Promise<PodRuntimeStatus> {
    const nothing = this.nothing(uid);
    if (nothing !== null) return nothing;
    const { last } = this;
    this.keptMsMax = stopping ? Number.POSITIVE_INFINITY : KEPT_MS_MAX;
    if (stopping && !this.acts.settled) this.acts.unsure();
    const touched = this.acts.take();
    try {
      const found = partial && last !== null && touched !== null ? await this.touched(last, touched, signal) : null;
      this.last = found ?? (await this.whole(uid, signal));
      return this.last;
    } catch (error) {
      this.acts.unsure();
      throw error;
    }
  }

  /** By the last listing, before the first act; null where that will not do. */
  nothing(uid: string): PodRuntimeStatus | null {
    const observedAtMonoMs = this.acts.any ? null : this.nothingAtMonoMs();
    if (observedAtMonoMs === null) return null;
    this.acts.take();
    this.last = composeStatus({ uid, name: '', namespace: '', sandboxes: [], containers: [], observedAtMonoMs });
    return this.last;
  }

  /** Null: something that was just made is gone already. */
  private async touched(
    last: PodRuntimeStatus,
    { sandboxIds, containerIds, stoppedIds }: Touched,
    signal: AbortSignal,
  ): Promise<PodRuntimeStatus | null> {
    const observedAtMonoMs = this.ports.clock.monoMs();
    const [sandboxes, containers] = await Promise.all([
      Promise.all(sandboxIds.map((id) => this.readSandbox(id, signal))),
      Promise.all(containerIds.map((id) => this.readContainer(id, signal))),
    ]);
    if ([...sandboxes, ...containers].includes(null)) return null;
    for (const id of stoppedIds) this.wasStopped(id);
    const stopped = last.sandboxes.filter((s) => stoppedIds.includes(s.id)).map((s) => ({ ...s, ready: false, ips: [] }));
    const read = [...sandboxIds, ...containerIds, ...stoppedIds].map((id) => [id, observedAtMonoMs] as const);
    const others = <T extends { id: string }>(list: readonly T[], read: readonly string[]) => list.filter(({ id }) => !read.includes(id));
    return composeStatus({
      uid: last.uid,
      name: this.name,
      namespace: this.namespace,
      sandboxes: [...others(last.sandboxes, [...sandboxIds, ...stoppedIds]), ...stopped, ...sandboxes.filter(present)],
      containers: [...others(last.containers, containerIds), ...containers.filter(present)],
      observedAtMonoMs,
      partial: {
        readAtMonoMs: new Map([...(last.partial?.readAtMonoMs ?? []), ...read]),
        wholeAtMonoMs: last.partial?.wholeAtMonoMs ?? last.observedAtMonoMs,
      },
    });
  }

  private async whole(uid: string, signal: AbortSignal): Promise<PodRuntimeStatus> {
    const observedAtMonoMs = this.ports.clock.monoMs();
    const filter = { labelSelector: { [CRI_LABELS.podUid]: uid } };
    const [sandboxList, containerList] = await Promise.all([
      this.cri.read('ListPodSandbox', { filter }, { signal }),
      this.cri.read('ListContainers', { filter }, { signal }),
    ]);
    const [sandboxes, containers] = await Promise.all([
      Promise.all(sandboxList.items.map((s) => this.sandbox(s, signal))),
      Promise.all(containerList.containers.map((c) => this.container(c, signal))),
    ]);
    forgetExcept(this.known.sandboxes, sandboxList.items);
    forgetExcept(this.known.containers, containerList.containers);
    forgetExcept(this.changes, containerList.containers);
    const { name, namespace } = this;
    return composeStatus({
      uid,
      name,
      namespace,
      sandboxes: sandboxes.filter(present),
      containers: containers.filter(present),
      observedAtMonoMs,
    });
  }

  /** What was read may be wrong: a new sandbox or container was refused, perhaps for the name of one that was read wrongly. */
  doubt(): void {
    this.known.sandboxes.clear();
    this.known.containers.clear();
    this.acts.unsure();
  }

  changed(containerId: string): void {
    this.known.containers.delete(containerId);
    this.changes.set(containerId, this.ports.clock.monoMs());
    this.acts.unsure();
  }

  private async sandbox({ id, state }: PodSandbox, signal: AbortSignal): Promise<RuntimeSandbox | null> {
    const known = this.known.sandboxes.get(id);
    if (known === undefined || (state === 'SANDBOX_READY' && (known.final || !this.recent(known)))) return this.readSandbox(id, signal);
    if (state !== 'SANDBOX_READY') this.wasStopped(id);
    return known.it;
  }

  /** A sandbox that is not ready any more has no addresses: there is nothing else to ask for. */
  private wasStopped(id: string): void {
    const known = this.known.sandboxes.get(id);
    if (known === undefined || known.final) return;
    known.it = { ...known.it, ready: false, ips: [] };
    known.final = true;
  }

  private async readSandbox(id: string, signal: AbortSignal): Promise<RuntimeSandbox | null> {
    this.known.sandboxes.delete(id);
    const status = await found(async () => (await this.cri.read('PodSandboxStatus', { podSandboxId: id }, { signal })).status);
    if (status === null) return null;
    this.named(status.metadata?.name, status.metadata?.namespace);
    const it = toSandbox(status);
    if (!it.ready || it.ips.length > 0) this.known.sandboxes.set(id, { it, final: !it.ready, readMonoMs: this.ports.clock.monoMs() });
    return it;
  }

  private async container({ id, state }: CriContainer, signal: AbortSignal): Promise<RuntimeContainer | null> {
    const known = this.known.containers.get(id);
    if (known?.final === true || (state === 'CONTAINER_RUNNING' && this.recent(known))) return known.it;
    return this.readContainer(id, signal);
  }

  private async readContainer(id: string, signal: AbortSignal): Promise<RuntimeContainer | null> {
    this.known.containers.delete(id);
    const beganMs = this.ports.clock.monoMs();
    const status = await found(async () => (await this.cri.read('ContainerStatus', { containerId: id }, { signal })).status);
    if (status === null) return null;
    this.named(status.labels[CRI_LABELS.podName], status.labels[CRI_LABELS.podNamespace]);
    const it = await this.withMessage(toContainer(status));
    const final = status.state === 'CONTAINER_EXITED';
    if ((this.changes.get(id) ?? Number.NEGATIVE_INFINITY) >= beganMs) return it;
    if (final || status.state === 'CONTAINER_RUNNING') this.known.containers.set(id, { it, final, readMonoMs: this.ports.clock.monoMs() });
    return it;
  }

  private recent<T>(known: Known<T> | undefined): known is Known<T> {
    return known !== undefined && this.ports.clock.monoMs() - known.readMonoMs < this.keptMsMax;
  }
  private named(name: string | undefined, namespace: string | undefined): void {
    this.name ||= name ?? '';
    this.namespace ||= namespace ?? '';
  }

  private async withMessage(c: RuntimeContainer): Promise<RuntimeContainer> {
    if (c.state !== 'exited') return c;
    const { rootDir, podLogsDir } = this.facts();
    const read = (path: string, folder: string, bytesMax: number) => tail(this.ports.fs, { path, folder, bytesMax });
    const fileText = await read(c.terminationMessageHostPath ?? '', `${rootDir}/pods`, TERMINATION_LOG_BYTES_MAX);
    return { ...c, message: await chooseTerminationMessage(c, fileText, (bytesMax) => read(c.logPath, podLogsDir, bytesMax)) };
  }
}

function forgetExcept(known: Map<string, unknown>, listed: readonly { id: string }[]): void {
  for (const id of known.keys()) if (!listed.some((l) => l.id === id)) known.delete(id);
}

/** The answer about something that a listing showed. Null: it went between the listing and the question. */
async function found<T>(ask: () => Promise<T | null>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CriError && error.code === NOT_FOUND) return null;
    throw error;
  }
}

function present<T>(value: T | null): value is T {
  return value !== null;
}

/**
 * Missing file: null. Any other error is the text, as the reference shows it to the user (pod lifecycle 5.15). The runtime names
 * the path, and a container may have put a link there: what leads out of the folder, and what is no file, is not read.
 */
async function tail(fs: HostFs, { path, folder, bytesMax }: { path: string; folder: string; bytesMax: number }): Promise<string | null> {
  if (path === '') return null;
  try {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await fs.readTail(path, { bytesMax, within: [folder] }));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    return messageOf(error);
  }
}
