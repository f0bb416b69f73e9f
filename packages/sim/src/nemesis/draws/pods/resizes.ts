/** The cluster changes what pods of the API ask for while they run: less, more, more than there is. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';
import type { Resizing } from '../../faults.ts';
import type { DrawnManifest } from './podDraw.ts';

/** Cpu of the first container. Beside a critical pod none of it fits; without one all of it together does. */
const ASKED: Readonly<Record<Resizing, string>> = {
  'resize.less': '100m',
  'resize.more': '300m',
  'resize.most': '400m',
  'resize.never': '64',
};
/** A limit of memory: the first is set only where there is one, since none is ever taken away. Containers use 1 MiB. */
const LIMITED: Readonly<Record<Resizing, string>> = {
  'resize.less': '256Mi',
  'resize.more': '512Mi',
  'resize.most': '1Gi',
  'resize.never': '2Gi',
};
const KINDS = ['resize.less', 'resize.more', 'resize.more', 'resize.most', 'resize.never'] as const;

/** Times a minute, at the most. */
const TIMES_MAX = 12;

export function drawResizes(rng: SimRng, o: { spanMs: number; pods: number }, add: Add): void {
  const times = Math.round((rng.next() * TIMES_MAX * o.spanMs) / 60_000);
  for (let i = 0; i < times; i++) {
    const name = `p${rng.int(o.pods)}`;
    let at = rng.next() * o.spanMs;
    // One after the other, perhaps while the one before is under way.
    for (let more = rng.int(4); more >= 0; more--) {
      add(at, { kind: 'pod.meddle', name, what: rng.pick(KINDS) ?? 'resize.more' });
      at += rng.chance(0.5) ? rng.between(0, 200) : rng.between(200, 10_000);
    }
  }
}

/** What the API server would let through: of a pod that asks for something already. Null: it would not. */
export function resized(pod: KubeObject, what: Resizing): object | null {
  const { containers, resources: whole } = structuredClone(pod.spec) as DrawnManifest['spec'];
  const [first] = containers;
  const { phase } = (pod.status ?? {}) as { phase?: string };
  const over = pod.metadata.deletionTimestamp !== undefined || phase === 'Failed' || phase === 'Succeeded';
  if (over || first?.resources?.requests?.cpu === undefined) return null;
  // A pod that was not let in yet would not be let in with that; and a pod made to be refused shall be.
  const never = ASKED['resize.never'];
  if ((ASKED[what] === never || (whole ?? first.resources).requests?.cpu === never) && phase !== 'Running') return null;
  if (whole !== undefined) return { spec: { resources: { requests: { cpu: ASKED[what] } } } };
  first.resources.requests.cpu = ASKED[what];
  const { limits } = first.resources;
  // A Guaranteed pod stays one.
  if (limits?.cpu !== undefined) {
    limits.cpu = ASKED[what];
    return { spec: { containers } };
  }
  if (what !== 'resize.less' || limits?.memory !== undefined) first.resources.limits = { ...limits, memory: LIMITED[what] };
  return { spec: { containers } };
}
export function isResizing(what: string): what is Resizing {
  return Object.hasOwn(ASKED, what);
}
