/** What certificates and requests have in common, by @peculiar/asn1-x509. Imported only when one is made. */
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AttributeTypeAndValue, AttributeValue, Extension, Name, RelativeDistinguishedName } from '@peculiar/asn1-x509';
import { pemOf } from '../../../machines/data/pem.ts';

export const OID = {
  sha256WithRSA: '1.2.840.113549.1.1.11',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  extensionRequest: '1.2.840.113549.1.9.14',
} as const;

export interface Subject {
  commonName: string;
  organizations?: readonly string[];
}

export function nameOf({ organizations = [], commonName }: Subject): Name {
  const part = (type: string, text: string): RelativeDistinguishedName =>
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: text }) })]);
  return new Name([...organizations.map((o) => part(OID.organization, o)), part(OID.commonName, commonName)]);
}

export function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

export function bytes(b: Buffer): ArrayBuffer {
  return new Uint8Array(b).buffer;
}

export function pem(label: string, value: unknown): string {
  return pemOf(label, Buffer.from(AsnConvert.serialize(value)).toString('latin1'));
}
