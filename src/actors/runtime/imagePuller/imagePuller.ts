/**
 * State held: pulls under way, the back-off of failed pulls per pod and image, the pull rate bucket.
 * Lost on restart: all of it; pulls are cancelled and asked for again by their workers, back-off begins at its first step.
 * Rebuilt from: the runtime, which knows the images that are present.
 */

import { fromPromise } from 'xstate';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import { shownImage, withDefaultTag } from '../../../machines/kube/imageRef.ts';
import { peerViews } from '../../../machines/pod/peers/peers.ts';
import type { StartFailure } from '../../../machines/pod/runtime/seen.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { repositoryOf } from '../../../machines/runtime/imagePuller/credentialProviders.ts';
import { dockerFiles } from '../../../machines/runtime/imagePuller/dockerFiles.ts';
import { ImageBackoffs, remainingMs } from '../../../machines/runtime/imagePuller/imageBackoff.ts';
import { decideImage, type ImageEventText, imageEvents, imageFailures } from '../../../machines/runtime/imagePuller/imagePolicy.ts';
import { imagePullerMachine, type PullerEvent, type PullerFacts } from '../../../machines/runtime/imagePuller/imagePullerMachine.ts';
import { imagePullMachine, type PullBegan, type PullInput, type Settled } from '../../../machines/runtime/imagePuller/imagePullMachine.ts';
import type { OwnedAuth } from '../../../machines/runtime/imagePuller/keyring.ts';
import {
  type ImageEvent,
  type ImageRemovedEvent,
  type ImageResult,
  imagePulls,
  type Span,
} from '../../../machines/runtime/imagePuller/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Image, ImageSpec } from '../../../machines/wire/cri.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { CriError } from '../../../ports/ports.ts';
import { peerCalls } from '../../foundation/client.ts';
import { accountSource } from '../../services/client.ts';
import { type JoinedSignal, joinSignals } from '../../supervision/signals.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { type CriClient, criClient } from '../client.ts';
import { type ImageSeen, type PullMetrics, pullMetrics } from './metrics.ts';
import { NodeKeyring } from './nodeKeyring.ts';
import { ProviderKeyring, type PullingPod } from './providers.ts';
import { namesOf, PullRecords, type VerificationOptions } from './pullRecords.ts';
import { type PullResult, Pulls } from './pulls.ts';

export interface ImagePullerOptions {
  runtimeRequestTimeoutMs?: number;
  /** Config field serializeImagePulls, default true: one pull at a time. */
  serializeImagePulls?: boolean;
  /** Config field maxParallelImagePulls; null or absent = no bound. Ignored while pulls are serial. */
  maxParallelImagePulls?: number | null;
  /** Config field registryPullQPS, default 5; 0 = no limit. */
  registryPullQPS?: number;
  /** Config field registryBurst, default 10. */
  registryBurst?: number;
  /** Images that come from no registry. Default: none. */
  isBuiltIn?(image: string): boolean;
  /** Below it may be files with the node's own credentials. Absent: none are looked for. */
  rootDir?: string;
  /** The node's own credentials that match an image, best first. Default: of files, then what the programs of its ports know. */
  credentials?(image: string, of: PullingPod): Promise<readonly OwnedAuth[]>;
  /** Whether a pod has to show that it may use an image that is there. Absent: nobody has. */
  verification?: VerificationOptions | null;
}

type PullerMessage = ImageEvent | ImageRemovedEvent;

/** What is known of a request beside its machine. */
interface Work {
  joined: JoinedSignal;
  signal: AbortSignal;
  askedMonoMs: number;
  /** With a tag. */
  image: ImageSpec;
  /** Secret. */
  auths: readonly OwnedAuth[];
}

interface ImageRequest {
  /** Unique within one incarnation of the image puller. */
  id: number;
  event: ImageEvent;
}

/** Events and reasons name an image as the pod does; the runtime is told it with its tag. */
class ImagePuller {
  readonly #ctx: ActorCtx<PullerMessage>;
  readonly #cri: CriClient;
  readonly #backoffs = new ImageBackoffs();
  readonly #pulls: Pulls;
  readonly #credentials: NodeCredentials['all'];
  readonly #ofAccount: NodeCredentials['ofAccount'];
  readonly #records: PullRecords | null;
  readonly #metrics: PullMetrics;
  readonly #works = new Map<number, Work>();
  #spans: ReadonlyMap<string, Span> = new Map();

