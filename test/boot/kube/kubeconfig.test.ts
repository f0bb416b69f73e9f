import { describe, expect, it } from 'vitest';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';

const b64 = (text: string) => Buffer.from(text).toString('base64');

function config(o: { cluster?: object; user?: object; top?: object } = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://api:6443', ...o.cluster } }],
    users: [{ name: 'u', user: { ...o.user } }],
    ...o.top,
  });
}
const problem = (text: string): string => {
  try {
    parseKubeConfig(text, '/etc/k/kubelet.conf');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return '';
};

describe('a kubeconfig', () => {
  it('gives server, authority and client certificate of its current context, relative paths beside the file', () => {
    const read = parseKubeConfig(
      config({
        cluster: { 'certificate-authority-data': b64('CA'), 'tls-server-name': 'kubernetes' },
        user: { 'client-certificate': 'pki/current.pem', 'client-key': '/abs/current.pem' },
      }),
      '/etc/k/kubelet.conf',
    );
    expect(read.server.href).toBe('https://api:6443/');
    expect(read.ca).toEqual({ data: Buffer.from('CA') });
    expect(read.cert).toEqual({ file: '/etc/k/pki/current.pem' });
    expect(read.key).toEqual({ file: '/abs/current.pem' });
    expect(read.tlsServerName).toBe('kubernetes');
    expect(read.token).toBeNull();
  });
  it('reads the token file rather than the copy of it', () => {
    expect(parseKubeConfig(config({ user: { token: 'old', tokenFile: 'token' } }), '/k/c').token).toEqual({ file: '/k/token' });
    expect(parseKubeConfig(config({ user: { token: 'only' } }), '/k/c').token).toEqual({ data: Buffer.from('only') });
  });
  it.each([
    ['no context', config({ top: { 'current-context': '' } }), 'current-context: required'],
    ['an unknown context', config({ top: { 'current-context': 'there' } }), 'there is no context "there"'],
    ['an unknown cluster', config({ top: { clusters: [] } }), 'contexts[here].cluster: there is no cluster "c"'],
    ['an unknown user', config({ top: { users: null } }), 'contexts[here].user: there is no user "u"'],
    ['plain http', config({ cluster: { server: 'http://api' } }), 'clusters[c].cluster.server: must be an https URL'],
    [
      'no verification and an authority',
      config({ cluster: { 'insecure-skip-tls-verify': true, 'certificate-authority': 'ca.pem' } }),
      'clusters[c].cluster.insecure-skip-tls-verify: not allowed together with certificate-authority',
    ],
    ['a proxy of another kind', config({ cluster: { 'proxy-url': 'socks5://p' } }), 'clusters[c].cluster.proxy-url: must be the URL'],
    ['half a pair', config({ user: { 'client-certificate': 'x' } }), 'users[u].user.client-key: required'],
    ['a password', config({ user: { username: 'me' } }), 'users[u].user.username: not supported here'],
    ['a plugin without a version', config({ user: { exec: { command: 'x' } } }), 'users[u].user.exec.apiVersion: "" is not one of'],
    ['another kind', config({ top: { kind: 'Pod' } }), 'kind is "Pod", expected Config'],
    ['no YAML', '{', 'is not YAML'],
  ])('with %s is refused by field', (_, text, words) => {
    expect(problem(text)).toContain('kubeconfig /etc/k/kubelet.conf: ');
    expect(problem(text)).toContain(words);
  });
  it('never quotes a credential', () => {
    expect(problem('users: [{name: u, user: {token: s3cret}}\n: :')).not.toContain('s3cret');
  });
});
