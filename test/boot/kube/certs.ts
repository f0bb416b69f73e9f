/** Certificates made on the spot: a small DER writer over node:crypto, so that no test needs openssl or a fixture that expires. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export interface Issued {
  cert: string;
  key: string;
  keyObject: KeyObject;
  subject: Buffer;
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const n = body.length;
  const length = n < 128 ? [n] : n < 256 ? [0x81, n] : [0x82, n >> 8, n & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
const seq = (...p: Buffer[]): Buffer => der(0x30, ...p);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const int = (bytes: Buffer): Buffer => der(0x02, bytes);
const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text));
const utcTime = (ms: number): Buffer => der(0x17, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));
const ECDSA_SHA256 = seq(oid('2a8648ce3d040302'));

function nameOf(o: { cn: string; org?: string }): Buffer {
  const part = (id: string, text: string): Buffer => der(0x31, seq(oid(id), utf8(text)));
  return seq(...(o.org === undefined ? [] : [part('55040a', o.org)]), part('550403', o.cn));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return seq(oid(id), ...(critical ? [der(0x01, Buffer.from([255]))] : []), der(0x04, value));
}

/** `issuer` null: self-signed authority; with `authority` an intermediate one. `ips`, `dns`: subject alternative names. Valid from an hour ago for a day. */
export function issue(o: {
  cn: string;
  org?: string;
  issuer: Issued | null;
  authority?: true;
  ips?: string[];
  dns?: string[];
  ageMs?: number;
}): Issued {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = nameOf(o);
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const names = [
    ...(o.dns ?? []).map((d) => der(0x82, Buffer.from(d))),
    ...(o.ips ?? []).map((ip) => der(0x87, Buffer.from(ip.split('.').map(Number)))),
  ];
  const extensions = [
    extension('551d13', true, o.issuer === null || o.authority ? seq(der(0x01, Buffer.from([255]))) : seq()),
    ...(names.length === 0 ? [] : [extension('551d11', false, seq(...names))]),
  ];
  const now = Date.now() - (o.ageMs ?? 0);
  const tbs = seq(
    der(0xa0, int(Buffer.from([2]))),
    int(Buffer.concat([Buffer.from([1]), createHash('sha256').update(spki).digest().subarray(0, 15)])),
    ECDSA_SHA256,
    o.issuer?.subject ?? subject,
    seq(utcTime(now - 3_600_000), utcTime(now + 86_400_000)),
    subject,
    spki,
    der(0xa3, seq(...extensions)),
  );
  const signature = sign('sha256', tbs, o.issuer?.keyObject ?? privateKey);
  const body = seq(tbs, ECDSA_SHA256, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const base64 = body.toString('base64').replaceAll(/(.{64})/g, '$1\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64.trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keyObject: privateKey,
    subject,
  };
}
