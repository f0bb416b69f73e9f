/** Keys and certificates of a control plane of this process, in a folder of its own. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issueCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import type { PairFiles } from '../../plane/flags.ts';

export interface Identity {
  /** Common name: the user. */
  name: string;
  /** Organizations: the groups. */
  groups?: readonly string[];
  /** Names and addresses, for a serving certificate. */
  hosts?: readonly string[];
  /** Life in days; negative: expired already. */
  days?: number;
}

const DAY_MS = 86_400_000;
/** A data folder is gone on with for so long. */
const CA_DAYS = 3_650;
const LEAF_DAYS = 365;
/** Clocks may be set back a little. */
const BACKDATE_MS = 3_600_000;
const SECRET = 0o600;
const KEY_BYTES_MAX = 64 * 1024;

/** A certificate authority. What it has written into its folder is used again. */
export class Authority implements PairFiles {
  readonly dir: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly #name: string;
  readonly #keys: { privateKey: KeyObject; publicKey: KeyObject };

  constructor(dir: string, name: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.dir = dir;
    this.#name = name;
    this.certFile = join(dir, `${name}.crt`);
    this.keyFile = join(dir, `${name}.key`);
    const there = existsSync(this.keyFile) && existsSync(this.certFile);
    this.#keys = there
      ? keysOf(readRegularSync(this.keyFile, { bytesMax: KEY_BYTES_MAX }).toString())
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    if (there) return;
    const subject = { commonName: name };
    const times = timesOf(CA_DAYS);
    writeFileSync(this.keyFile, pemOf(this.#keys.privateKey), { mode: SECRET });
    writeFileSync(
      this.certFile,
      issueCertificate({ subject, issuer: { subject, keys: this.#keys }, publicKey: this.#keys.publicKey, ...times, use: 'ca' }),
    );
  }

  /** The key pair of that file name, made anew unless it was made in this process. */
  issue(file: string, who: Identity): PairFiles {
    const pair = { certFile: join(this.dir, `${file}.crt`), keyFile: join(this.dir, `${file}.key`) };
    if (this.#issued.has(file)) return pair;
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = issueCertificate({
      subject: { commonName: who.name, organizations: who.groups ?? [] },
      issuer: { subject: { commonName: this.#name }, keys: this.#keys },
      publicKey,
      ...timesOf(who.days ?? LEAF_DAYS),
      use: who.hosts === undefined ? 'client' : { host: who.hosts, client: true },
    });
    writeFileSync(pair.keyFile, pemOf(privateKey), { mode: SECRET });
    writeFileSync(pair.certFile, cert);
    this.#issued.add(file);
    return pair;
  }
  readonly #issued = new Set<string>();
}

/** The key that signs tokens of service accounts, and its public half: those of the folder, else new ones. */
export function accountKeys(dir: string): { privateFile: string; publicFile: string } {
  const files = { privateFile: join(dir, 'service-account.key'), publicFile: join(dir, 'service-account.pub') };
  if (existsSync(files.privateFile) && existsSync(files.publicFile)) return files;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(files.publicFile, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(files.privateFile, privateKey.export({ type: 'sec1', format: 'pem' }), { mode: SECRET });
  return files;
}

function timesOf(days: number): { notBeforeMs: number; notAfterMs: number } {
  const nowMs = Date.now();
  const notAfterMs = nowMs + days * DAY_MS;
  return { notBeforeMs: Math.min(nowMs, notAfterMs) - BACKDATE_MS, notAfterMs };
}

function pemOf(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

function keysOf(pem: string): { privateKey: KeyObject; publicKey: KeyObject } {
  const privateKey = createPrivateKey(pem);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
