/** Keys and certificates of a test's own cluster, made with openssl in a folder of the test's. */
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

export interface KeyPair {
  certFile: string;
  keyFile: string;
}
export interface Identity {
  /** Common name: the user. */
  name: string;
  /** Organizations: the groups. */
  groups?: readonly string[];
  /** DNS names and addresses, for a serving certificate. */
  hosts?: readonly string[];
  /** Life in days; negative: expired already. Default 2. */
  days?: number;
}

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** A certificate authority; `issue` gives key pairs by file name, made once. */
export class Authority implements KeyPair {
  readonly dir: string;
  readonly certFile: string;
  readonly keyFile: string;
  #serial = Math.floor(Math.random() * 1e9) + 1;

  constructor(dir: string, name: string) {
    this.dir = dir;
    this.certFile = join(dir, `${name}.crt`);
    this.keyFile = join(dir, `${name}.key`);
    const subject = ['-subj', `/CN=${name}`, '-days', '2', '-keyout', this.keyFile, '-out', this.certFile];
    openssl([
      'req',
      '-x509',
      ...EC_KEY,
      ...subject,
      '-addext',
      'basicConstraints=critical,CA:TRUE',
      '-addext',
      'keyUsage=critical,keyCertSign,cRLSign',
    ]);
  }

  issue(file: string, who: Identity): KeyPair {
    const pair = { certFile: join(this.dir, `${file}.crt`), keyFile: join(this.dir, `${file}.key`) };
    if (existsSync(pair.certFile)) return pair;
    const request = join(this.dir, `${file}.csr`);
    const extensions = join(this.dir, `${file}.ext`);
    const subject = `${(who.groups ?? []).map((g) => `/O=${g}`).join('')}/CN=${who.name}`;
    const names = (who.hosts ?? []).map((h) => `${isIP(h) === 0 ? 'DNS' : 'IP'}:${h}`);
    writeFileSync(
      extensions,
      [
        'keyUsage=critical,digitalSignature,keyEncipherment',
        `extendedKeyUsage=${names.length > 0 ? 'serverAuth,clientAuth' : 'clientAuth'}`,
        ...(names.length > 0 ? [`subjectAltName=${names.join(',')}`] : []),
        '',
      ].join('\n'),
    );
    openssl(['req', '-new', ...EC_KEY, '-subj', subject, '-keyout', pair.keyFile, '-out', request]);
    const sign = ['x509', '-req', '-in', request, '-CA', this.certFile, '-CAkey', this.keyFile, '-set_serial', String(this.#serial++)];
    openssl([...sign, '-days', String(who.days ?? 2), '-extfile', extensions, '-out', pair.certFile]);
    return pair;
  }
}

/** An RSA key for service account tokens: the private key and its public half. */
export function serviceAccountKeys(dir: string): { privateFile: string; publicFile: string } {
  const keys = { privateFile: join(dir, 'service-account.key'), publicFile: join(dir, 'service-account.pub') };
  openssl(['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', keys.privateFile]);
  openssl(['pkey', '-in', keys.privateFile, '-pubout', '-out', keys.publicFile]);
  return keys;
}
