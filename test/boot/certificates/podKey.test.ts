/** Keys of pods' certificates: openssl reads what this node makes, and finds the key proven. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect, it } from 'vitest';
import { podKey } from '../../../src/boot/dependencies/certificates/podKey.ts';

it.each([
  ['RSA3072', 'rsa'],
  ['RSA4096', 'rsa'],
  ['ECDSAP256', 'ec'],
  ['ECDSAP384', 'ec'],
  ['ECDSAP521', 'ec'],
  ['ED25519', 'ed25519'],
])('%s', async (keyType, type) => {
  const { key, stub } = await podKey(keyType);
  expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
  expect(createPrivateKey(key).asymmetricKeyType).toBe(type);
  const args = ['req', '-inform', 'DER', '-verify', '-noout', '-subject', '-pubkey'];
  const said = execFileSync('openssl', args, { input: Buffer.from(stub, 'base64'), encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
  expect(said).toContain(String(createPublicKey(key).export({ type: 'spki', format: 'pem' })));
  expect(said).toMatch(/^subject=\s*$/m);
});

it('of a type that volumes do not have is refused', async () => {
  await expect(podKey('RSA1024')).rejects.toThrow('unknown key type "RSA1024"');
});
