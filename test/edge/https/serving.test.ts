/** A TLS server whose certificate comes later, goes, and is replaced while it runs. */
import { type ClientRequestArgs, request } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { expect, it, onTestFinished } from 'vitest';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import type { TlsMaterial } from '../../../src/ports/sockets/net.ts';
import { issue } from '../../boot/kube/certs.ts';

const ca = issue({ cn: 'ca', issuer: null });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const material = (cn: string): TlsMaterial => {
  const leaf = issue({ cn, issuer: ca, ips: ['127.0.0.1'] });
  // Both in one file, as the node stores them.
  const both = bytes(`${leaf.cert}${leaf.key}`);
  return { cert: both, key: both, clientCa: null };
};
const NONE: TlsMaterial = { cert: new Uint8Array(0), key: new Uint8Array(0), clientCa: null };

/** The common name that the server showed, or the code of what went wrong. */
function shown(port: number): Promise<string> {
  return new Promise((resolve) => {
    const options: ClientRequestArgs = { host: '127.0.0.1', port, path: '/', agent: false };
    const req = httpsRequest({ ...options, ca: ca.cert }, (res) => {
      const { subject } = (res.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }).getPeerCertificate();
      res.resume();
      res.once('end', () => resolve(subject.CN));
    });
    req.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    req.end();
  });
}

it('fails handshakes while it has no certificate, and serves with each new one without a restart', async () => {
  let apply: (m: TlsMaterial) => void = () => {
    throw new Error('not offered');
  };
  const server = await createNet().serveHttp(
    { host: '127.0.0.1', port: 0, tls: { material: NONE, minVersion: 'TLSv1.2', ciphers: '', renew: (fn) => (apply = fn) } },
    async () => ({ status: 200, body: 'ok' }),
  );
  onTestFinished(() => server.close());
  const port = Number(server.address.split(':').at(-1));
  expect(await shown(port)).toMatch(/EPROTO|HANDSHAKE|ECONNRESET/);
  // Nor without TLS.
  const plain = await new Promise<string>((resolve) => {
    const req = request({ host: '127.0.0.1', port, agent: false }, (res) => resolve(String(res.statusCode)));
    req.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    req.end();
  });
  expect(plain).not.toBe('200');
  apply(material('first'));
  expect(await shown(port)).toBe('first');
  apply(material('second'));
  expect(await shown(port)).toBe('second');
  // Ended: nothing is served with it any more.
  apply(NONE);
  expect(await shown(port)).toMatch(/EPROTO|HANDSHAKE|ECONNRESET/);
});

it('lets in clients of an intermediate that stands in the client CA without its root, also after a renewal', async () => {
  const issuer = issue({ cn: 'clients', issuer: ca, authority: true });
  const of = (clientCa: string): TlsMaterial => ({ ...material('node'), clientCa: bytes(clientCa) });
  let apply: (m: TlsMaterial) => void = () => {};
  const server = await createNet().serveHttp(
    { host: '127.0.0.1', port: 0, tls: { material: of(issuer.cert), minVersion: 'TLSv1.2', ciphers: '', renew: (fn) => (apply = fn) } },
    async ({ client }) => ({ status: 200, body: client?.kind === 'verified' ? client.commonName : (client?.kind ?? '') }),
  );
  onTestFinished(() => server.close());
  const seen = (who: { cert: string; key: string }): Promise<string> =>
    new Promise((resolve, reject) => {
      const port = Number(server.address.split(':').at(-1));
      const { cert, key } = who;
      const req = httpsRequest({ host: '127.0.0.1', port, path: '/', agent: false, ca: ca.cert, cert, key }, async (res) => {
        let body = '';
        for await (const chunk of res) body += String(chunk);
        resolve(body);
      });
      req.once('error', reject);
      req.end();
    });
  const [ann, root] = [issue({ cn: 'ann', issuer }), issue({ cn: 'bob', issuer: ca })];
  expect([await seen(ann), await seen(root)]).toEqual(['ann', 'rejected']);
  apply(of(`${ca.cert}${issuer.cert}`));
  expect([await seen(ann), await seen(root)]).toEqual(['ann', 'bob']);
  apply(of(issuer.cert));
  expect([await seen(ann), await seen(root)]).toEqual(['ann', 'rejected']);
});
