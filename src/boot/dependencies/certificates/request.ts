/** PKCS #10 requests, by @peculiar/asn1-csr over node:crypto. Imported only when a certificate is asked for. */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { Attributes, CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  Attribute,
  AttributeTypeAndValue,
  AttributeValue,
  Extension,
  Extensions,
  GeneralName,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
} from '@peculiar/asn1-x509';
import type { CertificateTemplate } from '../../../machines/api/certificates/messages.ts';
import type { Signer } from '../../../machines/api/certificates/template.ts';

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectAltName: '2.5.29.17',
  extensionRequest: '1.2.840.113549.1.9.14',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const;

export function certificateRequest(key: KeyObject, o: { template: CertificateTemplate; signer: Signer }): { pem: string; name: string } {
  if (key.asymmetricKeyType !== 'ec')
    throw new Error(`the private key is of type ${key.asymmetricKeyType ?? 'unknown'}, expected an elliptic one`);
  const { template } = o;
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const info = new CertificationRequestInfo({
    version: 0,
    subject: subjectOf(template),
    subjectPKInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
    attributes: new Attributes(alternativeNames(template)),
  });
  const der = Buffer.from(AsnConvert.serialize(info));
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: new AlgorithmIdentifier({ algorithm: OID.ecdsaWithSha256 }),
    signature: bytes(sign('sha256', der, key)),
  });
  const lines =
    Buffer.from(AsnConvert.serialize(request))
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return {
    pem: `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`,
    name: requestName(spki, template, o.signer),
  };
}

function subjectOf(t: CertificateTemplate): Name {
  const part = (type: string, text: string): RelativeDistinguishedName =>
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: text }) })]);
  return new Name([...t.organizations.map((org) => part(OID.organization, org)), part(OID.commonName, t.commonName)]);
}

function alternativeNames(t: CertificateTemplate): Attribute[] {
  const names = [...t.dnsNames.map((dNSName) => new GeneralName({ dNSName })), ...t.ips.map((iPAddress) => new GeneralName({ iPAddress }))];
  if (names.length === 0) return [];
  const extension = new Extension({
    extnID: OID.subjectAltName,
    critical: false,
    extnValue: new OctetString(AsnConvert.serialize(new SubjectAlternativeName(names))),
  });
  return [new Attribute({ type: OID.extensionRequest, values: [AsnConvert.serialize(new Extensions([extension]))] })];
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

function parse(pem: string): { key: Buffer; subject: Buffer } | null {
  const body = /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([^-]*)-----END/.exec(pem)?.[1];
  if (body === undefined) return null;
  try {
    const { certificationRequestInfo: info } = AsnConvert.parse(Buffer.from(body, 'base64'), CertificationRequest);
    const der = (part: unknown): Buffer => Buffer.from(AsnConvert.serialize(part));
    return { key: der(info.subjectPKInfo), subject: der(info.subject) };
  } catch {
    return null;
  }
}

function bytes(b: Buffer): ArrayBuffer {
  return new Uint8Array(b).buffer;
}
