/** PKCS #10 requests, by @peculiar/asn1-csr over node:crypto. Imported only when a certificate is asked for. */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { Attributes, CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  Attribute,
  Extensions,
  GeneralName,
  type Name,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
} from '@peculiar/asn1-x509';
import type { CertificateTemplate } from '../../../machines/api/certificates/messages.ts';
import type { Signer } from '../../../machines/api/certificates/template.ts';
import { bytes, extension, nameOf, OID, pem } from './x509.ts';

export function certificateRequest(key: KeyObject, o: { template: CertificateTemplate; signer: Signer }): { pem: string; name: string } {
  if (key.asymmetricKeyType !== 'ec')
    throw new Error(`the private key is of type ${key.asymmetricKeyType ?? 'unknown'}, expected an elliptic one`);
  const { template } = o;
  const algorithm = new AlgorithmIdentifier({ algorithm: OID.ecdsaWithSha256 });
  const attributes = alternativeNames(template);
  const request = signedRequest(key, { algorithm, digest: 'sha256', subject: nameOf(template), attributes });
  return { pem: pem('CERTIFICATE REQUEST', request), name: requestName(spkiOf(key), template, o.signer) };
}

/** `digest` null: the key's own. */
export function signedRequest(
  key: KeyObject,
  o: { subject: Name; attributes: Attribute[]; algorithm: AlgorithmIdentifier; digest: string | null },
): CertificationRequest {
  const info = new CertificationRequestInfo({
    version: 0,
    subject: o.subject,
    subjectPKInfo: AsnConvert.parse(spkiOf(key), SubjectPublicKeyInfo),
    attributes: new Attributes(o.attributes),
  });
  const signature = bytes(sign(o.digest, Buffer.from(AsnConvert.serialize(info)), key));
  return new CertificationRequest({ certificationRequestInfo: info, signatureAlgorithm: o.algorithm, signature });
}

function spkiOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

function alternativeNames(t: CertificateTemplate): Attribute[] {
  const names = [...t.dnsNames.map((dNSName) => new GeneralName({ dNSName })), ...t.ips.map((iPAddress) => new GeneralName({ iPAddress }))];
  if (names.length === 0) return [];
  const extensions = new Extensions([extension(OID.subjectAltName, new SubjectAlternativeName(names))]);
  return [new Attribute({ type: OID.extensionRequest, values: [AsnConvert.serialize(extensions)] })];
}

/** As the reference names a node's first request (boot-and-node 6.4): each part base64url without padding, followed by `|`. */
function requestName(spki: Buffer, t: CertificateTemplate, signer: Signer): string {
  const parts = [spki, ...[t.commonName, ...t.organizations, ...signer.usages].map((s) => Buffer.from(s, 'utf8'))];
  const hash = createHash('sha512-256');
  for (const part of parts) hash.update(`${part.toString('base64url')}|`);
  return `node-csr-${hash.digest('base64url')}`;
}

export function sameRequest(a: string, b: string): boolean {
  const [left, right] = [parse(a), parse(b)];
  return left !== null && right !== null && left.key.equals(right.key) && left.subject.equals(right.subject);
}

function parse(text: string): { key: Buffer; subject: Buffer } | null {
  const body = /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([^-]*)-----END/.exec(text)?.[1];
  if (body === undefined) return null;
  try {
    const { certificationRequestInfo: info } = AsnConvert.parse(Buffer.from(body, 'base64'), CertificationRequest);
    const der = (part: unknown): Buffer => Buffer.from(AsnConvert.serialize(part));
    return { key: der(info.subjectPKInfo), subject: der(info.subject) };
  } catch {
    return null;
  }
}
