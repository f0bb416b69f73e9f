/** Pods and their metrics, as a cluster shows them, by the images of their containers. Nothing else of a pod is looked at. Pure. */
import { userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import { dnsSubdomain } from '@actorlet/kubelet/machines/kube/names.ts';
import { quantityToInteger, quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { recordOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { counted } from '../run/counted.ts';
import { Behaviour } from './behaviour.ts';

type Fields = Record<string, unknown>;

const IMAGES_MAX = 1_000;
/** Containers whose usage is brought together with their images. */
const CONTAINERS_MAX = 300_000;
const CONTAINERS_OF_POD_MAX = 256;
/** A repository, with or without its registry. */
const REPOSITORY = /^[A-Za-z0-9][\w.-]*(?::\d{1,5})?(?:\/[A-Za-z0-9][\w.-]*)*$/;
const IMAGE_CHARS_MAX = 512;
const REASON = /^[A-Za-z]{1,40}$/;
/** What the exit code says already. */
const PLAIN_REASONS: readonly string[] = ['Completed', 'Error'];
const SIGKILL = 137;

interface Uses {
  init?: Behaviour;
  main?: Behaviour;
}
interface Usage {
  cpuMilli: number;
  memoryBytes: number;
}

export class ImageUses {
  readonly #keepNames: boolean;
  readonly #rng = simRng('from');
  /** By what a rule calls the image. */
  readonly #uses = new Map<string, Uses>();
  readonly #sizes = new Map<string, number>();
  readonly #pods = new Set<string>();
  /** By namespace, pod and container: which came first. */
  readonly #images = new Map<string, Behaviour>();
  readonly #usage = new Map<string, Usage>();
  #count = 0;
  #over = 0;

  /** @param keepNames Else registries and folders of images are left out. */
  constructor(keepNames: boolean) {
    this.#keepNames = keepNames;
  }

  get count(): number {
    return this.#count;
  }

  /** A text: why it is no pod that tells anything. */
  addPod(object: Fields): string | null {
    const { name, namespace = 'default' } = recordOf(object.metadata);
    if (typeof name !== 'string' || typeof namespace !== 'string' || dnsSubdomain(name) !== null || dnsSubdomain(namespace) !== null)
      return 'its name is none that a pod can have';
    const pod = `${namespace}/${name}`;
    if (this.#pods.has(pod)) return null;
    this.#count += 1;
    // Of more pods a second dump counts twice.
    if (this.#pods.size < CONTAINERS_MAX) this.#pods.add(pod);
    const { spec, status } = { spec: recordOf(object.spec), status: recordOf(object.status) };
    const endsOnce = spec.restartPolicy === 'Never' || spec.restartPolicy === 'OnFailure';
    let beforeMs = timeOf(status.startTime);
    let trouble: string | null = null;
    for (const kind of ['init', 'main'] as const) {
      const isInit = kind === 'init';
      const containers = listOf(isInit ? spec.initContainers : spec.containers);
      const statuses = listOf(isInit ? status.initContainerStatuses : status.containerStatuses);
      const byName = new Map(statuses.map((of) => [of.name, of]));
      for (const container of containers) {
        const seen = byName.get(container.name);
        const image = this.#nameOf(container.image);
        if (image === null) trouble = 'an image of it is none that a rule can name';
        if (image === null || seen === undefined) continue;
        const behaviour = this.#behaviourOf(image, kind);
        if (behaviour === null) continue;
        const isSidecar = isInit && container.restartPolicy === 'Always';
        const startedMs = firstStartOf(seen);
        const startMs = startedMs === null || beforeMs === null ? null : Math.max(0, startedMs - beforeMs);
        behaviour.add({ startMs, ...lifeOf(seen), endsOnce: !isSidecar && (endsOnce || isInit) });
        // Containers start one after the other, and init containers end before the next one starts.
        beforeMs = (isInit && !isSidecar ? finishedOf(seen) : startedMs) ?? beforeMs;
        this.#join(`${pod}/${String(container.name)}`, behaviour);
      }
    }
    return trouble;
  }

  addMetrics(object: Fields): string | null {
    const { name, namespace = 'default' } = recordOf(object.metadata);
    for (const container of listOf(object.containers)) {
      const usage = recordOf(container.usage);
      const [cpu, memory] = [usage.cpu, usage.memory].map((of) => (typeof of === 'string' || typeof of === 'number' ? of : undefined));
      const [cpuMilli, memoryBytes] = [quantityToMilli(cpu), quantityToInteger(memory)];
      if (cpu === undefined || memory === undefined || !(cpuMilli >= 0) || !(memoryBytes >= 0)) return 'its usage cannot be read';
      const key = `${String(namespace)}/${String(name)}/${String(container.name)}`;
      const behaviour = this.#images.get(key);
      if (behaviour !== undefined) behaviour.used(cpuMilli, memoryBytes);
      else if (this.#usage.size < CONTAINERS_MAX) this.#usage.set(key, { cpuMilli, memoryBytes });
    }
    return null;
  }

  /** As a node lists them. */
  addSizes(images: unknown): void {
    for (const { names, sizeBytes } of listOf(images)) {
      if (typeof sizeBytes !== 'number' || !Number.isSafeInteger(sizeBytes) || sizeBytes <= 0) continue;
      for (const name of Array.isArray(names) ? names.slice(0, CONTAINERS_OF_POD_MAX) : []) {
        const image = this.#nameOf(name);
        if (image !== null && (this.#sizes.size < IMAGES_MAX || this.#sizes.has(image)))
          this.#sizes.set(image, Math.max(sizeBytes, this.#sizes.get(image) ?? 0));
      }
    }
  }

  written(): { images: Record<string, unknown>[]; pods: Record<string, unknown>[]; notes: string[] } {
    const names = [...this.#uses.keys()].sort();
    return {
      images: names.flatMap((image) => {
        const size = this.#sizes.get(image);
        return size === undefined ? [] : [{ name: this.#patterns(image), size }];
      }),
      pods: names.flatMap((image) => {
        const { init, main } = this.#uses.get(image) ?? {};
        const images = this.#patterns(image);
        return [
          ...(init?.rules({ images, which: 'init' }) ?? []),
          ...(main?.rules({ images, ...(init === undefined ? {} : { which: 'main' }) }) ?? []),
        ];
      }),
      notes:
        this.#over === 0
          ? []
          : [`without a rule: ${counted(this.#over, 'containers')}, since a file has rules for ${IMAGES_MAX} images at most`],
    };
  }

  #join(key: string, behaviour: Behaviour): void {
    const usage = this.#usage.get(key);
    if (usage === undefined) {
      if (this.#images.size < CONTAINERS_MAX) this.#images.set(key, behaviour);
      return;
    }
    this.#usage.delete(key);
    behaviour.used(usage.cpuMilli, usage.memoryBytes);
  }

  #behaviourOf(image: string, kind: keyof Uses): Behaviour | null {
    let uses = this.#uses.get(image);
    if (uses === undefined) {
      if (this.#uses.size >= IMAGES_MAX) {
        this.#over += 1;
        return null;
      }
      uses = {};
      this.#uses.set(image, uses);
    }
    uses[kind] ??= new Behaviour(this.#rng);
    return uses[kind];
  }

  /** The repository without tag and digest; without `keepNames` its last part alone. */
  #nameOf(image: unknown): string | null {
    if (typeof image !== 'string' || image.length > IMAGE_CHARS_MAX) return null;
    const [named = ''] = image.slice(afterUser(image)).split('@');
    const slash = named.lastIndexOf('/');
    const colon = named.indexOf(':', slash + 1);
    const repository = colon < 0 ? named : named.slice(0, colon);
    if (!REPOSITORY.test(repository)) return null;
    return this.#keepNames ? repository : repository.slice(slash + 1);
  }

  /** With any tag and digest, and in any registry where its own is not named. */
  #patterns(image: string): string[] {
    const own = [image, `${image}:*`, `${image}@*`];
    return this.#keepNames && image.includes('/') ? own : [...own, ...own.map((of) => `**/${of}`)];
  }
}

/** Where the reference begins, behind what some write before its registry. */
function afterUser(image: string): number {
  const user = userOfImage(image);
  return user === null ? 0 : user.to + 1;
}

function lifeOf(status: Fields): {
  restarts: number;
  running: boolean;
  ended: { exit: number; reason: string; runMs: number | null } | null;
} {
  const { restartCount } = status;
  const state = recordOf(status.state);
  const restarts = typeof restartCount === 'number' && Number.isSafeInteger(restartCount) && restartCount >= 0 ? restartCount : 0;
  const ended = [state.terminated, recordOf(status.lastState).terminated].find(isRecord);
  if (ended === undefined) return { restarts, running: isRecord(state.running), ended: null };
  const { exitCode, reason } = ended;
  const exit = typeof exitCode === 'number' && exitCode >= 0 && exitCode <= 255 ? exitCode : SIGKILL;
  const told = typeof reason === 'string' && REASON.test(reason) && !PLAIN_REASONS.includes(reason) ? reason : '';
  const [fromMs, toMs] = [timeOf(ended.startedAt), timeOf(ended.finishedAt)];
  const runMs = fromMs === null || toMs === null || toMs < fromMs ? null : toMs - fromMs;
  return { restarts, running: isRecord(state.running), ended: { exit, reason: told, runMs } };
}

/** Null: it was restarted, so its first start is not told any more, or it has not started. */
function firstStartOf(status: Fields): number | null {
  if (status.restartCount !== 0 && status.restartCount !== undefined) return null;
  const state = recordOf(status.state);
  return timeOf(recordOf(state.running).startedAt) ?? timeOf(recordOf(state.terminated).startedAt);
}

function finishedOf(status: Fields): number | null {
  return timeOf(recordOf(recordOf(status.state).terminated).finishedAt);
}

function timeOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.slice(0, CONTAINERS_OF_POD_MAX).filter(isRecord) : [];
}
