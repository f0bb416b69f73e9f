/**
 * Certificate requests and certificates as bytes, read back by Node's own X.509 code: what we write must be what
 * another implementation reads.
 */
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createPki } from '../../../src/boot/dependencies/certificates/pki.ts';
import type { CertificateTemplate } from '../../../src/machines/api/certificates/messages.ts';
import { clientTemplate, SIGNERS } from '../../../src/machines/api/certificates/template.ts';
import { issue } from '../kube/certs.ts';

const pki = createPki();
const template: CertificateTemplate = { ...clientTemplate('n1'), dnsNames: ['a.example', 'n1'], ips: ['192.0.2.1', '2001:db8::5'] };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const openssl = (input: string, ...args: string[]): string => execFileSync('openssl', args, { input, encoding: 'utf8', stdio: 'pipe' });

describe('a certificate request', () => {
  it('holds subject, names and addresses, and is signed with its key, as another implementation reads it', async () => {
    const key = await pki.generateKey();
    const { pem } = await pki.request(key, { template, signer: SIGNERS.serving });
    const text = openssl(pem, 'req', '-noout', '-text', '-verify', '-nameopt', 'RFC2253');
    expect(text).toContain('Subject: CN=system:node:n1,O=system:nodes');
    expect(text).toContain('DNS:a.example, DNS:n1, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:5');
    expect(text).toContain('prime256v1');
    expect(text).toContain('ecdsa-with-SHA256');
    const own = createPublicKey(new TextDecoder().decode(key)).export({ type: 'spki', format: 'pem' });
    expect(openssl(pem, 'req', '-noout', '-pubkey').trim()).toBe(String(own).trim());
  });

  it('has a name that follows from key, subject and usages alone', async () => {
    const [one, two] = [await pki.generateKey(), await pki.generateKey()];
    const client = { template: clientTemplate('n1'), signer: SIGNERS.client };
    const name = async (key: Uint8Array, o = client) => (await pki.request(key, o)).name;
    expect(await name(one)).toMatch(/^node-csr-[\w-]{43}$/);
    expect(await name(one)).toBe(await name(one));
    expect(await name(two)).not.toBe(await name(one));
    expect(await name(one, { ...client, template: clientTemplate('n2') })).not.toBe(await name(one));
    expect(await name(one, { ...client, signer: SIGNERS.serving })).not.toBe(await name(one));
  });

  it('is told from one of another key or subject', async () => {
    const key = await pki.generateKey();
    const ask = async (k: Uint8Array, node = 'n1') =>
      (await pki.request(k, { template: clientTemplate(node), signer: SIGNERS.client })).pem;
    // Signatures differ each time.
    expect(await pki.sameRequest(await ask(key), await ask(key))).toBe(true);
    expect(await pki.sameRequest(await ask(key), await ask(await pki.generateKey()))).toBe(false);
    expect(await pki.sameRequest(await ask(key), await ask(key, 'n2'))).toBe(false);
    expect(await pki.sameRequest(await ask(key), 'nothing')).toBe(false);
  });

  it('is refused for what is no key, without a word of it', async () => {
    const request = (key: string) => pki.request(bytes(key), { template, signer: SIGNERS.client });
    await expect(request('hush')).rejects.toThrow(/^there is no private key in it$/);
    await expect(request('-----BEGIN PRIVATE KEY-----\naHVzaA==\n-----END PRIVATE KEY-----\n')).rejects.toThrow(/cannot be read$/);
  });
});

describe('a certificate', () => {
  const ca = issue({ cn: 'ca', issuer: null });
  const leaf = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca, ips: ['192.0.2.1'], dns: ['n1'] });

  it('says who it is for and how long it holds; of a chain the first end counts', () => {
    const old = issue({ cn: 'old-ca', issuer: null, ageMs: 12 * 3_600_000 });
    const facts = pki.inspect(bytes(leaf.cert), bytes(leaf.key));
    expect(facts).toMatchObject({ commonName: 'system:node:n1', organizations: ['system:nodes'], dnsNames: ['n1'], ips: ['192.0.2.1'] });
    expect(facts.notAfterMs - facts.notBeforeMs).toBe(25 * 3_600_000);
    expect(facts.notAfterMs - pki.inspect(bytes(`${leaf.cert}${old.cert}`)).notAfterMs).toBeGreaterThan(11 * 3_600_000);
    expect(pki.inspect(bytes(ca.cert)).fingerprint).not.toBe(facts.fingerprint);
  });

  it('is refused without its own key, and where there is none', () => {
    expect(() => pki.inspect(bytes(leaf.cert), bytes(ca.key))).toThrow('do not belong together');
    expect(() => pki.inspect(bytes(leaf.key))).toThrow('there is no certificate in it');
    expect(() => pki.inspect(bytes('-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n'))).toThrow('cannot be read');
  });
});
