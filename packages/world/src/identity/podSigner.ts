/**
 * The signer of pods' certificates, and the trust anchors that go with them. In fair weather it signs at once. Among faults it
 * is late, silent, removes a request or answers with what is no certificate, and certificates end before it is back.
 */

import { pemBlocks, pemOf } from '@actorlet/kubelet/machines/data/pem.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimKube } from '../kube/types.ts';
import type { SimRng } from '../rng.ts';
import { publicOf } from './certificates.ts';

const RESOURCE = 'podcertificaterequests';
const GROUP = '/apis/certificates.k8s.io/v1beta1';
export const ANCHORS = 'anchors';
const PROMPT_MS = 300;
const LATE_MS = 20_000;
/** The node spreads renewals over 5 min from here on. */
const REFRESH_MS = { min: 5_000, max: 20_000 } as const;
const LIFE_MS = 600_000;
/** Over before it is renewed. */
const SHORT_LIFE_MS = 30_000;
const ANCHORS_EVERY_MS = { min: 2_000, max: 30_000 } as const;
const WAYS = ['sign', 'sign', 'sign', 'short', 'short', 'late', 'late', 'never', 'remove', 'garbage'] as const;
type Way = (typeof WAYS)[number];

export interface PodSigner {
  begin(): void;
  heal(): void;
}

/** What a certificate of pods says. */
export interface PodCertificateSeen {
  publicKey: string;
  notAfterMs: number;
}
export function readPodCertificate(pem: string): PodCertificateSeen | null {
  const [, publicKey = '', notAfter = ''] = /^CERT (\w+) (\d+)$/.exec(pemBlocks(pem)[0] ?? '') ?? [];
  return publicKey === '' ? null : { publicKey, notAfterMs: Number(notAfter) };
}
/** '' for what is no key. */
export function publicOfPodKey(pem: string): string {
  const [key] = pemBlocks(pem);
  return key === undefined ? '' : publicOf(key);
}
/** Version of the anchors in a file; -1: it is not one version, whole. */
export function anchorsIn(pem: string): number {
  const [first = '', second, ...more] = pemBlocks(pem);
  const [, rev = '-1'] = /^ANCHOR a (\d+)$/.exec(first) ?? [];
  return second === `ANCHOR b ${rev}` && more.length === 0 ? Number(rev) : -1;
}

export function podSigner(o: { kube: SimKube; clock: Clock; rng: SimRng; on(what: string): void }): PodSigner {
  const { kube, clock, rng } = o;
  let free = false;
  let rev = 0;
  const handle = (request: Parameters<SimKube['handle']>[0]): void => void kube.handle(request);
  const pathOf = ({ metadata: { namespace, name } }: KubeObject) => `${GROUP}/namespaces/${namespace}/${RESOURCE}/${name}`;
  const answer = (request: KubeObject, way: Way, chance: SimRng): void => {
    o.on(`${way} ${request.metadata.name}`);
    const path = pathOf(request);
    if (way === 'remove') handle({ verb: 'DELETE', path });
    if (way === 'never' || way === 'remove') return;
    const nowMs = kube.wallMs();
    const notAfterMs = Math.round(nowMs) + (way === 'short' ? SHORT_LIFE_MS : LIFE_MS);
    const [, , publicKey = ''] = atob((request.spec as { stubPKCS10Request: string }).stubPKCS10Request).split(' ');
    const at = (ms: number): string => new Date(ms).toISOString();
    const certificateChain = way === 'garbage' ? 'no certificate' : pemOf('CERTIFICATE', `CERT ${publicKey} ${notAfterMs}`);
    const status = {
      conditions: [{ type: 'Issued', status: 'True', reason: 'Signed', message: '' }],
      certificateChain,
      beginRefreshAt: at(nowMs + chance.between(REFRESH_MS.min, REFRESH_MS.max)),
      notAfter: at(notAfterMs),
    };
    handle({ verb: 'PATCH', path: `${path}/status`, patchType: 'merge', body: { status } });
  };
  const isOpen = (request: KubeObject): boolean =>
    request.status === undefined && kube.store.list(RESOURCE).some((r) => r.metadata.uid === request.metadata.uid);
  let seen = 0;
  kube.store.onEvent(({ resource, type, object }) => {
    if (resource !== RESOURCE || type !== 'ADDED') return;
    const chance = rng.fork(`request-${seen++}`);
    const way = free ? (chance.pick(WAYS) ?? 'sign') : 'sign';
    const delayMs = way === 'late' ? chance.between(PROMPT_MS, LATE_MS) : chance.int(PROMPT_MS);
    clock.setTimeout(() => {
      if (isOpen(object)) answer(object, free || way === 'late' ? way : 'sign', chance);
    }, delayMs);
  });
  const renew = (): void => {
    rev += 1;
    const trustBundle = ['a', 'b'].map((one) => pemOf('CERTIFICATE', `ANCHOR ${one} ${rev}`)).join('');
    const path = `${GROUP}/clustertrustbundles`;
    const body = { metadata: { name: ANCHORS }, spec: { trustBundle } };
    if (rev === 1) handle({ verb: 'POST', path, body });
    else handle({ verb: 'PATCH', path: `${path}/${ANCHORS}`, patchType: 'merge', body: { spec: { trustBundle } } });
  };
  const changing = rng.fork('anchors');
  const change = (): void => {
    if (!free) return;
    renew();
    clock.setTimeout(change, changing.between(ANCHORS_EVERY_MS.min, ANCHORS_EVERY_MS.max));
  };
  renew();
  return {
    begin() {
      free = true;
      clock.setTimeout(change, changing.between(ANCHORS_EVERY_MS.min, ANCHORS_EVERY_MS.max));
    },
    heal() {
      free = false;
      for (const request of kube.store.list(RESOURCE))
        if (isOpen(request)) answer(request, 'sign', rng.fork(`late-${request.metadata.name}`));
    },
  };
}
