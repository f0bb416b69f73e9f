/** Keys and certificates for the Certificates port, by node:crypto; requests are made by a library that is loaded when the first is. */
import { createPrivateKey, generateKeyPair, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import type { CertificateFacts } from '../../../machines/api/certificates/template.ts';
import { canonicalIp } from '../../../machines/text/addresses.ts';
import type { Certificates } from '../../../ports/certificates.ts';

const generate = promisify(generateKeyPair);

/** All but where the client's credentials come from. */
export function createPki(): Omit<Certificates, 'client'> {
  return {
    async generateKey() {
      const { privateKey } = await generate('ec', { namedCurve: 'P-256' });
      return Buffer.from(privateKey.export({ type: 'sec1', format: 'pem' }));
    },
    async request(key, o) {
      // 8 MB resident, wanted once in a certificate's life.
      const { certificateRequest } = await import('./request.ts');
      return certificateRequest(privateKeyOf(key), o);
    },
    async podKey(keyType) {
      const { podKey } = await import('./podKey.ts');
      return podKey(keyType);
    },
    async sameRequest(a, b) {
      const { sameRequest } = await import('./request.ts');
      return sameRequest(a, b);
    },
    inspect,
  };
}

/** Reads PEM text that may hold certificates too. Throws without quoting it. */
function privateKeyOf(pem: Uint8Array) {
  const block = blocks(pem, /[A-Z ]*PRIVATE KEY/)[0];
  if (block === undefined) throw new Error('there is no private key in it');
  try {
    return createPrivateKey(block);
  } catch {
    throw new Error('its private key cannot be read');
  }
}

export function inspect(pem: Uint8Array, key?: Uint8Array): CertificateFacts {
  const chain = blocks(pem, /CERTIFICATE/).map((block) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new Error('it holds a certificate that cannot be read');
    }
  });
  const leaf = chain[0];
  if (leaf === undefined) throw new Error('there is no certificate in it');
  if (key !== undefined && !leaf.checkPrivateKey(privateKeyOf(key))) throw new Error('certificate and private key do not belong together');
  const { subject } = leaf.toLegacyObject();
  const names = (leaf.subjectAltName ?? '').split(', ');
  const of = (kind: string): string[] => names.flatMap((n) => (n.startsWith(`${kind}:`) ? [n.slice(kind.length + 1)] : []));
  return {
    fingerprint: leaf.fingerprint256,
    commonName: valuesOf(subject?.CN).at(-1) ?? '',
    organizations: valuesOf(subject?.O),
    dnsNames: of('DNS').sort(),
    ips: of('IP Address')
      .map((ip) => canonicalIp(ip) ?? ip)
      .sort(),
    notBeforeMs: Date.parse(leaf.validFrom),
    notAfterMs: Math.min(...chain.map((c) => Date.parse(c.validTo))),
  };
}

/** Values of one field of a name, which may come once or in a list. */
export function valuesOf(field: unknown): string[] {
  const all: unknown[] = Array.isArray(field) ? field : [field];
  return all.filter((v): v is string => typeof v === 'string');
}

function blocks(pem: Uint8Array, kind: RegExp): string[] {
  const found = Buffer.from(pem)
    .toString('latin1')
    .matchAll(new RegExp(`-----BEGIN (${kind.source})-----[^-]*-----END \\1-----`, 'g'));
  return [...found].map((m) => m[0]);
}
