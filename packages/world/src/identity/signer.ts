/**
 * The controller that approves and signs what nodes ask for: at once, late, wrongly, with a no, or never. Certificates live for seconds
 * here, so that they are renewed while one looks.
 */

import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimKube } from '../kube/types.ts';
import type { SimRng } from '../rng.ts';
import { certificateText, readRequest } from './certificates.ts';

const RESOURCE = 'certificatesigningrequests';
const CSRS = `/apis/certificates.k8s.io/v1/${RESOURCE}`;
/** How long it takes to sign when nothing is wrong. */
const PROMPT_MS = 300;
const LATE_MS = 20_000;
/** A no is remembered by the node for minutes: more of them in a row would outlast any run. */
const REFUSALS_MAX = 3;

const WAYS = [
  ...Array<'sign'>(10).fill('sign'),
  ...Array<'late'>(4).fill('late'),
  ...(['deny', 'fail', 'remove', 'replace', 'never', 'never', 'incomplete', 'garbage', 'foreign', 'ended'] as const),
] as const;
type Way = (typeof WAYS)[number];

export interface SignerOptions {
  kube: SimKube;
  clock: Clock;
  rng: SimRng;
  /** Life of the certificates of a node, ms; null: it is none of ours. */
  lifeMsOf(node: string): number | null;
  on(node: string, what: string): void;
}

export class Signer {
  /** What it did, by way. */
  readonly counts = new Map<string, number>();
  readonly #o: SignerOptions;
  readonly #refusals = new Map<string, number>();
  readonly #troubled = new Map<string, number>();
  #free = false;
  #seen = 0;

  constructor(o: SignerOptions) {
    this.#o = o;
    o.kube.store.onEvent((e) => {
      if (e.resource === RESOURCE && e.type === 'ADDED') this.#hear(e.object);
    });
  }

  /** From now on it does as it likes. */
  begin(): void {
    this.#free = true;
  }

  /** It signs at once, also what waits. */
  heal(): void {
    const { kube, rng, lifeMsOf } = this.#o;
    this.#free = false;
    for (const csr of kube.store.list(RESOURCE)) {
      if (csr.status === undefined && lifeMsOf(nodeOf(csr)) !== null) this.#answer(csr, 'sign', rng.fork(`late-${csr.metadata.name}`));
    }
  }

  /** When it last did something else than to sign for this node, in monotonic ms. */
  troubledAtMs(node: string): number {
    return this.#troubled.get(node) ?? Number.NEGATIVE_INFINITY;
  }

  #hear(csr: KubeObject): void {
    const { clock, rng, lifeMsOf } = this.#o;
    const node = nodeOf(csr);
    if (lifeMsOf(node) === null) return;
    const chance = rng.fork(`request-${this.#seen++}`);
    const way = this.#wayFor(node, chance);
    if (way !== 'sign') this.#troubled.set(node, clock.monoMs());
    const delayMs = way === 'late' ? chance.between(PROMPT_MS, LATE_MS) : way === 'sign' ? chance.int(PROMPT_MS) : chance.int(5_000);
    clock.setTimeout(() => {
      // Whatever was planned, once all is healed it signs.
      if (!this.#free && way !== 'sign') return;
      this.#answer(csr, way, chance);
      if (way !== 'sign') this.#troubled.set(node, clock.monoMs());
    }, delayMs);
  }

  #wayFor(node: string, chance: SimRng): Way {
    const way = this.#free ? (chance.pick(WAYS) ?? 'sign') : 'sign';
    if (way !== 'deny' && way !== 'fail') return way;
    const before = this.#refusals.get(node) ?? 0;
    if (before >= REFUSALS_MAX) return 'sign';
    this.#refusals.set(node, before + 1);
    return way;
  }

  #answer(csr: KubeObject, way: Way, chance: SimRng): void {
    const { kube, on } = this.#o;
    const there = this.#present(csr);
    if (there === undefined) return;
    on(nodeOf(csr), `${way} ${csr.metadata.name}`);
    this.counts.set(way, (this.counts.get(way) ?? 0) + 1);
    const path = `${CSRS}/${csr.metadata.name}`;
    switch (way) {
      case 'never':
        return;
      case 'deny':
        this.#refuse(there, 'Denied');
        return;
      case 'fail':
        this.#refuse(there, 'Failed');
        return;
      case 'remove':
        kube.handle({ verb: 'DELETE', path });
        return;
      case 'replace': {
        // By somebody's tool that saves and restores: the same name, another object.
        kube.handle({ verb: 'DELETE', path });
        kube.handle({ verb: 'POST', path: CSRS, body: { metadata: { name: csr.metadata.name }, spec: csr.spec } });
        return;
      }
      default:
        this.#sign(there, way, chance);
    }
  }

  #present(csr: KubeObject): KubeObject | undefined {
    return this.#o.kube.store.list(RESOURCE).find((c) => c.metadata.uid === csr.metadata.uid && c.status === undefined);
  }

  #put(csr: KubeObject, status: object): void {
    const { resourceVersion: _version, ...metadata } = csr.metadata;
    this.#o.kube.handle({ verb: 'PUT', path: `${CSRS}/${csr.metadata.name}`, body: { ...csr, metadata, status } });
  }

  #refuse(csr: KubeObject, type: 'Denied' | 'Failed'): void {
    this.#put(csr, { conditions: [{ type, status: 'True', reason: 'Nobody', message: 'knows this node' }] });
  }

  #sign(csr: KubeObject, way: Way, chance: SimRng): void {
    const asked = requestOf(csr);
    if (asked === null) {
      this.#refuse(csr, 'Failed');
      return;
    }
    const { template, publicKey } = asked;
    const lifeMs = this.#o.lifeMsOf(nodeOf(csr)) ?? 0;
    const now = this.#o.clock.wallMs();
    // A signer dates back, so that clocks which are behind accept what it signs.
    const backMs = chance.chance(0.25) ? chance.int(300_000) : 0;
    const pem = certificateText({
      ...template,
      ...(way === 'incomplete' ? { organizations: [], ips: [] } : {}),
      publicKey: way === 'foreign' ? `${publicKey.slice(1)}0` : publicKey,
      issuer: 'cluster',
      notBeforeMs: now - backMs,
      notAfterMs: way === 'ended' ? now - 1 : now + lifeMs,
    });
    const conditions = [{ type: 'Approved', status: 'True', reason: 'AutoApproved', message: 'by the simulated controller' }];
    this.#put(csr, { conditions, certificate: btoa(way === 'garbage' ? 'no certificate' : pem) });
  }
}

function requestOf(csr: KubeObject) {
  const spec = isRecord(csr.spec) ? csr.spec : {};
  try {
    return readRequest(atob(typeof spec.request === 'string' ? spec.request : ''));
  } catch {
    return null;
  }
}
/** The node that asks, by the name that it asks for; '' where that is none. */
function nodeOf(csr: KubeObject): string {
  return requestOf(csr)?.template.commonName.replace(/^system:node:/, '') ?? '';
}
