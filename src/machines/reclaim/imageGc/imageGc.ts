/** Which images may go, and in which order (resources and volumes 4). Pure. */

import { withDefaultTag } from '../../kube/imageRef.ts';
import type { Pod } from '../../kube/types.ts';
import { isRefused, type PodsView } from '../../pods/manager/messages.ts';
import { fullNameOf } from '../../runtime/imagePuller/messages.ts';
import { isRecord } from '../../shape/conform.ts';
import { viewKey } from '../../supervision/address.ts';
import type { CriContainer, Image } from '../../wire/cri.ts';

export interface ImageGcPolicy {
  /** imageMinimumGCAge: one that was found later than this ago stays. */
  minAgeMs: number;
  /** imageMaximumGCAge: one that nobody used for longer goes, however much room there is; 0: none does. */
  maxAgeMs: number;
  /** imageGCHighThresholdPercent: from here on room is made; 100: never. */
  highPercent: number;
  /** imageGCLowThresholdPercent: this far. */
  lowPercent: number;
}
/** Times are monotonic ms; what was never, or was before this daemon, is -Infinity. */
export interface ImageRecord {
  firstDetectedMs: number;
  lastUsedMs: number;
  sizeBytes: number;
  pinned: boolean;
  /** Tags and digests. */
  names: readonly string[];
}
/** What one daemon knows of images: the next incarnation of the collector goes on with it. */
export interface ImageLedger {
  /** Null before the first look. */
  records: ReadonlyMap<string, ImageRecord> | null;
  /** Since when this daemon looks. */
  sinceMs: number;
  /** Collections that failed one after the other. */
  failures: number;
}
export const imageLedger = viewKey<ImageLedger>('imageLedger');

export interface ImageRoom {
  capacityBytes: number;
  availableBytes: number;
}
/** What a look comes to. Ids, in the order in which they go. */
export interface ImagePlan {
  /** Unused for longer than images are kept. */
  byAge: readonly string[];
  /** May go for the room that they take. */
  bySpace: readonly string[];
  /** Images of `bySpace` go until as much as this was freed; Infinity: all. */
  wantedBytes: number;
  /** How full it is, in percent; null: nobody asked, or it cannot be seen. */
  usedPercent: number | null;
}

/** Every name under which a pod asks for an image: of its containers, and of images that are its volumes. */
export function imagesOfPod({ spec }: Pod): string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
  const volumes = (spec.volumes ?? []).map(({ image }) => (isRecord(image) && typeof image.reference === 'string' ? image.reference : ''));
  return [...containers.map((c) => c.image ?? ''), ...volumes].filter((name) => name !== '');
}

/** Names of images that pods ask for which are not over: theirs may be about to be used. */
export function namedImages(records: PodsView['records'] | undefined): ReadonlySet<string> {
  const names = new Set<string>();
  for (const record of records?.values() ?? []) {
    if (record.worker?.phase === 'finished' || (isRefused(record) && record.worker === null)) continue;
    for (const name of imagesOfPod(record.pod)) names.add(wholeName(name));
  }
  return names;
}

/** As registries have it: with its registry, its folder and its tag. */
export function wholeName(name: string): string {
  const tagged = withDefaultTag(name);
  return fullNameOf(tagged.ok ? tagged.image : name);
}

/** Containers name an image by its id, or by one of its names, as the runtime likes. */
export function imagesOfContainers(containers: readonly CriContainer[]): ReadonlySet<string> {
  return new Set(containers.flatMap((c) => [c.imageRef, c.image?.image ?? '']).filter((ref) => ref !== ''));
}

/** `held`: what containers say; `named`: whole names. */
export function isImageUsed(image: Image, o: { held: ReadonlySet<string>; named: ReadonlySet<string> }): boolean {
  const names = [...image.repoTags, ...image.repoDigests];
  return [image.id, ...names].some((ref) => o.held.has(ref)) || names.some((name) => o.named.has(wholeName(name))) || o.named.has(image.id);
}

/** What is known after a look. All that is there at the first one counts as old (trap 31). */
export function detected(
  ledger: ImageLedger,
  { images, used, nowMs }: { images: readonly Image[]; used: (image: Image) => boolean; nowMs: number },
): ImageLedger & { records: ReadonlyMap<string, ImageRecord> } {
  const records = new Map<string, ImageRecord>();
  for (const image of images) {
    const known = ledger.records?.get(image.id);
    records.set(image.id, {
      firstDetectedMs: known?.firstDetectedMs ?? (ledger.records === null ? Number.NEGATIVE_INFINITY : nowMs),
      lastUsedMs: used(image) ? nowMs : (known?.lastUsedMs ?? Number.NEGATIVE_INFINITY),
      sizeBytes: Number(image.size),
      pinned: image.pinned,
      names: [...image.repoTags, ...image.repoDigests],
    });
  }
  return { ...ledger, records };
}

/** In whole percent, rounded up: what is not left to somebody is used. */
export function usedPercent({ capacityBytes, availableBytes }: ImageRoom): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
}

/** `all`: the node is short of room, and every image goes that may. `room` null: it cannot be seen. */
export function planImages(
  ledger: ImageLedger,
  o: { policy: ImageGcPolicy; room: ImageRoom | null; all: boolean; nowMs: number },
): ImagePlan {
  const { policy, room, nowMs } = o;
  const unused = [...(ledger.records ?? [])]
    .filter(([, r]) => !r.pinned && r.lastUsedMs < nowMs)
    .sort(([a, x], [b, y]) => compare(x.lastUsedMs, y.lastUsedMs) || compare(x.firstDetectedMs, y.firstDetectedMs) || (a < b ? -1 : 1));
  const old = policy.maxAgeMs > 0 && nowMs - ledger.sinceMs > policy.maxAgeMs;
  const byAge = old ? unused.filter(([, r]) => nowMs - Math.max(r.lastUsedMs, r.firstDetectedMs) > policy.maxAgeMs) : [];
  const grown = unused.filter(([, r]) => nowMs - r.firstDetectedMs >= policy.minAgeMs);
  const used = room === null ? null : usedPercent(room);
  const full = room !== null && used !== null && policy.highPercent < 100 && used >= policy.highPercent;
  // As the reference counts: a share of the whole that has to be free, less what is.
  const missing = full
    ? Math.floor((room.capacityBytes * (100 - policy.lowPercent)) / 100) - Math.min(room.availableBytes, room.capacityBytes)
    : 0;
  const wantedBytes = o.all ? Number.POSITIVE_INFINITY : Math.max(0, missing);
  const ids = (list: readonly (readonly [string, ImageRecord])[]) => list.map(([id]) => id);
  return { byAge: ids(byAge), bySpace: wantedBytes > 0 ? ids(grown) : [], wantedBytes, usedPercent: used };
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Too little could be freed. */
export function tooLittleText(o: { plan: ImagePlan; policy: ImageGcPolicy; freedBytes: number }): string {
  const { plan, policy, freedBytes } = o;
  return `the file system of images is ${plan.usedPercent ?? '?'} % full, over the ${policy.highPercent} % of imageGCHighThresholdPercent: ${plan.wantedBytes} bytes were to be freed by removing images that nobody uses, and ${freedBytes} were`;
}
export const NO_CAPACITY = 'invalid capacity 0 on image filesystem';
