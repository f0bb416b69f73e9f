/**
 * A serving certificate of the node's own, for when none is given: a CA that is forgotten at once and a leaf signed by it. X.509 v3 by
 * @peculiar/asn1-x509 over node:crypto. Imported only when such a certificate is made.
 */
import { createHash, generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  type Extension,
  Extensions,
  GeneralName,
  KeyUsage,
  KeyUsageFlags,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import { bytes, extension, nameOf, OID, pem, type Subject } from '../dependencies/certificates/x509.ts';

const generate = promisify(generateKeyPair);
const RSA_BITS = 2048;
const DAY_MS = 86_400_000;
const VALID_DAYS = 365;
/** Clocks of clients may be behind. */
const BACKDATE_MS = 3_600_000;
const SERIAL_BYTES = 16;
/** A common name holds 64 characters; what clients check is the alternative name. */
const HOST_LENGTH_MAX = 48;

export interface SelfSigned {
  /** PEM: the leaf, then the CA. */
  cert: string;
  /** PEM, PKCS #8. Secret. */
  key: string;
}

/** For clients that know the node as `host`, a name or an address. */
export async function selfSignedCertificate(host: string, nowMs: number): Promise<SelfSigned> {
  // Made in the thread pool: the main thread does not wait for primes.
  const [ca, leaf] = await Promise.all([generate('rsa', { modulusLength: RSA_BITS }), generate('rsa', { modulusLength: RSA_BITS })]);
  const unix = Math.floor(nowMs / 1000);
  const short = host.slice(0, HOST_LENGTH_MAX);
  const issuer = { subject: { commonName: `${short}-ca@${unix}` }, keys: ca };
  const times = { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: nowMs + VALID_DAYS * DAY_MS };
  const caCert = issueCertificate({ ...times, issuer, subject: issuer.subject, publicKey: ca.publicKey, use: 'ca' });
  const subject = { commonName: `${short}@${unix}` };
  const leafCert = issueCertificate({ ...times, issuer, subject, publicKey: leaf.publicKey, use: { host } });
  return { cert: `${leafCert}${caCert}`, key: String(leaf.privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

export interface CertificateRequest {
  subject: Subject;
  issuer: { subject: Subject; keys: { privateKey: KeyObject; publicKey: KeyObject } };
  publicKey: KeyObject;
  notBeforeMs: number;
  notAfterMs: number;
  /** To sign others, to be a client, or to serve under these names and addresses, perhaps as a client too. */
  use: 'ca' | 'client' | { host: string | readonly string[]; client?: boolean };
}

/** A certificate signed with an RSA or an EC key, as PEM. */
export function issueCertificate(o: CertificateRequest): string {
  const algorithm =
    o.issuer.keys.privateKey.asymmetricKeyType === 'ec'
      ? new AlgorithmIdentifier({ algorithm: OID.ecdsaWithSha256 })
      : new AlgorithmIdentifier({ algorithm: OID.sha256WithRSA, parameters: null });
  const serial = randomBytes(SERIAL_BYTES);
  // Positive and of full length.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = new TBSCertificate({
    version: Version.v3,
    serialNumber: bytes(serial),
    signature: algorithm,
    issuer: nameOf(o.issuer.subject),
    validity: new Validity({ notBefore: new Date(o.notBeforeMs), notAfter: new Date(o.notAfterMs) }),
    subject: nameOf(o.subject),
    subjectPublicKeyInfo: AsnConvert.parse(o.publicKey.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo),
    extensions: new Extensions([
      ...usage(o.use),
      extension(OID.subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(o.publicKey))),
      extension(
        OID.authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new SubjectKeyIdentifier(keyId(o.issuer.keys.publicKey)) }),
      ),
    ]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(body)), o.issuer.keys.privateKey);
  const certificate = new Certificate({ tbsCertificate: body, signatureAlgorithm: algorithm, signatureValue: bytes(signature) });
  return pem('CERTIFICATE', certificate);
}

function usage(use: CertificateRequest['use']): Extension[] {
  // A CA signs certificates besides what a leaf may do.
  const flags = KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment | (use === 'ca' ? KeyUsageFlags.keyCertSign : 0);
  const both = [
    extension(OID.keyUsage, new KeyUsage(flags), true),
    extension(OID.basicConstraints, new BasicConstraints({ cA: use === 'ca' }), true),
  ];
  if (use === 'ca') return both;
  if (use === 'client') return [...both, extension(OID.extendedKeyUsage, new ExtendedKeyUsage([OID.clientAuth]))];
  const names = [use.host].flat().map((of) => new GeneralName(isIP(of) === 0 ? { dNSName: of } : { iPAddress: of }));
  return [
    ...both,
    extension(OID.extendedKeyUsage, new ExtendedKeyUsage([OID.serverAuth, ...(use.client === true ? [OID.clientAuth] : [])])),
    extension(OID.subjectAltName, new SubjectAlternativeName(names)),
  ];
}

function keyId(key: KeyObject): ArrayBuffer {
  const hash = createHash('sha256').update(key.export({ type: 'spki', format: 'der' }));
  return bytes(hash.digest().subarray(0, 20));
}
