/** Collection of images (resources and volumes 4.1 to 4.3): which go, in which order, and for how much room. */
import {
  detected,
  type ImageGcPolicy,
  type ImageLedger,
  type ImageRecord,
  imagesOfContainers,
  imagesOfPod,
  isImageUsed,
  namedImages,
  planImages,
  tooLittleText,
  usedPercent,
  wholeName,
} from '../../../../src/machines/reclaim/imageGc/imageGc.ts';
import type { CriContainer, Image } from '../../../../src/machines/wire/cri.ts';
import { REFUSED, REFUSED_FAILING, RUNNING } from '../../../lifeStates.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const MINUTE = 60_000;
const NOW = 60 * MINUTE;
const POLICY: ImageGcPolicy = { minAgeMs: 2 * MINUTE, maxAgeMs: 0, highPercent: 85, lowPercent: 80 };
const OLD = Number.NEGATIVE_INFINITY;

const image = (id: string, over: Partial<Image> = {}): Image => ({
  id,
  repoTags: [`docker.io/library/${id}:1`],
  repoDigests: [`docker.io/library/${id}@sha256:${'a'.repeat(64)}`],
  size: '100',
  uid: null,
  username: '',
  spec: null,
  pinned: false,
  ...over,
});
const record = (over: Partial<ImageRecord> = {}): ImageRecord => ({
  firstDetectedMs: OLD,
  lastUsedMs: OLD,
  sizeBytes: 100,
  pinned: false,
  names: [],
  ...over,
});
const ledger = (records: Record<string, ImageRecord>, sinceMs = 0): ImageLedger => ({
  records: new Map(Object.entries(records)),
  sinceMs,
  failures: 0,
});
const THREE = { a: record(), b: record(), c: record() };

const planned =
  (
    records: Record<string, ImageRecord>,
    o: { policy?: Partial<ImageGcPolicy>; available?: number | null; all?: boolean; sinceMs?: number } = {},
  ) =>
  () => {
    const { available = 100 } = o;
    const room = available === null ? null : { capacityBytes: 1000, availableBytes: available };
    const plan = planImages(ledger(records, o.sinceMs), { policy: { ...POLICY, ...o.policy }, room, all: o.all === true, nowMs: NOW });
    return { ...plan, wantedBytes: String(plan.wantedBytes) };
  };
const told = (b: ImageLedger) =>
  [...(b.records ?? [])].map(([id, { names: _, ...r }]) => ({
    id,
    ...r,
    firstDetectedMs: String(r.firstDetectedMs),
    lastUsedMs: String(r.lastUsedMs),
  }));
const FIRST: ImageLedger = { records: null, sinceMs: 0, failures: 0 };
const made = (over: Partial<CriContainer>): CriContainer => ({
  id: 'c',
  podSandboxId: 's',
  metadata: null,
  image: null,
  imageRef: '',
  state: 'CONTAINER_EXITED',
  createdAt: '0',
  labels: {},
  annotations: {},
  ...over,
});
const used =
  (over: Partial<CriContainer>, named: readonly string[] = []) =>
  () =>
    isImageUsed(image('nginx'), { held: imagesOfContainers([made(over)]), named: new Set(named) });
const POD = pod({ initContainers: [container('init', { image: 'busybox' })], volumes: [{ name: 'v', image: { reference: 'data:2' } }] });
const inLedger = (over: object) => () => [
  ...namedImages(new Map([['u', { pod: POD, source: 'api', state: RUNNING, seenAtMs: 0, worker: null, ...over }]])),
];
const worker = (phase: 'syncing' | 'finished') => ({ phase, state: '', reason: '', message: '', sinceMs: 0, containers: [], causes: [] });