  constructor(ctx: ActorCtx<PullerMessage>, o: ImagePullerOptions, onChange: (active: number) => void) {
    this.#ctx = ctx;
    this.#cri = criClient(ctx.registry, o);
    const known = nodeCredentials(ctx, o.rootDir);
    this.#credentials = o.credentials ?? known.all;
    this.#ofAccount = known.ofAccount;
    this.#metrics = pullMetrics(ctx.ports.metrics);
    const { log, ports, signal } = ctx;
    const images = async () => (await this.#cri.read('ListImages', {}, { signal })).images;
    this.#records = o.verification
      ? new PullRecords({ ...o.verification, ports, log, images, checked: (result) => this.#metrics.checked(result) })
      : null;
    this.#pulls = new Pulls({
      cri: this.#cri,
      clock: ctx.ports.clock,
      parallelMax: (o.serializeImagePulls ?? true) ? 1 : (o.maxParallelImagePulls ?? Number.POSITIVE_INFINITY),
      qps: o.registryPullQPS ?? 5,
      burst: o.registryBurst ?? 10,
      isBuiltIn: o.isBuiltIn ?? (() => false),
      onChange,
    });
  }

  progress(): string {
    const pulls = this.#pulls.progress();
    return `pulling ${pulls.slice(0, 5).join(', ')}${pulls.length > 5 ? ` and ${pulls.length - 5} more` : ''}`;
  }
  /** An image is gone. */
  async forget(imageRef: string): Promise<void> {
    await this.#records?.forget(imageRef);
  }
  collect(): void {
    this.#backoffs.collect(this.#ctx.ports.clock.monoMs());
  }

  #worked(request: ImageRequest): Work {
    const known = this.#works.get(request.id);
    if (known !== undefined) return known;
    // An asker that gave up and an incarnation that ended have nobody to answer.
    const joined = joinSignals(request.event.replyTo.signal, this.#ctx.signal);
    const work = { joined, signal: joined.signal, askedMonoMs: this.#ctx.ports.clock.monoMs(), image: { image: '' }, auths: [] };
    this.#works.set(request.id, work);
    return work;
  }

  answer({ id, event }: ImageRequest, result: ImageResult): void {
    const work = this.#works.get(id);
    this.#works.delete(id);
    work?.joined[Symbol.dispose]();
    if (work?.signal.aborted === false) event.replyTo(result);
  }

  async look(request: ImageRequest): Promise<Settled | null> {
    const seen: ImageSeen = { present: null, pullRequired: null };
    try {
      return await this.#lookAt(request, seen);
    } finally {
      this.#metrics.asked(request.event.policy, seen);
    }
  }

  async #lookAt(request: ImageRequest, seen: ImageSeen): Promise<Settled | null> {
    const { event } = request;
    const work = this.#worked(request);
    const { signal } = work;
    const named = withDefaultTag(event.image);
    if (!named.ok) {
      const shown = shownImage(event.image);
      this.#say(event, imageEvents.invalidName(shown, named.error));
      return failed(imageFailures.invalidName(shown, named.error));
    }
    const { image } = named;
    work.image = { image, ...(event.annotations === undefined ? {} : { annotations: event.annotations }) };
    let present: Image | null = null;
    // With Always the presence decides nothing. A pull also mends an image of which the runtime can tell nothing.
    if (event.policy !== 'Always') {
      try {
        present = (await this.#cri.read('ImageStatus', { image: work.image }, { signal })).image;
      } catch (error) {
        if (!(error instanceof CriError)) throw error;
        if (!signal.aborted) this.#say(event, imageEvents.inspectFailed(event.image, error.details));
        return failed(imageFailures.inspect(event.image, error.details));
      }
      seen.present = present !== null;
    }
    const decision = decideImage(event.policy, present !== null);
    if (decision === 'present' && present !== null && !(await this.#mustPull(event, image, present))) {
      seen.pullRequired = false;
      this.#say(event, (this.#records === null ? imageEvents.present : imageEvents.accessible)(event.image));
      return { result: { ok: true, imageRef: present.id, image: present, pulled: false }, backOffMs: 0 };
    }
    if (present !== null || event.policy !== 'Never') seen.pullRequired = true;
    if (decision === 'pull' || (decision === 'present' && event.policy === 'IfNotPresent')) return this.#heldBack(event, image);
    this.#say(event, imageEvents.never(event.image));
    return failed(imageFailures.never(event.image));
  }

  /** Null: no back-off is in force. */
  #heldBack(event: ImageEvent, image: string): Settled | null {
    const waiting = this.#backoffs.get(event.uid, image);
    const backOffMs = remainingMs(waiting, this.#ctx.ports.clock.monoMs());
    if (waiting === undefined || backOffMs <= 0) return null;
    this.#say(event, imageEvents.backOff(event.image));
    return failed(imageFailures.backOff(event.image, waiting.previous), backOffMs);
  }

  async #mustPull(event: ImageEvent, image: string, present: Image): Promise<boolean> {
    if (this.#records === null) return false;
    const auths = async (): Promise<readonly OwnedAuth[]> => {
      const { credentials: own } = event;
      const ofAccount = this.#ofAccount === null ? [] : await this.#ofAccount(image, pullingPod(event));
      return [...(own?.ok === true ? own.auths : []), ...ofAccount];
    };
    return this.#records.mustPull({ image, imageRef: present.id, listed: namesOf(present), auths });
  }

  async collectCredentials(request: ImageRequest): Promise<Settled | null> {
    const { event } = request;
    const work = this.#worked(request);
    const { image } = work.image;
    this.#say(event, imageEvents.pulling(event.image));
    // The pod's own secrets first, then what the node has.
    const own = event.credentials ?? { ok: true, auths: [] };
    if (!own.ok) return this.#settled(event, work, { ok: false, error: own.message, beganMonoMs: null });
    work.auths = [...own.auths, ...(await this.#credentials(image, pullingPod(event)))];
    try {
      await this.#records?.begin(image);
    } catch (error) {
      const failure = imageFailures.unrecorded(event.image, messageOf(error));
      this.#say(event, imageEvents.pullFailed(event.image, failure.message));
      return failed(failure);
    }
    return null;
  }

  async pull(request: ImageRequest, began: () => void): Promise<Settled> {
    const { event } = request;
    const work = this.#worked(request);
    const { image, auths, signal } = work;
    const result = await this.#pulls.pull({ image, auths, sandboxConfig: event.sandboxConfig }, signal, began);
    await this.#recorded(image.image, result, work);
    return this.#settled(event, work, result);
  }

  #settled(event: ImageEvent, { image: { image }, askedMonoMs, signal }: Work, result: PullResult): Settled {
    const { clock } = this.#ctx.ports;
    // A pull that its pod gave up has not failed: it must neither back off nor be reported.
    if (signal.aborted) return failed({ reason: 'ErrImagePull', message: 'the pull was cancelled' });
    if (!result.ok) {
      const error = `${result.error}${this.#uncredited(image)}`;
      const failure = imageFailures.pull(event.image, error);
      const known = this.#backoffs.get(event.uid, image);
      // Another container of this pod shared the pull: its failure counts once.
      const counted = known !== undefined && result.beganMonoMs !== null && known.failedAtMonoMs >= result.beganMonoMs;
      if (!counted)
        this.#backoffs.failed({ uid: event.uid, image, nowMonoMs: clock.monoMs(), previous: `${failure.reason}: ${failure.message}` });
      this.#say(event, imageEvents.pullFailed(event.image, error));
      return failed(failure, remainingMs(this.#backoffs.get(event.uid, image), clock.monoMs()));
    }
    const { pullMs } = result;
    const totalMs = clock.monoMs() - askedMonoMs;
    this.#metrics.pulled(Number(result.image?.size ?? 0), pullMs / 1000);
    this.#spent(event.uid, totalMs);
    this.#say(event, imageEvents.pulled(event.image, { pullMs, totalMs, bytes: result.image?.size ?? '0' }));
    this.#backoffs.collect(clock.monoMs());
    return { result: { ok: true, imageRef: result.imageRef, image: result.image, pulled: true }, backOffMs: 0 };
  }

  /** Credential providers that gave nothing for it: the registry knows nothing of them. */
  #uncredited(image: string): string {
    const words = this.#ctx.registry.read(peerViews.credentials)?.value.values() ?? [];
    const repository = repositoryOf(image)?.repository;
    const failed = [...words].filter((w) => w.about === repository && w.error !== '');
    return failed.map(({ peer, error }) => `; ${peer} gave nothing: ${error}`).join('');
  }

  async #recorded(image: string, result: PullResult, o: { auths: readonly OwnedAuth[]; signal: AbortSignal }): Promise<void> {
    if (!result.ok) return this.#records?.failed(image, { unknown: o.signal.aborted || result.unknown === true });
    const imageRef = result.image?.id ?? result.imageRef;
    await this.#records?.pulled({ image, imageRef, listed: namesOf(result.image), auth: o.auths[result.used] ?? null });
  }

  /** What a pod waited for its images, until now: its start is measured without it. */
  #spent(uid: string, ms: number): void {
    const { ports, registry } = this.#ctx;
    const toMs = ports.clock.wallMs();
    const known = registry.read(podsView)?.value.records;
    const kept = [...this.#spans].filter(([other]) => known?.has(other) === true);
    const fromMs = Math.min(this.#spans.get(uid)?.fromMs ?? toMs, toMs - ms);
    this.#spans = new Map([...kept, [uid, { fromMs, toMs }]]);
    this.#ctx.publish(imagePulls, this.#spans);
  }

  #say(event: ImageEvent, text: ImageEventText): void {
    this.#ctx.registry.send(eventsAddr, {
      type: 'event.record',
      ...(event.causes === undefined ? {} : { causes: event.causes }),
      event: { ...text, pod: event.podRef, fieldPath: event.fieldPath },
    });
  }
}

interface NodeCredentials {
  all(image: string, of: PullingPod): Promise<readonly OwnedAuth[]>;
  /** What shows that a pod may use an image that is there. Null: nothing does but its secrets. */
  ofAccount: ((image: string, of: PullingPod) => Promise<readonly OwnedAuth[]>) | null;
}
function nodeCredentials(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'signal' | 'publish'>,
  rootDir: string | undefined,
): NodeCredentials {
  const { ports, log, signal } = ctx;
  const places = rootDir === undefined ? [] : dockerFiles({ working: '', home: '', ...ports.host.folders, rootDir });
  const files = new NodeKeyring({ ports, log, places });
  const { credentialPrograms: programs } = ports;
  if (programs === undefined) return { all: (image) => files.credentials(image), ofAccount: null };
  const calls = peerCalls(ctx, peerViews.credentials);
  const keyring = new ProviderKeyring({ ports, log, programs, signal, accounts: accountSource(ctx), calls });
  const tells = programs.providers.some((p) => p.tokenAttributes !== undefined);
  return {
    all: async (image, of) => [...(await files.credentials(image)), ...(await keyring.credentials(image, of))],
    ofAccount: tells ? (image, of) => keyring.accountCredentials(image, of) : null,
  };
}

function pullingPod(event: ImageEvent): PullingPod {
  return { pod: event.podRef, serviceAccount: event.serviceAccount ?? '' };
}

function failed(failure: StartFailure, backOffMs = 0): Settled {
  return { result: { ok: false, failure }, backOffMs };
}

function pullerActor(ctx: ActorCtx<PullerMessage>, o: ImagePullerOptions) {
  let puller: ImagePuller | undefined;
  let tell: (event: PullerEvent | PullBegan) => void = () => {};
  const mine = (): ImagePuller => {
    puller ??= new ImagePuller(ctx, o, (active) => {
      if (!ctx.signal.aborted) tell({ type: 'pulls.changed', active });
    });
    return puller;
  };
  const requests = new Map<number, ImageRequest>();
  const asked = (request: number): ImageRequest => {
    const known = requests.get(request);
    if (known === undefined) throw new Error(`image puller: request ${request} is answered already`);
    return known;
  };
  const pull = provided(imagePullMachine, {
    actors: {
      look: fromPromise<Settled | null, PullInput>(({ input }) => mine().look(asked(input.request))),
      collectCredentials: fromPromise<Settled | null, PullInput>(({ input }) => mine().collectCredentials(asked(input.request))),
      pull: fromPromise<Settled, PullInput>(({ input: { id, request } }) =>
        mine().pull(asked(request), () => tell({ type: 'pull.began', id })),
      ),
    },
    actions: {
      answer: (_, { request, settled }) => {
        if (settled !== null) mine().answer(asked(request), settled.result);
        requests.delete(request);
      },
    },
  });
  const facts: PullerFacts = {
    get progress() {
      return puller?.progress() ?? '';
    },
  };
  const logic = provided(
    imagePullerMachine,
    {
      actors: { pull },
      actions: {
        attach: ({ self }) => {
          tell = (event) => self.send(event);
        },
        accept: (_, { request, event }) => requests.set(request, { id: request, event }),
        forget: (_, { imageRef }) => {
          mine()
            .forget(imageRef)
            .catch((error: unknown) => {
              if (!ctx.signal.aborted) tell({ type: 'puller.broken', error: error instanceof Error ? error : new Error(String(error)) });
            });
        },
        collect: () => puller?.collect(),
      },
    },
    () => facts,
  );
  return { logic };
}

export function imagePullerSpec(o: ImagePullerOptions = {}): ActorSpec<PullerMessage> {
  return {
    type: 'actor',
    id: 'imagePuller',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 4096, overflow: 'reject' },
    start: (ctx) => pullerActor(ctx, o),
  };
}
