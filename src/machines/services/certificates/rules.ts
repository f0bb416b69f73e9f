/** Certificates of pods: what is asked for, what became of it, and when the next one is asked for. Pure. */

import { pemBlocks, pemOf } from '../../data/pem.ts';
import type { PodCertificate } from '../../kube/objects.ts';
import type { KubeObject } from '../../kube/request.ts';
import { isRecord } from '../../shape/conform.ts';

/** A request that this node made and the API server does not show is taken for removed after this time, and up to the jitter more. */
const ABANDON_MS = 600_000;
/** Renewals and such looks are spread over this time, lest all certificates of a node be asked for at once. */
const JITTER_MS = 300_000;
/** A certificate whose time to be renewed passed so long ago is overdue. */
const OVERDUE_MS = 600_000;

/** A certificate and its key. */
export interface HeldCertificate {
  /** PEM. Secret. */
  key: string;
  /** PEM. */
  chain: string;
  /** Wall ms. */
  beginRefreshAtMs: number;
  notAfterMs: number;
}
export interface PendingRequest {
  /** `NAMESPACE/NAME`. */
  name: string;
  uid: string;
  /** PEM, of the certificate to come. Secret. */
  key: string;
  abandonAtMs: number;
}

export function certificateKey({ pod, volume, index }: PodCertificate): string {
  return `${pod.uid}/${volume}/${index}`;
}

/** `stub`: DER of a PKCS #10 request that proves the key, as base64. */
export function certificateRequest(c: PodCertificate, of: { stub: string; nodeName: string; nodeUid: string; accountUid: string }): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'PodCertificateRequest',
    metadata: {
      namespace: c.pod.namespace,
      generateName: 'req-',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: c.pod.name, uid: c.pod.uid }],
    },
    spec: {
      signerName: c.signerName,
      podName: c.pod.name,
      podUID: c.pod.uid,
      serviceAccountName: c.serviceAccount,
      serviceAccountUID: of.accountUid,
      nodeName: of.nodeName,
      nodeUID: of.nodeUid,
      ...(c.maxExpirationSeconds === null ? {} : { maxExpirationSeconds: c.maxExpirationSeconds }),
      stubPKCS10Request: of.stub,
      ...(Object.keys(c.userAnnotations).length === 0 ? {} : { unverifiedUserAnnotations: c.userAnnotations }),
    },
  };
}

/** The answer to a request that was made. `random` in [0, 1). */
export function pendingRequest(made: KubeObject, of: { key: string; wallMs: number; random: number }): PendingRequest {
  const { namespace = '', name, uid = '', creationTimestamp } = made.metadata;
  const madeMs = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN;
  const abandonAtMs = (Number.isNaN(madeMs) ? of.wallMs : madeMs) + ABANDON_MS + of.random * JITTER_MS;
  return { name: `${namespace}/${name}`, uid, key: of.key, abandonAtMs };
}

export type CertificateVerdict =
  | { kind: 'pending' }
  | { kind: 'issued'; held: HeldCertificate }
  /** For good: it is not asked for again. `said`: for the pod's events. */
  | { kind: 'denied' | 'failed'; words: string; said: string }
  | { kind: 'gone'; why: string };

/** `object`: as the API server shows it; undefined: it shows none. `random` in [0, 1). */
export function certificateVerdict(
  request: PendingRequest,
  object: KubeObject | undefined,
  of: { wallMs: number; random: number },
): CertificateVerdict {
  const gone = (why: string): CertificateVerdict => ({ kind: 'gone', why: `PodCertificateRequest "${request.name}" ${why}` });
  if (object === undefined) return of.wallMs > request.abandonAtMs ? gone('appears to have been deleted') : { kind: 'pending' };
  if (object.metadata.uid !== request.uid) return gone('was replaced by another of that name');
  const status = isRecord(object.status) ? object.status : {};
  for (const condition of Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : []) {
    if (condition.type === 'Denied' || condition.type === 'Failed') return refusal(request, condition);
    if (condition.type === 'Issued') return issued(request, status, of.random) ?? gone('was answered with what is no certificate');
  }
  return { kind: 'pending' };
}

/** Characters of a signer's words that are kept. */
const WORDS_MAX = 1_024;

function refusal({ name }: PendingRequest, { type, reason, message }: Record<string, unknown>): CertificateVerdict {
  const [why, words] = [reason, message].map((text) => JSON.stringify(typeof text === 'string' ? text.slice(0, WORDS_MAX) : ''));
  const [kind, did] = type === 'Denied' ? (['denied', 'was denied'] as const) : (['failed', 'failed'] as const);
  return {
    kind,
    words: `PodCertificateRequest was permanently ${kind}: reason=${why} message=${words}`,
    said: `PodCertificateRequest ${name} ${did}, reason=${why}, message=${words}`,
  };
}

function issued({ key }: PendingRequest, status: Record<string, unknown>, random: number): CertificateVerdict | null {
  const { certificateChain, beginRefreshAt, notAfter } = status;
  const timeOf = (value: unknown): number => (typeof value === 'string' ? Date.parse(value) : Number.NaN);
  const blocks = typeof certificateChain === 'string' ? pemBlocks(certificateChain) : [];
  const [refreshMs, notAfterMs] = [timeOf(beginRefreshAt), timeOf(notAfter)];
  if (blocks.length === 0 || Number.isNaN(refreshMs) || Number.isNaN(notAfterMs)) return null;
  const chain = blocks.map((block) => pemOf('CERTIFICATE', block)).join('');
  return { kind: 'issued', held: { key, chain, beginRefreshAtMs: refreshMs + random * JITTER_MS, notAfterMs } };
}

export const isOverdue = ({ beginRefreshAtMs }: HeldCertificate, wallMs: number): boolean => wallMs > beginRefreshAtMs + OVERDUE_MS;
export const isExpired = ({ notAfterMs }: HeldCertificate, wallMs: number): boolean => wallMs > notAfterMs;

/** As the metric names it. */
export function certificateState(
  c: { refused: 'denied' | 'failed' | null; held: Pick<HeldCertificate, 'beginRefreshAtMs' | 'notAfterMs'> | null },
  wallMs: number,
): string {
  if (c.refused !== null) return c.refused;
  if (c.held === null) return 'not_yet_issued';
  if (wallMs > c.held.notAfterMs) return 'expired';
  return wallMs > c.held.beginRefreshAtMs + OVERDUE_MS ? 'overdue_for_refresh' : 'fresh';
}
