/**
 * State held: since when each image is known, when it was last used, collections that failed in a row.
 * Lost on restart: a collection in progress. With the daemon all of it: what is there then counts as old.
 * Rebuilt from: its own view (the rest), the runtime's lists.
 */

import { fromPromise } from 'xstate';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import {
  detected,
  type ImageGcPolicy,
  type ImageLedger,
  type ImageRoom,
  imageLedger,
  imagesOfContainers,
  isImageUsed,
  NO_CAPACITY,
  namedImages,
  planImages,
  tooLittleText,
  wholeName,
} from '../../../machines/reclaim/imageGc/imageGc.ts';
import { type ImageLook, type ImageOutcome, imageGcMachine } from '../../../machines/reclaim/imageGc/imageGcMachine.ts';
import type { ImageGcEvent } from '../../../machines/reclaim/messages.ts';
import { imagePullerAddr } from '../../../machines/runtime/imagePuller/messages.ts';
import type { Image } from '../../../machines/wire/cri.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { CriError } from '../../../ports/ports.ts';
import { type CriClient, criClient } from '../../runtime/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { exists } from '../files.ts';

export interface ImageGcOptions {
  policy: ImageGcPolicy;
  /** `--pod-infra-container-image`: kept also where the runtime does not pin it; '' = none is named. */
  sandboxImage: string;
}
/** The first failure is no event: the runtime may just not be up yet (trap 33). */
const FAILURES_REPORTED_FROM = 2;

export function imageGcSpec(o: ImageGcOptions): ActorSpec<ImageGcEvent> {
  return {
    type: 'actor',
    id: 'imageGc',
    backoff: { minMs: 1_000, maxMs: 30_000, jitter: 0.1 },
    mailbox: { capacity: 64 },
    start: (ctx) => {
      const collector = new Collector(ctx, o);
      const asks = new Map<number, ImageGcEvent['replyTo']>();
      return {
        logic: provided(imageGcMachine, {
          actors: {
            look: fromPromise<ImageLook, { ledger: ImageLedger; all: boolean }>(({ input, signal }) => collector.look(input, signal)),
            remove: fromPromise<ImageOutcome, ImageLook>(({ input, signal }) => collector.remove(input, signal)),
          },
          actions: {
            publish: (_, { ledger, error }) => collector.publish(ledger, error),
            keep: (_, { ask, replyTo }) => asks.set(ask, replyTo),
            reply: (_, { asks: answered, freedBytes }) => {
              for (const ask of answered) asks.get(ask)?.({ freedBytes });
              for (const ask of answered) asks.delete(ask);
            },
          },
        }),
        input: { ledger: ctx.registry.read(imageLedger)?.value ?? { records: null, sinceMs: ctx.ports.clock.monoMs(), failures: 0 } },
      };
    },
  };
}

class Collector {
  readonly #ctx: ActorCtx<ImageGcEvent>;
  readonly #o: ImageGcOptions;
  readonly #cri: CriClient;
  readonly #collected;
  /** By id, as the last look found them. */
  #images: ReadonlyMap<string, Image> = new Map();
  /** What containers hold, as the last look found it. */
  #held: ReadonlySet<string> = new Set();

