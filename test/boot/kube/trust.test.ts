/** Whom the API client trusts where its kubeconfig names no authority: whom the machine does, which is told once in a process. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { issue } from './certs.ts';

const CREDENTIALS = new URL('../../../src/boot/dependencies/kube/credentials.ts', import.meta.url).href;
const CLIENT = `
  const { contextOf } = await import(process.argv[1]);
  const { connect } = await import('node:tls');
  const socket = connect({ host: '127.0.0.1', port: Number(process.argv[2]), secureContext: contextOf({}) });
  socket.once('secureConnect', () => socket.destroy(console.log('trusted')));
  socket.once('error', (error) => console.log(error.code));
`;

it('a server is trusted whose authority the machine trusts', async () => {
  const ca = issue({ cn: 'company', issuer: null });
  const { cert, key } = issue({ cn: 'api', issuer: ca, ips: ['127.0.0.1'] });
  const dir = await mkdtemp(join(tmpdir(), 'trust-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const server = createServer({ cert, key }, (socket) => void socket.on('error', () => undefined).end());
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const seen = async (authority: string): Promise<string> => {
    const file = join(dir, 'authorities.pem');
    await writeFile(file, authority);
    const env = { ...process.env, SSL_CERT_FILE: file, SSL_CERT_DIR: join(dir, 'none') };
    const args = ['--input-type=module', '-e', CLIENT, CREDENTIALS, String(port)];
    return (await promisify(execFile)(process.execPath, args, { env })).stdout.trim();
  };
  expect(await seen(ca.cert)).toBe('trusted');
  expect(await seen(issue({ cn: 'other', issuer: null }).cert)).toMatch(/^UNABLE_TO/);
});
