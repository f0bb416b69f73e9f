/** CertificateSigningRequest objects: made, recognised, and judged by what has become of them. Pure. */
import { isKubeObject, type KubeFailure, type KubeObject } from '../../kube/request.ts';
import type { WireSigningRequest } from '../../kube/wire.ts';
import { isRecord } from '../../shape/conform.ts';
import type { Signer } from './template.ts';

/** Versions of the API group, the one to ask for first; a control plane before 1.19 has the other only. */
export type SigningVersion = 'v1' | 'v1beta1';
const base = (version: SigningVersion): string => `/apis/certificates.k8s.io/${version}/certificatesigningrequests`;
export const signingPath = {
  all: base,
  one: (version: SigningVersion, name: string): string => `${base(version)}/${encodeURIComponent(name)}`,
  selector: (name: string): Readonly<Record<string, string>> => ({ fieldSelector: `metadata.name=${name}` }),
} as const;

/** `name`: of a node's first request, the same for the same key; null: the server makes one up. */
export function signingRequest(o: { pem: string; signer: Signer; name: string | null; version: SigningVersion }): WireSigningRequest {
  return {
    apiVersion: `certificates.k8s.io/${o.version}`,
    kind: 'CertificateSigningRequest',
    metadata: o.name === null ? { generateName: 'csr-' } : { name: o.name },
    spec: { request: btoa(o.pem), signerName: o.signer.signerName, usages: [...o.signer.usages] },
  };
}

/** The PEM text that an existing object asks with, or null where it asks for something else than this signer's certificates. */
export function requestedWith(object: KubeObject, signer: Signer): string | null {
  const { spec } = object;
  if (!isRecord(spec) || spec.signerName !== signer.signerName || typeof spec.request !== 'string') return null;
  const usages = Array.isArray(spec.usages) ? spec.usages.map(String).sort() : [];
  if (usages.join('|') !== [...signer.usages].sort().join('|')) return null;
  return decode(spec.request);
}

/**
 * What has become of a request. `refused`: somebody said no, or the signer could not; the same request will not be
 * granted later. `gone`: it was removed, or replaced by a namesake.
 */
export type Verdict =
  | { kind: 'pending' }
  | { kind: 'issued'; pem: string }
  | { kind: 'refused'; why: string }
  | { kind: 'gone'; why: string };

export function verdictOf(object: unknown, o: { name: string; uid: string }): Verdict {
  if (!isKubeObject(object)) return { kind: 'gone', why: `the certificate request ${o.name} was removed before it was answered` };
  if (object.metadata.uid !== o.uid) return { kind: 'gone', why: `the certificate request ${o.name} was replaced by another of that name` };
  const status = isRecord(object.status) ? object.status : {};
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
  const of = (type: string) => conditions.find((c) => c.type === type && c.status !== 'False');
  const no = of('Denied') ?? of('Failed');
  if (no !== undefined) {
    const words = [no.reason, no.message].filter((s): s is string => typeof s === 'string' && s !== '').join(': ');
    const what = no.type === 'Denied' ? 'was denied' : 'failed to be signed';
    return { kind: 'refused', why: `the certificate request ${o.name} ${what}${words === '' ? '' : ` (${words.slice(0, WORDS_MAX)})`}` };
  }
  if (of('Approved') === undefined || typeof status.certificate !== 'string' || status.certificate === '') return { kind: 'pending' };
  const pem = decode(status.certificate);
  if (pem === null) return { kind: 'refused', why: `the certificate request ${o.name} was answered with what is not base64` };
  return { kind: 'issued', pem };
}
/** Characters of somebody else's words that are shown. */
const WORDS_MAX = 200;

function decode(base64: string): string | null {
  try {
    return atob(base64);
  } catch {
    return null;
  }
}

/** What to say about a request that the API server did not take. */
export function submitProblem(failure: KubeFailure, o: { bootstrapping: boolean }): string {
  const what = `a certificate cannot be asked for: ${failure.code === 0 ? failure.reason : `${failure.code} ${failure.reason}`}: ${failure.message}`;
  if (failure.code === 401 && o.bootstrapping)
    return `${what}; the credentials of --bootstrap-kubeconfig are not accepted, its token may have expired: put a new one there and restart`;
  if (failure.code === 403)
    return `${what}; ${o.bootstrapping ? 'the bootstrap user' : 'this node'} needs the right to create certificatesigningrequests`;
  return what;
}