  constructor(ctx: ActorCtx<ImageGcEvent>, o: ImageGcOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#cri = criClient(ctx.registry);
    this.#collected = ctx.ports.metrics.counter(
      'kubelet_image_garbage_collected_total',
      'Total number of images garbage collected by the kubelet, whether through disk usage or image age.',
      ['reason'],
    );
  }

  /** @throws CriError, and what the file system says */
  async look({ ledger, all }: { ledger: ImageLedger; all: boolean }, signal: AbortSignal): Promise<ImageLook> {
    // Before it asks: what comes meanwhile is newer than this look.
    const nowMs = this.#ctx.ports.clock.monoMs();
    const [{ images }, { containers }, room] = await Promise.all([
      this.#cri.read('ListImages', {}, { signal }),
      this.#cri.read('ListContainers', {}, { signal }),
      this.#room(signal),
    ]);
    for (const image of images.filter(({ id }) => id === ''))
      this.#say('InvalidImageID', `ImageID is not valid, skipping, image: ${nameOf(image) || '(without a name)'}`);
    const named = images.filter(({ id }) => id !== '');
    this.#images = new Map(named.map((i) => [i.id, i]));
    this.#held = imagesOfContainers(containers);
    const seen = detected(ledger, { images: named, used: (image) => this.#isUsed(image), nowMs });
    return { ledger: seen, plan: planImages(seen, { policy: this.#o.policy, room, all, nowMs }) };
  }

  async remove({ ledger, plan }: ImageLook, signal: AbortSignal): Promise<ImageOutcome> {
    const removed: string[] = [];
    const errors: string[] = [];
    let freedBytes = 0;
    const drop = async (id: string, reason: 'age' | 'space'): Promise<void> => {
      const image = this.#images.get(id);
      // A pod that wants it may have come since the look.
      if (image === undefined || removed.includes(id) || this.#isUsed(image)) return;
      try {
        await this.#cri.read('RemoveImage', { image: { image: id } }, { signal });
      } catch (error) {
        if (!(error instanceof CriError)) throw error;
        errors.push(`${nameOf(image)}: ${error.details}`);
        return;
      }
      removed.push(id);
      freedBytes += ledger.records?.get(id)?.sizeBytes ?? 0;
      this.#collected.inc({ reason });
      // Credentials that it was pulled with give nobody a right any more.
      this.#ctx.registry.send(imagePullerAddr, { type: 'image.removed', imageRef: id });
    };
    for (const id of plan.byAge) await drop(id, 'age');
    for (const id of plan.bySpace) {
      if (freedBytes >= plan.wantedBytes) break;
      await drop(id, 'space');
    }
    if (Number.isFinite(plan.wantedBytes) && freedBytes < plan.wantedBytes) {
      const message = tooLittleText({ plan, policy: this.#o.policy, freedBytes });
      errors.push(message);
      this.#say('FreeDiskSpaceFailed', message);
    }
    const names = removed.map((id) => nameOf(this.#images.get(id)));
    if (removed.length > 0)
      this.#ctx.log.info({ images: names, bytes: freedBytes, usedPercent: plan.usedPercent }, 'images that nobody uses were removed');
    return { removed, freedBytes, errors };
  }

  publish(ledger: ImageLedger, error: string | null): void {
    this.#ctx.publish(imageLedger, ledger);
    if (error === null || this.#ctx.signal.aborted) return;
    this.#ctx.log.warn({ err: error, failures: ledger.failures }, 'collecting images failed; it is tried again in 5 minutes');
    if (ledger.failures >= FAILURES_REPORTED_FROM) this.#say('ImageGCFailed', error);
  }

  #isUsed(image: Image): boolean {
    const named = new Set(namedImages(this.#ctx.registry.read(podsView)?.value.records));
    if (this.#o.sandboxImage !== '') named.add(wholeName(this.#o.sandboxImage));
    return isImageUsed(image, { held: this.#held, named });
  }

  /** Null: images are at no place that this process can see. */
  async #room(signal: AbortSignal): Promise<ImageRoom | null> {
    const { fs } = this.#ctx.ports;
    const { imageFilesystems } = await this.#cri.read('ImageFsInfo', {}, { signal });
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? '';
    if (path === '' || !(await exists(fs, path))) return null;
    const { bytesTotal, bytesAvailable } = await fs.statfs(path);
    if (bytesTotal === 0) {
      this.#say('InvalidDiskCapacity', NO_CAPACITY);
      throw new Error(`${NO_CAPACITY} (${path})`);
    }
    return { capacityBytes: bytesTotal, availableBytes: bytesAvailable };
  }

  #say(reason: string, message: string): void {
    this.#ctx.registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason, message } });
  }
}

function nameOf(image: Image | undefined): string {
  return image?.repoTags[0] ?? image?.repoDigests[0] ?? image?.id ?? '';
}
