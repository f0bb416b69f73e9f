/** The words for credentials that the API server does not take, and for a server that nobody vouches for. */
import { describe, expect, it } from 'vitest';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { whyRefused, whyUnverified } from '../../../src/boot/dependencies/kube/refusal.ts';
import { issue } from './certs.ts';

const ca = issue({ cn: 'ca', issuer: null });
const good = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca });
const ended = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca, ageMs: 3 * 86_400_000 });
const config = (user: object, cluster: object = { 'certificate-authority': '/pki/ca.crt' }) =>
  parseKubeConfig(
    JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: 'https://api.example:6443', ...cluster } }],
      users: [{ name: 'x', user }],
    }),
    '/etc/kubelet.conf',
  );
const files = { 'client-certificate': '/pki/node.crt', 'client-key': '/pki/node.key' };
const sent = (cert?: string, token = '') => ({ token, tls: cert === undefined ? {} : { cert: Buffer.from(cert) } });

describe('credentials that were refused', () => {
  it('are named with what is wrong with them', () => {
    const now = Date.now();
    expect(whyRefused(sent(ended.cert), config(files), now)).toMatch(
      /^the client certificate .*CN=system:node:n1.* \(\/pki\/node\.crt\) ended \d{4}-.*Z$/,
    );
    expect(whyRefused(sent(good.cert), config(files), 0)).toMatch(/is good only from \d{4}-.*Z on$/);
    expect(whyRefused(sent(good.cert), config(files), now)).toMatch(/\(\/pki\/node\.crt\), signed by CN=ca, is not accepted there$/);
    expect(whyRefused(sent('no certificate'), config(files), now)).toBe('the client certificate of /pki/node.crt cannot be read');
  });
  it('are named when a program gave them, and when there are none', () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/give', interactiveMode: 'Never' };
    expect(whyRefused(sent(good.cert), config({ exec }), Date.now())).toContain('(program /bin/give), signed by');
    expect(whyRefused(sent(undefined, 'hidden'), config({ exec }), 0)).toBe(
      'the token of program /bin/give is not accepted there: unknown, or it has ended',
    );
    expect(whyRefused(sent(), config({}), 0)).toBe(
      'kubeconfig /etc/kubelet.conf has no credentials: neither a client certificate nor a token',
    );
  });
  it('are never shown', () => {
    const text = whyRefused(sent(undefined, 'hidden-token'), config({ token: 'hidden-token' }), 0);
    expect(text).toBe('the token of kubeconfig /etc/kubelet.conf is not accepted there: unknown, or it has ended');
  });
});

describe('a server that nobody vouches for', () => {
  it('is told by the authority that it lacks, and other errors are left alone', () => {
    expect(whyUnverified('UNABLE_TO_VERIFY_LEAF_SIGNATURE', config(files))).toBe(
      'the certificate of api.example:6443 is not signed by the certificate-authority of /pki/ca.crt: is that of another cluster?',
    );
    expect(whyUnverified('SELF_SIGNED_CERT_IN_CHAIN', config(files, {}))).toContain('is not signed by the authorities of this machine');
    expect(whyUnverified('ECONNREFUSED', config(files))).toBeUndefined();
  });
});