goldenTable('images are collected as recorded', 'reclaim/imageGc', {
  'room: nothing to do below the high threshold': planned(THREE, { available: 160 }),
  'room: exactly at the high threshold': planned(THREE, { available: 150 }),
  'room: down to the low threshold': planned(THREE, { available: 50 }),
  'room: more than there is counts as all of it': planned(THREE, { available: 5000 }),
  'room: 100 % is never': planned(THREE, { available: 0, policy: { highPercent: 100 } }),
  'room: cannot be seen': planned(THREE, { available: null }),
  'room: parts of a percent are used': () => usedPercent({ capacityBytes: 1000, availableBytes: 159 }),
  'short of room: all that may go, whatever the thresholds': planned(THREE, { available: 900, all: true }),
  'short of room: also where it cannot be seen': planned(THREE, { available: null, all: true }),
  'short of room: the young stay all the same': planned({ young: record({ firstDetectedMs: NOW - MINUTE }), old: record() }, { all: true }),

  'order: last used first, then found first, then by name': planned({
    usedLately: record({ lastUsedMs: 20 * MINUTE }),
    usedBefore: record({ lastUsedMs: 10 * MINUTE }),
    foundLate: record({ firstDetectedMs: 9 * MINUTE }),
    foundEarly: record({ firstDetectedMs: 8 * MINUTE }),
    b: record(),
    a: record(),
  }),
  'stays: in use at this look': planned({ used: record({ lastUsedMs: NOW }), other: record() }),
  'stays: pinned, also when room is short': planned({ pinned: record({ pinned: true }), other: record() }, { all: true }),
  'stays: younger than imageMinimumGCAge': planned({
    young: record({ firstDetectedMs: NOW - 2 * MINUTE + 1 }),
    grown: record({ firstDetectedMs: NOW - 2 * MINUTE }),
  }),

  'age: off': planned(THREE, { available: 900 }),
  'age: unused for longer': planned(
    { old: record({ lastUsedMs: NOW - 11 * MINUTE }), fresh: record({ lastUsedMs: NOW - 10 * MINUTE }), never: record() },
    { available: 900, policy: { maxAgeMs: 10 * MINUTE } },
  ),
  'age: came lately and was never used': planned(
    { came: record({ firstDetectedMs: NOW - MINUTE }) },
    { available: 900, policy: { maxAgeMs: 10 * MINUTE } },
  ),
  'age: not before the daemon is up for as long': planned(THREE, {
    available: 900,
    sinceMs: NOW - 10 * MINUTE,
    policy: { maxAgeMs: 10 * MINUTE },
  }),
  'age: pinned and used ones stay': planned(
    { pinned: record({ pinned: true }), used: record({ lastUsedMs: NOW }) },
    { available: 900, policy: { maxAgeMs: 10 * MINUTE } },
  ),
  'age: also where 100 % turns the other off': planned(THREE, { available: 0, policy: { highPercent: 100, maxAgeMs: 10 * MINUTE } }),

  'found: at the first look all are old (trap 31)': () => told(detected(FIRST, { images: [image('a')], used: () => false, nowMs: NOW })),
  'found: later ones are as old as the look': () => told(detected(ledger({}), { images: [image('a')], used: () => false, nowMs: NOW })),
  'found: used ones are used now': () => told(detected(ledger({ a: record() }), { images: [image('a')], used: () => true, nowMs: NOW })),
  'found: what is known stays known': () =>
    told(
      detected(ledger({ a: record({ firstDetectedMs: 1, lastUsedMs: 2 }) }), {
        images: [image('a', { size: '7', pinned: true })],
        used: () => false,
        nowMs: NOW,
      }),
    ),
  'found: what has gone is forgotten': () => told(detected(ledger({ a: record() }), { images: [], used: () => false, nowMs: NOW })),

  'used: by the id, of a container that has ended (trap 32)': used({ imageRef: 'nginx' }),
  'used: by a digest': used({ imageRef: `docker.io/library/nginx@sha256:${'a'.repeat(64)}` }),
  'used: by its name': used({ image: { image: 'docker.io/library/nginx:1' } }),
  'used: a pod names it in short': used({}, [wholeName('nginx:1')]),
  'used: a pod names its digest': used({}, [wholeName(`nginx@sha256:${'a'.repeat(64)}`)]),
  'used: a pod names another tag': used({}, [wholeName('nginx')]),
  'used: nobody': used({ imageRef: 'other' }),

  'named: containers and volumes of a pod': () => imagesOfPod(POD),
  'named: before its worker is there': inLedger({}),
  'named: while it runs': inLedger({ worker: worker('syncing') }),
  'named: not when it is over': inLedger({ worker: worker('finished') }),
  'named: not when it was refused': inLedger({ state: REFUSED }),
  'named: refused while it ran, until it has ended': inLedger({ state: REFUSED_FAILING, worker: worker('syncing') }),

  'told: too little was freed': () =>
    tooLittleText({ plan: { byAge: [], bySpace: [], wantedBytes: 100, usedPercent: 90 }, policy: POLICY, freedBytes: 40 }),
});
