/** The runtime behind the border: reads pass, and what changes something is waited for, as the kubelet does it. */
import { CRI_LABELS, type CriContainer } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Clock, type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { Expectations } from '../expectations.ts';
import type { LISTED } from '../kinds.ts';
import { CRI } from '../table.ts';
import { untilShown } from '../waiting.ts';
import type { Expectation, Wanted } from '../wanted.ts';
import { type Listing, RuntimeListings } from './listings.ts';

const DEADLINE_EXCEEDED = 4;
const CANCELLED = 1;
const PERMISSION_DENIED = 7;
const UNKNOWN = 2;
const UNAVAILABLE = 14;
const LOOK_TIMEOUT_MS = 10_000;
/** By the state of the container that shows them; undefined: it is gone. */
const CONTAINER_ACTS = {
  StartContainer: { done: 'started', shows: (state?: CriContainer['state']) => state !== 'CONTAINER_CREATED' },
  StopContainer: { done: 'stopped', shows: (state?: CriContainer['state']) => state === undefined || state === 'CONTAINER_EXITED' },
  RemoveContainer: { done: 'removed', shows: (state?: CriContainer['state']) => state === undefined },
} as const;
/** The kubelet starts it with the next sync of the pod. */
const AFTER_BACKOFF_MS = 20_000;
/** The tree has heard of what ended so long ago. */
const SEEN_BY_NOW_MS = 20_000;
/** The shortest time between two instances of a container, but for the second. */
const FIRST_BACK_OFF_MS = 10_000;
/** What a container may take over its grace period. */
const STOP_EXTRA_MS = 20_000;

interface CallOpts {
  timeoutMs: number | null;
  signal: AbortSignal;
}
type AnyCall = { [M in CriMethod]: { method: M; req: CriRequest<M> } }[CriMethod];

export interface CriBorderOptions {
  clock: Clock;
  expectations: Expectations;
  /** Why the kubelet cannot pull this image, as the status of a pod, or of this one, says it; null: nothing is said. */
  pullFailure(image: string, uid?: string): string | null;
  /** The same of a container that it cannot make. */
  createFailure(container: { uid: string; name: string }): string | null;
  /** The same of one that it cannot start, where the runtime leaves it as it was created (CRI-O). */
  startFailure(containerId: string): string | null;
  /** Names of this pod's containers that need the image. */
  usersOf(image: string, uid: string): readonly string[];
  /** Nothing of this pod has run yet, as its status says. */
  isCreating(uid: string): boolean;
  /** Until when the kubelet backs off before it starts this container again, wall ms; 0: nothing is said. */
  backsOffUntilMs(container: { uid: string; name: string }): number;
}

export class CriBorder {
  readonly #cri: Cri;
  readonly #o: CriBorderOptions;
  readonly #listings: RuntimeListings;

  constructor(cri: Cri, o: CriBorderOptions) {
    this.#cri = cri;
    this.#o = o;
    this.#listings = new RuntimeListings(cri, { clock: o.clock, listed: o.expectations.listed });
  }

  get listings(): RuntimeListings {
    return this.#listings;
  }

