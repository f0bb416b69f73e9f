/** Nodes with drivers of dynamic resources, pods of the API that use claims there, and faults aimed at who prepares them. */

import type { FaultSpec } from '@actorlet/faults/src/types.ts';
import { CLAIMS_FILE } from '@actorlet/kubelet/machines/allocation/claims/checkpoint.ts';
import { nodeName, ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { DraTuning } from '@actorlet/world/src/plugins/machineDra.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';
import { OF_ALL_DRIVERS, TEMPLATE } from '../../workload/claimScheduler.ts';
import { drawPod } from '../../workload/pods.ts';
import type { SimPod } from '../../workload/subjects.ts';
import { type DrawnManifest, withDraw } from './podDraw.ts';

/** How often a node of a cluster has such drivers. */
const NODES = 0.4;
const DRIVERS = ['gpu.sim', 'net.sim'] as const;
const VERSIONS = [['v1.DRAPlugin'], ['v1beta1.DRAPlugin'], ['v9.DRAPlugin', 'v1.DRAPlugin', 'v1beta1.DRAPlugin']] as const;
const LATENCIES_MS = [0, 5, 200] as const;

export function drawClaims(rng: SimRng, api: boolean): DraTuning | null {
  if (!api || !rng.chance(NODES)) return null;
  const drivers = rng.chance(0.5) ? DRIVERS : DRIVERS.slice(0, 1);
  return {
    drivers,
    versions: rng.pick(VERSIONS) ?? VERSIONS[0],
    health: drivers.filter(() => rng.chance(0.6)),
    latencyMs: rng.pick(LATENCIES_MS) ?? 0,
  };
}

/** Claims that pods share. */
const SHARED = ['shared', `${OF_ALL_DRIVERS}-shared`] as const;
const PODS = 4;
/** Seldom more than one claim of a pod. */
const SECOND = 0.35;
const OTHER_CONTAINERS = 0.3;

/** The claims of one pod, the same in each of its definitions. Null: of a template, made for the pod alone. */
type Uses = readonly ((typeof SHARED)[number] | null)[];

export function claimLife(rng: SimRng, o: { spanMs: number; node: number }, add: Add): void {
  const full = (claim: string): string => `${claim}-${nodeName(o.node)}`;
  const put = (at: number, claim: string): void =>
    add(at, { kind: 'object.put', object: { kind: 'resourceClaim', name: full(claim), rev: 0, immutable: false } });
  for (const claim of SHARED) put(rng.chance(0.8) ? 0 : rng.next() * o.spanMs * 0.5, claim);
  const lines = Array.from({ length: PODS }, (_, i) => new PodLine(rng.fork(`pod-${i}`), { name: `g${i}`, full, add }));
  for (const line of lines) line.live(o.spanMs);
  // A claim that is gone takes its pods along, by force; it and they come back under the same names.
  for (const claim of SHARED) {
    const mine = rng.fork(`again-${claim}`);
    if (!mine.chance(0.6)) continue;
    const at = mine.between(5_000, Math.max(6_000, o.spanMs - 5_000));
    const users = lines.filter((line) => line.uses.includes(claim));
    for (const line of users) add(at, { kind: 'pod.delete', name: line.name, graceSeconds: 0 });
    add(at + 1, { kind: 'object.remove', object: { kind: 'resourceClaim', name: full(claim) } });
    const back = at + mine.between(2, 3_000);
    put(back, claim);
    for (const line of users) line.put(back + mine.between(1, 2_000));
  }
  claimTrouble(rng.fork('trouble'), o, add);
}

class PodLine {
  readonly name: string;
  readonly uses: Uses;
  readonly #rng: SimRng;
  readonly #full: (claim: string) => string;
  readonly #add: Add;
  #rev = 0;

  constructor(rng: SimRng, o: { name: string; full: (claim: string) => string; add: Add }) {
    this.#rng = rng;
    this.#full = o.full;
    this.#add = o.add;
    this.name = o.name;
    const all = [...SHARED, null] as const;
    const first = rng.pick(all) ?? null;
    this.uses = rng.chance(SECOND) ? [first, ...all.filter((c) => c !== first).slice(0, 1)] : [first];
  }

  live(spanMs: number): void {
    let at = this.#rng.chance(0.6) ? 0 : this.#rng.next() * spanMs * 0.5;
    this.put(at);
    for (;;) {
      at += this.#rng.between(500, 30_000);
      if (at >= spanMs) return;
      if (this.#rng.chance(0.3)) this.put(at);
      else if (this.#rng.chance(0.5))
        this.#add(at, { kind: 'pod.delete', name: this.name, graceSeconds: this.#rng.pick([null, 0, 2]) ?? null });
      else this.#add(at, { kind: 'pod.remove', name: this.name });
      at += this.#rng.chance(0.5) ? this.#rng.between(0, 300) : this.#rng.between(300, 10_000);
      this.put(at);
    }
  }

  put(at: number): void {
    const rev = this.#rev++;
    this.#add(at, { kind: 'pod.put', pod: this.#claiming(drawPod(this.#rng.fork(`rev-${rev}`), { name: this.name, rev })), source: 'api' });
  }

  #claiming(pod: SimPod): SimPod {
    const claim = (rng: SimRng, { manifest: { spec } }: { manifest: DrawnManifest }) => {
      const entries = this.uses.map((use, i) => ({
        name: `e${i}`,
        ...(use === null ? { resourceClaimTemplateName: TEMPLATE } : { resourceClaimName: this.#full(use) }),
      }));
      spec.resourceClaims = entries;
      for (const [i, c] of spec.containers.entries()) {
        if (i > 0 && !rng.chance(OTHER_CONTAINERS)) continue;
        c.resources = { ...c.resources, claims: entries.map(({ name }) => ({ name, ...(rng.chance(0.3) ? { request: 'r' } : {}) })) };
      }
      return { objects: this.uses.flatMap((use) => (use === null ? [] : [{ kind: 'resourceClaim' as const, name: this.#full(use) }])) };
    };
    return withDraw(claim, this.#rng.fork(`claims-${pod.rev}`), pod);
  }
}

const MANAGER = 'node/allocation/claims';
const FILES = [`${ROOT_DIR}/${CLAIMS_FILE}`, `${ROOT_DIR}/.${CLAIMS_FILE}.*`];
/** Fewer than its supervisor forgives in a minute. */
const KILLS_MAX = 3;
const ALL = { probability: 1, select: {} } as const;

/** Trouble that is aimed at the manager of claims, at its file, and at its questions to the API server. */
function claimTrouble(rng: SimRng, o: { spanMs: number }, add: Add): void {
  const when = (): number => rng.next() * o.spanMs;
  const lasting = (): number => Math.round(rng.between(500, 10_000));
  const once = (chance: number, draw: () => FaultSpec, forMs = 0): void => {
    if (rng.chance(chance)) add(when(), draw(), forMs);
  };
  const kill: FaultSpec = { kind: 'actor.kill', probability: 1, select: { actors: [MANAGER] }, pick: 'one' };
  for (let left = rng.int(KILLS_MAX); left > 0; left--) add(when(), kill);
  const writes = { ops: ['write', 'rename'] as const, paths: FILES };
  once(0.5, () => ({ kind: 'disk.error', probability: rng.between(0.3, 1), select: writes, code: 'EIO' }), lasting());
  once(0.4, () => ({ kind: 'disk.slow', probability: 1, select: { paths: FILES }, delayMs: 50 + rng.int(3_000) }), lasting());
  if (rng.chance(0.3)) {
    const at = when();
    add(at, { kind: 'disk.error', probability: 1, select: { ops: ['read'], paths: FILES }, code: 'EIO' }, lasting());
    add(at + 50, kill);
  }
  for (let left = rng.int(4); left > 0; left--) {
    const action = rng.pick(['error', 'error', 'delay', 'lost-without-effect'] as const) ?? 'error';
    const select = { resources: [rng.pick(['resourceclaims', 'resourceslices'] as const) ?? 'resourceclaims'] };
    const delayMs = Math.round(rng.between(100, 14_000));
    add(when(), { kind: 'api.call', probability: rng.between(0.3, 1), select, action, delayMs, status: 500 }, lasting());
  }
  once(0.5, () => ({ kind: 'node.kill', ...ALL, action: 'power', downMs: 500 }));
  once(0.6, () => ({ kind: 'node.kill', ...ALL, action: 'process', downMs: rng.int(3_000) }));
}
