/**
 * Keys, requests and certificates of a simulated cluster: text with the rules of the real ones. A certificate belongs to
 * one key and ends at some time; nothing but the key's own text leads to the key.
 */

import type { CertificateTemplate } from '@actorlet/kubelet/machines/api/certificates/messages.ts';
import type { CertificateFacts } from '@actorlet/kubelet/machines/api/certificates/template.ts';
import { pemOf } from '@actorlet/kubelet/machines/data/pem.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Certificates, ClientCredentials } from '@actorlet/kubelet/ports/certificates.ts';
import type { SimDisk } from '../disk/types.ts';
import { sha256Hex } from '../globals.ts';
import type { SimRng } from '../rng.ts';

/** In every private key and bearer token, and nowhere else: where it shows, somebody told a secret. */
export const SECRET = 'sim-secret-';
const KEY_HEX_DIGITS = 24;
const PUBLIC_HEX_DIGITS = 16;
const NAME_HEX_DIGITS = 20;

/** A leaf, as it is read from a file or shown in a handshake. */
export interface SimCertificate extends CertificateFacts {
  /** The key that it belongs to. */
  publicKey: string;
  /** The signer. Nobody trusts the unknown CA. */
  issuer: 'cluster' | 'unknown';
}
export interface SimRequest {
  publicKey: string;
  template: CertificateTemplate;
}

export function newKey(rng: SimRng): string {
  return `KEY ${SECRET}${Array.from({ length: KEY_HEX_DIGITS }, () => rng.int(16).toString(16)).join('')}\n`;
}
export function publicOf(key: string): string {
  return sha256Hex(key).slice(0, PUBLIC_HEX_DIGITS);
}
export function certificateText(o: Omit<SimCertificate, 'fingerprint'>): string {
  return `CERT ${JSON.stringify({ ...o, fingerprint: sha256Hex(JSON.stringify(o)).slice(0, PUBLIC_HEX_DIGITS) })}\n`;
}

/** What the first certificate in it says; throws where there is none. */
function readCertificate(pem: string): SimCertificate {
  const found = /^CERT (.*)$/m.exec(pem)?.[1];
  const value: unknown = found === undefined ? null : parsed(found);
  if (!isRecord(value) || typeof value.publicKey !== 'string' || typeof value.notAfterMs !== 'number')
    throw new Error('there is no certificate in it');
  // Only certificateText writes such lines.
  return value as unknown as SimCertificate;
}
/** Both halves; throws where one is missing, or they do not belong together. */
export function readPair(certPem: string, keyPem: string): SimCertificate {
  const certificate = readCertificate(certPem);
  const key = keyIn(keyPem);
  if (key === null) throw new Error('there is no private key in it');
  if (publicOf(key) !== certificate.publicKey) throw new Error('certificate and private key do not belong together');
  return certificate;
}
/** What a request asks for; null for what is none. */
export function readRequest(pem: string): SimRequest | null {
  const value = parsed(/^REQUEST (.*)$/m.exec(pem)?.[1] ?? '');
  return isRecord(value) && typeof value.publicKey === 'string' ? (value as unknown as SimRequest) : null;
}

/** The port of one daemon. */
export function simCertificates(o: { rng: SimRng; client: ClientCredentials | null }): Certificates {
  return {
    generateKey: async () => encoder.encode(newKey(o.rng)),
    async request(key, { template, signer }) {
      const own = keyIn(decoder.decode(key));
      if (own === null) throw new Error('there is no private key in it');
      const { commonName, organizations, dnsNames, ips } = template;
      const request: SimRequest = { publicKey: publicOf(own), template: { commonName, organizations, dnsNames, ips } };
      const name = sha256Hex(JSON.stringify([request.publicKey, commonName, organizations, signer.usages])).slice(0, NAME_HEX_DIGITS);
      return { pem: `REQUEST ${JSON.stringify(request)}\n`, name: `node-csr-${name}` };
    },
    async podKey(keyType) {
      const key = newKey(o.rng);
      return { key: pemOf('PRIVATE KEY', key), stub: btoa(`STUB ${keyType} ${publicOf(key)}`) };
    },
    sameRequest: async (a, b) => readRequest(a) !== null && JSON.stringify(readRequest(a)) === JSON.stringify(readRequest(b)),
    inspect(pem, key) {
      const text = decoder.decode(pem);
      const {
        publicKey: _key,
        issuer: _issuer,
        ...facts
      } = key === undefined ? readCertificate(text) : readPair(text, decoder.decode(key));
      return facts;
    },
    client: o.client,
  };
}

/** What lies at a path, through links; null for nothing. */
export function textAt(disk: SimDisk, path: string, links = LINKS_MAX): string | null {
  const target = disk.linkAt(path);
  if (target === undefined) return disk.textOf(path) ?? null;
  return links === 0 ? null : textAt(disk, target, links - 1);
}
const LINKS_MAX = 4;

/** With what a daemon goes to the API server, read from its disk as a client of the real one does. */
export interface SimCredentials {
  /** Null: there is nothing to go with. */
  current(): SimCertificate | null;
  /** Certificates are looked at again before the next call. */
  suspect(): void;
}
/** Files are looked at no more often than this. */
const CHECK_MS = 10_000;

export function simCredentials(o: { disk: SimDisk; path: string; monoMs(): number }): SimCredentials {
  let loaded: SimCertificate | null = null;
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  return {
    current() {
      if (loaded !== null && o.monoMs() - checkedAtMs < CHECK_MS) return loaded;
      checkedAtMs = o.monoMs();
      const text = textAt(o.disk, o.path);
      try {
        if (text !== null) loaded = readPair(text, text);
      } catch {
        // What was read before stays in use, as with the real one.
      }
      return loaded;
    },
    suspect() {
      checkedAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
function keyIn(pem: string): string | null {
  const found = /^KEY [0-9a-z-]+\n/m.exec(pem)?.[0];
  return found?.length === 'KEY \n'.length + SECRET.length + KEY_HEX_DIGITS ? found : null;
}
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
