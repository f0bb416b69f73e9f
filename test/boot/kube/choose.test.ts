/**
 * Which kubeconfig a node starts with, and where the pair that it renews comes from: each combination of kubeconfig,
 * bootstrap kubeconfig and what an earlier life left on disk.
 */
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { type ChooseOptions, chooseCredentials } from '../../../src/boot/dependencies/kube/choose.ts';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { collectingLogger, type LogLine } from '../../supervision/fakePorts.ts';
import { tempDir } from '../helpers.ts';
import { issue } from './certs.ts';

const ca = issue({ cn: 'ca', issuer: null });
const client = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca });
const ended = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca, ageMs: 3 * 86_400_000 });

let dir: ReturnType<typeof tempDir>;
let lines: LogLine[] = [];
beforeEach(() => {
  dir = tempDir();
  lines = [];
});
afterEach(() => dir[Symbol.dispose]());

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const pair = (i: { cert: string; key: string }) => ({ 'client-certificate-data': base64(i.cert), 'client-key-data': base64(i.key) });
const kubeconfig = (user: object, cluster: object = {}): string =>
  JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://api.example:6443', 'certificate-authority-data': base64(ca.cert), ...cluster } }],
    users: [{ name: 'x', user }],
  });
const choose = (o: Partial<ChooseOptions> = {}) =>
  chooseCredentials({
    kubeconfig: join(dir.path, 'kubelet.conf'),
    bootstrapKubeconfig: '',
    rotate: false,
    certDir: join(dir.path, 'pki'),
    nowMs: Date.now(),
    fs: createHostFs(),
    log: collectingLogger(lines),
    ...o,
  });
const current = () => join(dir.path, 'pki/kubelet-client-current.pem');

describe('without a bootstrap kubeconfig', () => {
  it('uses the kubeconfig as it is', async () => {
    dir.write('kubelet.conf', kubeconfig(pair(client)));
    const { client: file, kept } = await choose();
    expect(kept).toBeNull();
    expect(file.cert).toEqual({ data: Buffer.from(client.cert) });
  });
  it.each([
    ['that is not there', undefined, 'there is no such file'],
    ['that is no kubeconfig', 'kind: Pod', 'kind is "Pod"'],
  ])('refuses the start with one %s', async (_, text, words) => {
    if (text !== undefined) dir.write('kubelet.conf', text);
    await expect(choose()).rejects.toThrow(words);
    await expect(choose({ rotate: true })).rejects.toThrow('--kubeconfig');
  });
  it('puts the pair that the kubeconfig came with into --cert-dir where it is to be renewed, for its owner only', async () => {
    dir.write('kubelet.conf', kubeconfig(pair(client)));
    const { client: file, kept } = await choose({ rotate: true });
    expect(kept).toEqual({ bootstrap: null, kubeconfig: null, renewNow: true });
    expect([file.cert, file.key]).toEqual([{ file: current() }, { file: current() }]);
    const text = await readFile(current(), 'utf8');
    expect(text).toContain(client.cert.trim());
    expect(text).toContain(client.key.trim());
    expect((await lstat(current())).isSymbolicLink()).toBe(true);
    // The second time it is there, and no newcomer any more.
    expect((await choose({ rotate: true })).kept).toEqual({ bootstrap: null, kubeconfig: null, renewNow: false });
  });
  it('has nothing to renew where a token is all there is, and says so', async () => {
    dir.write('kubelet.conf', kubeconfig({ token: 'hush' }));
    expect((await choose({ rotate: true })).kept).toBeNull();
    expect(lines.map((l) => l.msg)).toEqual(['rotateCertificates has no effect: the kubeconfig has no client certificate to renew']);
  });
});

describe('with a bootstrap kubeconfig', () => {
  const withToken = (): string =>
    dir.write('bootstrap.conf', kubeconfig({ token: 'abcdef.0123456789abcdef' }, { 'tls-server-name': 'kubernetes' }));

  it.each([
    ['is not there', undefined],
    ['is unreadable text', '{'],
    ['has a token only', kubeconfig({ token: 'x' })],
    ['has a certificate that has ended', kubeconfig(pair(ended))],
    ['has a certificate with another key', kubeconfig({ ...pair(client), 'client-key-data': base64(ca.key) })],
    ['refers to files that are away', kubeconfig({ 'client-certificate': 'gone.pem', 'client-key': 'gone.pem' })],
  ])('asks for a certificate when the kubeconfig %s', async (_, text) => {
    if (text !== undefined) dir.write('kubelet.conf', text);
    const { client: file, kept } = await choose({ bootstrapKubeconfig: withToken() });
    expect(kept?.bootstrap?.token).toEqual({ data: Buffer.from('abcdef.0123456789abcdef') });
    // The bootstrap token is not what the node goes on with.
    expect([file.token, file.cert, file.key]).toEqual([null, { file: current() }, { file: current() }]);
    const written = parseKubeConfig(kept?.kubeconfig?.text ?? '', '/etc/kubelet.conf');
    expect(written).toMatchObject({
      tlsServerName: 'kubernetes',
      cert: { file: current() },
      key: { file: current() },
      token: null,
      exec: null,
    });
    expect([written.server.href, written.ca]).toEqual(['https://api.example:6443/', { data: Buffer.from(ca.cert) }]);
    expect(kept?.kubeconfig?.text).not.toContain('abcdef');
    expect(JSON.stringify(lines)).not.toContain('abcdef');
  });
  it('leaves a good kubeconfig alone, whatever the bootstrap file is', async () => {
    dir.write('kubelet.conf', kubeconfig(pair(client)));
    expect((await choose({ bootstrapKubeconfig: join(dir.path, 'not-there') })).kept).toBeNull();
  });
  it('keeps watch over a pair of its own, with the bootstrap credentials for when it has ended', async () => {
    dir.write('kubelet.conf', kubeconfig({ 'client-certificate': current(), 'client-key': current() }));
    dir.write('pki/kubelet-client-current.pem', `${client.cert}${client.key}`);
    const { kept } = await choose({ bootstrapKubeconfig: withToken() });
    expect(kept).toMatchObject({ kubeconfig: null, renewNow: false });
    expect(kept?.bootstrap?.token).not.toBeNull();
  });
  it('refuses the start when it cannot be used itself', async () => {
    await expect(choose({ bootstrapKubeconfig: join(dir.path, 'not-there') })).rejects.toThrow('--bootstrap-kubeconfig');
  });
});
