/** What a certificate of this node must say, what one says, and what follows from comparing the two. Pure. */

import { canonicalIp } from '../../text/addresses.ts';
import type { CertificateTemplate, ReportedAddress } from './messages.ts';

/** Which of the node's two certificates. */
export type CertificateUse = 'client' | 'serving';

/** What a certificate (its leaf) says. */
export interface CertificateFacts extends CertificateTemplate {
  /** Differs between any two certificates. */
  fingerprint: string;
  notBeforeMs: number;
  /** The earliest end in the whole chain. */
  notAfterMs: number;
}

export interface Signer {
  signerName: string;
  usages: readonly string[];
  /** Files and metrics are named with it. */
  prefix: string;
  /** How long one request may wait for its certificate before another is made. */
  waitMs: number;
}

/** The wait of a renewal and of a serving certificate (boot-and-node 6.5). */
const RENEWAL_WAIT_MS = 900_000;
/** The wait of a node's first certificate (boot-and-node 6.4); the same request is then waited for again. */
export const BOOTSTRAP_WAIT_MS = 3_600_000;

/**
 * `key encipherment` is asked for although elliptic keys have no use for it: every control plane since 1.19 signs with
 * it, those before 1.27 refuse to sign without.
 */
export const SIGNERS: Readonly<Record<CertificateUse, Signer>> = {
  client: {
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'key encipherment', 'client auth'],
    prefix: 'kubelet-client',
    waitMs: RENEWAL_WAIT_MS,
  },
  serving: {
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'key encipherment', 'server auth'],
    prefix: 'kubelet-server',
    waitMs: RENEWAL_WAIT_MS,
  },
};

const NODES_GROUP = 'system:nodes';

export function clientTemplate(nodeName: string): CertificateTemplate {
  return { commonName: `system:node:${nodeName}`, organizations: [NODES_GROUP], dnsNames: [], ips: [] };
}

/**
 * For the addresses that the API server shows of this node. Null while there is nothing to serve under: without any
 * address, and without an IP unless `dnsOnly` (gate AllowDNSOnlyNodeCSR).
 */
export function servingTemplate(
  nodeName: string,
  addresses: readonly ReportedAddress[],
  o: { dnsOnly: boolean },
): CertificateTemplate | null {
  const dnsNames = new Set<string>();
  const ips = new Set<string>();
  for (const { type, address } of addresses) {
    const ip = canonicalIp(address);
    if (type === 'Hostname') ip === null ? dnsNames.add(address) : ips.add(ip);
    else if (type === 'InternalIP' || type === 'ExternalIP') ip === null || ips.add(ip);
    else if (type === 'InternalDNS' || type === 'ExternalDNS') dnsNames.add(address);
  }
  dnsNames.delete('');
  if (ips.size === 0 && !(o.dnsOnly && dnsNames.size > 0)) return null;
  return { ...clientTemplate(nodeName), dnsNames: [...dnsNames].sort(), ips: [...ips].sort() };
}

/** Empty when the certificate says all that the template asks for; more in it does no harm. */
export function lacks(facts: CertificateTemplate, template: CertificateTemplate): string[] {
  const missing: string[] = [];
  if (facts.commonName !== template.commonName) missing.push(`common name ${template.commonName}`);
  for (const o of template.organizations) if (!facts.organizations.includes(o)) missing.push(`organization ${o}`);
  for (const d of template.dnsNames) if (!facts.dnsNames.includes(d)) missing.push(`name ${d}`);
  for (const ip of template.ips) if (!facts.ips.includes(ip)) missing.push(`address ${ip}`);
  return missing;
}

export function sameTemplate(a: CertificateTemplate | null, b: CertificateTemplate | null): boolean {
  return JSON.stringify(a === null ? null : contents(a)) === JSON.stringify(b === null ? null : contents(b));
}
function contents(t: CertificateTemplate): unknown {
  return [t.commonName, t.organizations, t.dnsNames, t.ips];
}

/** Shares of a certificate's life between which it is renewed. */
const RENEW_SHARE_MIN = 0.7;
const RENEW_SHARE_MAX = 0.9;

/** When to ask for the next one: `random` in [0, 1) is drawn once per certificate, so that a cluster's nodes spread out. */
export function rotationDeadlineMs(facts: Pick<CertificateFacts, 'notBeforeMs' | 'notAfterMs'>, random: number): number {
  const lifeMs = Math.max(0, facts.notAfterMs - facts.notBeforeMs);
  return facts.notBeforeMs + lifeMs * (RENEW_SHARE_MIN + (RENEW_SHARE_MAX - RENEW_SHARE_MIN) * random);
}