  call = async <M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOpts): Promise<CriResponse<M>> => {
    // A method that is not in the table is refused, too.
    switch (CRI[method] as (typeof CRI)[CriMethod] | undefined) {
      case 'read': {
        const answer = await this.#cri.call(method, req, opts).catch((error: unknown) => this.#failed(error));
        this.#listings.learn({ method, req, res: answer } as Parameters<RuntimeListings['learn']>[0]);
        return answer;
      }
      case 'expected':
        return (await this.#expected({ method, req } as AnyCall, opts)) as CriResponse<M>;
      default:
        throw refusal(method);
    }
  };

  hints = async (signal: AbortSignal): ReturnType<Cri['hints']> => {
    const { via, stream } = await this.#cri.hints(signal);
    return { via, stream: this.#listings.hearing(stream) };
  };

  /** Without a runtime no kubelet does anything for its pods. */
  #failed(error: unknown): never {
    if (error instanceof CriError && error.code === UNAVAILABLE)
      this.#o.expectations.excused(({ kind }) => kind !== 'Lease' && kind !== 'NodeStatus');
    throw error;
  }

  async #expected(call: AnyCall, opts: CallOpts): Promise<unknown> {
    switch (call.method) {
      case 'RunPodSandbox': {
        const { uid, attempt } = call.req.config.metadata;
        const shown = ({ sandboxes }: Listing) => sandboxes.find((s) => s.metadata?.uid === uid && s.metadata.attempt >= attempt);
        const wanted = { ...podOf(call.req.config.metadata), what: `made the sandbox (attempt ${attempt})` };
        return { podSandboxId: (await this.#wait(call, opts, wanted, shown)).id };
      }
      case 'CreateContainer': {
        const { sandboxConfig, config } = call.req;
        const { name, attempt } = config.metadata;
        const { uid } = sandboxConfig.metadata;
        // The attempt is counted by the logs there are: the kubelet may have begun one already.
        const isIt = (c: CriContainer) => (c.metadata?.attempt ?? 0) >= attempt || c.state !== 'CONTAINER_EXITED';
        const askedMs = this.#o.clock.wallMs();
        // An instance that was there long before is none that is asked for now.
        const isOld = (c: CriContainer) => c.state === 'CONTAINER_EXITED' && askedMs - Number(c.createdAt) / 1_000_000 > SEEN_BY_NOW_MS;
        // How long it backs off is in the kubelet's memory, and in its words.
        const dueMs = () => this.#o.backsOffUntilMs({ uid, name });
        const isJudged = () => this.#o.clock.wallMs() > dueMs() + AFTER_BACKOFF_MS;
        const due = attempt === 0 ? {} : { dueMs };
        const wish = { ...podOf(sandboxConfig.metadata), what: `made container ${name} (attempt ${attempt})`, isJudged, ...due };
        const shown = ({ containers }: Listing) => {
          const like = containers.filter((c) => c.labels[CRI_LABELS.podUid] === uid && c.metadata?.name === name && isIt(c));
          const found = like.find((c) => !isOld(c));
          const taken = like.find((c) => isOld(c) && c.metadata?.attempt === attempt);
          if (taken !== undefined)
            this.#o.expectations.instead({ ...wish, kind: 'CreateContainer' }, `attempt ${attempt} is ${short(taken.id)}, which has ended`);
          const why = found === undefined ? this.#o.createFailure({ uid, name }) : null;
          if (why !== null) throw failed('CreateContainer', UNKNOWN, why);
          return found;
        };
        return { containerId: (await this.#wait(call, opts, wish, shown)).id };
      }
      case 'StartContainer':
      case 'StopContainer':
      case 'RemoveContainer':
        return this.#ofContainer(call, opts);
      case 'StopPodSandbox':
      case 'RemovePodSandbox':
        return this.#ofSandbox(call, opts);
      case 'PullImage':
        return this.#pull(call.req, opts);
      case 'RemoveImage': {
        const { image } = call.req;
        const look = async () => ((await this.#imageId(image.image, opts)) === null ? true : undefined);
        await this.#until(call.method, opts, { kind: 'RemoveImage', pod: '', uid: '', what: `removed image ${image.image}` }, look);
        return {};
      }
      case 'UpdateContainerResources':
        return this.#resources(call.req, opts);
      case 'ExecSync':
        // Hooks: the kubelet runs them, and the runtime does not tell that it did.
        return { stdout: new Uint8Array(), stderr: new Uint8Array(), exitCode: 0 };
      case 'UpdateRuntimeConfig':
      case 'UpdatePodSandboxResources':
      case 'ReopenContainerLog':
        // The runtime shows nothing of these.
        return {};
      default:
        throw refusal(call.method);
    }
  }

  async #ofContainer(call: Extract<AnyCall, { method: keyof typeof CONTAINER_ACTS }>, opts: CallOpts): Promise<unknown> {
    const { containerId } = call.req;
    const { done, shows } = CONTAINER_ACTS[call.method];
    const grace = call.method === 'StopContainer' ? { boundMs: Number(call.req.timeout) * 1_000 + STOP_EXTRA_MS } : {};
    const shown = ({ containers }: Listing) => {
      const state = containers.find((c) => c.id === containerId)?.state;
      // It was started, and has gone before this looked: the tree looks again, and makes the next one.
      if (state === undefined && call.method === 'StartContainer') return true;
      const why = call.method === 'StartContainer' && state === 'CONTAINER_CREATED' ? this.#o.startFailure(containerId) : null;
      if (why !== null) throw failed(call.method, UNKNOWN, why);
      return shows(state) ? true : undefined;
    };
    await this.#wait(call, opts, { ...this.#listings.podOf(containerId), what: `${done} ${this.#named(containerId)}`, ...grace }, shown);
    if (call.method === 'StartContainer') await this.#failedStart(containerId, opts);
    return {};
  }

  /** Why a start failed, the runtime told the kubelet alone. The container says it, too. */
  async #failedStart(containerId: string, { signal }: CallOpts): Promise<void> {
    const status = await this.#cri.call('ContainerStatus', { containerId }, { timeoutMs: LOOK_TIMEOUT_MS, signal }).catch(() => null);
    if (status?.status?.reason === 'StartError') throw failed('StartContainer', UNKNOWN, status.status.message);
  }

  async #ofSandbox(call: Extract<AnyCall, { method: 'StopPodSandbox' | 'RemovePodSandbox' }>, opts: CallOpts): Promise<unknown> {
    const { podSandboxId } = call.req;
    const stops = call.method === 'StopPodSandbox';
    const of = this.#listings.podOf(podSandboxId);
    const shown = ({ sandboxes, containers }: Listing) => {
      const sandbox = sandboxes.find((s) => s.id === podSandboxId);
      // A kubelet stops its containers first, and one, too, that it began while the pod was ended.
      if (stops && containers.some((c) => c.podSandboxId === podSandboxId && c.state === 'CONTAINER_RUNNING'))
        this.#o.expectations.excused(({ kind, uid }) => kind === 'StopPodSandbox' && uid === of.uid);
      return sandbox === undefined || (stops && sandbox.state === 'SANDBOX_NOTREADY') ? true : undefined;
    };
    const what = `${stops ? 'stopped' : 'removed'} sandbox ${short(podSandboxId)}`;
    // A kubelet that pulls for a pod ends it when the pull is over.
    await this.#wait(call, opts, { ...of, what, isJudged: () => !this.#o.isCreating(of.uid) }, shown);
    return {};
  }

  async #pull({ image, sandboxConfig }: CriRequest<'PullImage'>, opts: CallOpts): Promise<CriResponse<'PullImage'>> {
    const of = sandboxConfig === undefined ? { pod: '', uid: '' } : podOf(sandboxConfig.metadata);
    const asked = image.userSpecifiedImage ?? image.image;
    const held = await this.#imageId(image.image, opts);
    const sinceMs = this.#o.clock.wallMs() - FIRST_BACK_OFF_MS;
    const look = async () => {
      const id = await this.#imageId(image.image, opts);
      // An image that was there already: what came of it tells that it was asked for again.
      const users = id === null || id !== held ? [] : this.#o.usersOf(asked, of.uid);
      if (id !== null && (users.length === 0 || users.some((name) => this.#listings.isMade({ uid: of.uid, name, sinceMs })))) return id;
      const uid = id === null ? undefined : of.uid;
      const why = this.#o.pullFailure(asked, uid) ?? this.#o.pullFailure(image.image, uid);
      if (why !== null) throw failed('PullImage', UNKNOWN, why);
      return undefined;
    };
    return { imageRef: await this.#until('PullImage', opts, { kind: 'PullImage', ...of, what: `pulled image ${image.image}` }, look) };
  }

  async #resources({ containerId, linux }: CriRequest<'UpdateContainerResources'>, opts: CallOpts): Promise<unknown> {
    const wanted = Object.entries(linux ?? {}).filter(([, value]) => typeof value !== 'object');
    const look = async () => {
      const { status } = await this.#cri.call('ContainerStatus', { containerId }, { timeoutMs: opts.timeoutMs, signal: opts.signal });
      const has = status?.resources?.linux;
      // A runtime that does not say what is in force is believed.
      if (has === undefined || has === null) return true;
      return wanted.every(([key, value]) => String(has[key as keyof typeof has] ?? 0) === String(value)) ? true : undefined;
    };
    const what = `changed the resources of ${this.#named(containerId)}`;
    const wish = { kind: 'UpdateContainerResources' as const, ...this.#listings.podOf(containerId), what };
    await this.#until('UpdateContainerResources', opts, wish, look);
    return {};
  }

  async #imageId(image: string, { signal }: CallOpts): Promise<string | null> {
    const { image: found } = await this.#cri.call('ImageStatus', { image: { image } }, { timeoutMs: LOOK_TIMEOUT_MS, signal });
    return found === null || found.id === '' ? null : found.id;
  }

  /** Until a listing of the runtime shows it. */
  async #wait<T>(
    { method }: { method: (typeof LISTED)[number] },
    opts: CallOpts,
    wanted: Omit<Wanted, 'kind'>,
    shown: (listing: Listing) => T | undefined,
  ): Promise<T> {
    const expectation = this.#o.expectations.expect({ ...wanted, kind: method });
    return settled(method, expectation, opts, () => this.#listings.until(shown, opts));
  }

  /** Until a question of its own shows it. */
  async #until<T>(method: CriMethod, opts: CallOpts, wanted: Wanted, look: () => Promise<T | undefined>): Promise<T> {
    const expectation = this.#o.expectations.expect(wanted);
    return settled(method, expectation, opts, () => untilShown(this.#o.clock, { look, ...opts }));
  }

  #named(containerId: string): string {
    const name = this.#listings.nameOf(containerId);
    return name === '' ? `container ${short(containerId)}` : `container ${name} (${short(containerId)})`;
  }
}

async function settled<T>(
  method: CriMethod,
  expectation: Expectation,
  opts: CallOpts,
  wait: () => ReturnType<typeof untilShown<T>>,
): Promise<T> {
  let end: Awaited<ReturnType<typeof untilShown<T>>>;
  try {
    end = await wait();
  } catch (error) {
    expectation.withdrawn();
    throw error;
  }
  if (end.kind === 'shown') {
    expectation.came();
    return end.value;
  }
  if (end.kind === 'given up') {
    expectation.withdrawn();
    throw new CriError({ method, code: CANCELLED, outcome: 'unknown', details: 'the wait for the kubelet was given up' });
  }
  expectation.unanswered();
  const details = `the kubelet has not done it within ${opts.timeoutMs} ms`;
  throw new CriError({ method, code: DEADLINE_EXCEEDED, outcome: 'unknown', details });
}

function podOf({ namespace, name, uid }: { namespace: string; name: string; uid: string }): { pod: string; uid: string } {
  return { pod: `${namespace}/${name}`, uid };
}

function short(id: string): string {
  return id.slice(0, 13);
}

function failed(method: CriMethod, code: number, details: string): CriError {
  return new CriError({ method, code, outcome: 'failed', details });
}

function refusal(method: CriMethod): CriError {
  return failed(method, PERMISSION_DENIED, 'this node is only observed: its kubelet is another program');
}
