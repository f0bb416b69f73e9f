/**
 * A serving certificate of the node's own, for when none is given: a CA that is forgotten at once and a leaf signed by
 * it, written as X.509 v3 in DER by hand. A library for it would weigh several MiB in a daemon that does this once.
 */
import { createHash, generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';

const generate = promisify(generateKeyPair);
const RSA_BITS = 2048;
const DAY_MS = 86_400_000;
const VALID_DAYS = 365;
/** Clocks of clients may be behind. */
const BACKDATE_MS = 3_600_000;
const SERIAL_BYTES = 16;
/** A common name holds 64 characters; what clients check is the alternative name. */
const HOST_LENGTH_MAX = 48;

const OID = {
  sha256WithRSA: '1.2.840.113549.1.1.11',
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
} as const;

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

export interface Subject {
  commonName: string;
  organizations?: readonly string[];
}
export interface CertificateRequest {
  subject: Subject;
  issuer: { subject: Subject; keys: { privateKey: KeyObject; publicKey: KeyObject } };
  publicKey: KeyObject;
  notBeforeMs: number;
  notAfterMs: number;
  /** To sign others, to be a client, or to serve under that name or address. */
  use: 'ca' | 'client' | { host: string };
}

/** A certificate signed with an RSA key, as PEM. */
export function issueCertificate(o: CertificateRequest): string {
  const algorithm = sequence(oid(OID.sha256WithRSA), der(0x05));
  const serial = randomBytes(SERIAL_BYTES);
  // Positive and of full length.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const ids = [
    extension(OID.subjectKeyIdentifier, false, der(0x04, keyId(o.publicKey))),
    extension(OID.authorityKeyIdentifier, false, sequence(der(0x80, keyId(o.issuer.keys.publicKey)))),
  ];
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    algorithm,
    name(o.issuer.subject),
    sequence(time(o.notBeforeMs), time(o.notAfterMs)),
    name(o.subject),
    o.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...usage(o.use), ...ids)),
  );
  const signature = sign('sha256', body, o.issuer.keys.privateKey);
  return pem(sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature]))));
}

function usage(use: CertificateRequest['use']): Buffer[] {
  if (use === 'ca') {
    // Signing of certificates besides what a leaf may do.
    return [extension(OID.keyUsage, true, bits(0xa4, 2)), extension(OID.basicConstraints, true, sequence(der(0x01, Buffer.from([0xff]))))];
  }
  const leaf = [extension(OID.keyUsage, true, bits(0xa0, 5)), extension(OID.basicConstraints, true, sequence())];
  if (use === 'client') return [...leaf, extension(OID.extendedKeyUsage, false, sequence(oid(OID.clientAuth)))];
  const { host } = use;
  const altName = isIP(host) === 0 ? der(0x82, Buffer.from(host, 'ascii')) : der(0x87, addressBytes(host));
  return [
    ...leaf,
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
    extension(OID.subjectAltName, false, sequence(altName)),
  ];
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20);
}

// ---- DER -----------------------------------------------------------------------------------------------------------

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length: number[] = [];
  for (let n = body.length; n > 0; n >>>= 8) length.unshift(n & 0xff);
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length, ...length]), body]);
}
const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);

function oid(dotted: string): Buffer {
  const [a = 0, b = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [a * 40 + b];
  for (const n of rest) {
    const group = [n & 0x7f];
    for (let high = Math.floor(n / 128); high > 0; high = Math.floor(high / 128)) group.unshift((high & 0x7f) | 0x80);
    bytes.push(...group);
  }
  return der(0x06, Buffer.from(bytes));
}

function name(subject: Subject): Buffer {
  const part = (id: string, value: string): Buffer => der(0x31, sequence(oid(id), der(0x0c, Buffer.from(value, 'utf8'))));
  const organizations = (subject.organizations ?? []).map((o) => part(OID.organization, o));
  return sequence(...organizations, part(OID.commonName, subject.commonName));
}

/** UTCTime until 2049, as the profile of X.509 for the Internet wants it. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+|[-:T]/g, '');
  return digits < '2050' ? der(0x17, Buffer.from(digits.slice(2), 'ascii')) : der(0x18, Buffer.from(digits, 'ascii'));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
}

/** A BIT STRING of one byte, of which the last `unused` bits do not count. */
function bits(byte: number, unused: number): Buffer {
  return der(0x03, Buffer.from([unused, byte]));
}

function addressBytes(ip: string): Buffer {
  if (isIP(ip) === 4) return Buffer.from(ip.split('.').map(Number));
  // URL writes an IPv6 address in its shortest form, with hexadecimal groups only.
  const [head = '', tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const left = groups(head);
  const right = groups(tail ?? '');
  const middle: string[] = tail === undefined ? [] : new Array<string>(8 - left.length - right.length).fill('0');
  return Buffer.from([...left, ...middle, ...right].map((g) => g.padStart(4, '0')).join(''), 'hex');
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
