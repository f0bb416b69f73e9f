/** Keys of pods' certificates: openssl reads what this node makes, and finds the key proven. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { podKey } from '../../../src/boot/dependencies/certificates/podKey.ts';
import { InRotation } from '../../../src/ports/turns.ts';

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

it('leaves the threads that files need to files, however many RSA keys are asked for', async () => {
  const ended: string[] = [];
  const keys = Array.from({ length: 4 }, () => podKey('RSA3072').then(() => ended.push('key')));
  // The threads have begun with what they were given.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const files = Array.from({ length: 8 }, () => readFile(import.meta.filename).then(() => ended.push('file')));
  await Promise.all([...keys, ...files]);
  expect(ended.slice(0, 8)).toEqual(Array(8).fill('file'));
});

it('makes RSA keys of pods in rotation, so that one pod with many delays another by one', async () => {
  const turns = new InRotation();
  const order: string[] = [];
  const ask = (pod: string) => turns.run(pod, async () => void order.push(pod));
  const all = [...Array.from({ length: 30 }, () => ask('many')), ask('one'), ask('other'), ask('one')];
  await Promise.all(all);
  expect(order.slice(0, 6)).toEqual(['many', 'many', 'one', 'other', 'many', 'one']);
  expect(order).toHaveLength(33);
});
