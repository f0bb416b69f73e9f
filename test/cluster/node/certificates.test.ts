/** A node that joins a real cluster with a bootstrap token: certificates asked for, approved, used, renewed and refused. */
import { X509Certificate } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, minorVersion, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { freePort } from '../../freePort.ts';

const TOKEN = { id: 'abcdef', secret: '0123456789abcdef' };
const LONG = { timeoutMs: 90_000, everyMs: 200 };
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

interface Csr {
  metadata: { name: string; creationTimestamp: string };
  spec: { signerName: string; username: string; usages: string[] };
  status: { conditions?: { type: string }[]; certificate?: string };
}

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
let port = 0;
let kubeconfig = '';

beforeAll(async () => {
  await buildDaemon();
  // The signer dates back five minutes, before 1.22 as a part of the duration: two remain, and the certificate is due for renewal
  // after the first of them.
  const minutes = minorVersion('kube-controller-manager') < 22 ? 7 : 2;
  const flags = { 'kube-controller-manager': [`--cluster-signing-duration=${minutes}m`] };
  plane = await startControlPlane({ controllerManager: true, flags });
  // As kubeadm sets clusters up: a node may renew its own without a person.
  await plane.kubectl(
    ...['create', 'clusterrolebinding', 'renew', '--group=system:nodes'],
    '--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
  );
  lab = await startContainerd();
  port = await freePort();
  kubeconfig = join(plane.dir, 'joined.kubeconfig');
  const bootstrap = join(plane.dir, 'bootstrap.kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: plane.url, 'certificate-authority': plane.ca.certFile } }],
    users: [{ name: 'u', user: { token: `${TOKEN.id}.${TOKEN.secret}` } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(bootstrap, JSON.stringify(config), { mode: 0o600 });
  daemon = await createDaemon(
    lab,
    {
      ...{ enableServer: true, port, rotateCertificates: true, serverTLSBootstrap: true },
      authentication: { x509: { clientCAFile: plane.ca.certFile } },
    },
    [`--kubeconfig=${kubeconfig}`, `--bootstrap-kubeconfig=${bootstrap}`, '--node-ip=127.0.0.1'],
  );
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

async function csrs(signer: string): Promise<Csr[]> {
  const { body } = await plane.request('GET', CSRS);
  return (body as { items: Csr[] }).items.filter((c) => c.spec.signerName === `kubernetes.io/${signer}`);
}
const pending = async (signer: string) => (await csrs(signer)).filter((c) => c.status.conditions === undefined);
const message = async (actor: string): Promise<string> => {
  const text = (await daemon.admin.get('/healthz', { verbose: '' })).body;
  return text.split('\n').find((l) => l.includes(actor)) ?? '';
};
/** What the node's API shows in its handshake, verified against the cluster's CA; or the code of what went wrong. */
function served(): Promise<{ cert: X509Certificate } | { code: string }> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/healthz', agent: false as const, ca: readFileSync(plane.ca.certFile) };
    const req = request(options, (res) => {
      resolve({ cert: new X509Certificate((res.socket as TLSSocket).getPeerCertificate().raw) });
      res.destroy();
    });
    req.once('error', (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? 'error' }));
    req.end();
  });
}
const current = () => join(daemon.dir, 'pki/kubelet-client-current.pem');
const clientCert = () => new X509Certificate(readFileSync(current()));

it('says what is wrong while the cluster does not know its token, and asks as soon as it does', async () => {
  await daemon.wait(
    'the token to be refused',
    async () => /401 Unauthorized.*--bootstrap-kubeconfig/.test(await message('clientCertificate')),
    LONG,
  );
  const data = { 'token-id': TOKEN.id, 'token-secret': TOKEN.secret, 'usage-bootstrap-authentication': 'true' };
  const made = await plane.request('POST', '/api/v1/namespaces/kube-system/secrets', {
    body: { metadata: { name: `bootstrap-token-${TOKEN.id}` }, type: 'bootstrap.kubernetes.io/token', stringData: data },
  });
  expect(made.status).toBe(201);
  await daemon.wait('the user to be refused', async () => /403 Forbidden.*needs the right/.test(await message('clientCertificate')), LONG);
  await plane.kubectl('create', 'clusterrolebinding', 'join', '--clusterrole=system:node-bootstrapper', '--group=system:bootstrappers');
  await daemon.wait('a request', async () => (await pending('kube-apiserver-client-kubelet')).length === 1, LONG);
  const [csr] = await pending('kube-apiserver-client-kubelet');
  expect(csr?.metadata.name).toMatch(/^node-csr-[\w-]{43}$/);
  expect(csr?.spec.username).toBe(`system:bootstrap:${TOKEN.id}`);
  expect(existsSync(kubeconfig)).toBe(false);
});

it('waits for the same request over a kill -9, joins when it is approved, and writes what it needs for the next start', async () => {
  const [before] = await pending('kube-apiserver-client-kubelet');
  await daemon.end('SIGKILL');
  await daemon.start();
  const name = before?.metadata.name ?? '';
  await daemon.wait('it to wait', async () => daemon.log().split(name).length > 2, LONG);
  expect(await pending('kube-apiserver-client-kubelet')).toHaveLength(1);
  await plane.kubectl('certificate', 'approve', name);
  await daemon.wait('the kubeconfig', () => existsSync(kubeconfig), LONG);
  expect(statSync(kubeconfig).mode & 0o777).toBe(0o600);
  expect(statSync(current()).mode & 0o777).toBe(0o600);
  expect(lstatSync(current()).isSymbolicLink()).toBe(true);
  expect(clientCert().subject.split('\n').sort()).toEqual([`CN=system:node:${NODE_NAME}`, 'O=system:nodes']);
  await daemon.wait('the node to be ready', async () => (await plane.kubectl('get', 'nodes')).includes(' Ready '), LONG);
  expect(daemon.log()).not.toContain(TOKEN.secret);
  expect(daemon.log()).not.toContain('PRIVATE KEY');
  // kubectl goes with the written file.
  expect(await plane.kubectlAs(kubeconfig, 'get', 'node', NODE_NAME, '-o', 'name')).toBe(`node/${NODE_NAME}\n`);
});

it('serves nothing before its serving certificate is approved, and then with it, for its own address', async () => {
  await daemon.wait('a request', async () => (await pending('kubelet-serving')).length >= 1, LONG);
  expect(await served()).toMatchObject({ code: expect.stringMatching(/EPROTO|ECONNRESET|ERR_SSL/) });
  const cert = await daemon.wait(
    'a verified handshake',
    async () => {
      // All there are: one that asks for earlier addresses of the node may be among them.
      for (const csr of await pending('kubelet-serving')) {
        expect(csr.spec.username).toBe(`system:node:${NODE_NAME}`);
        await plane.kubectl('certificate', 'approve', csr.metadata.name);
      }
      const answer = await served();
      return 'cert' in answer ? answer.cert : undefined;
    },
    LONG,
  );
  expect(cert.subjectAltName).toContain('IP Address:127.0.0.1');
  expect(cert.subjectAltName).toContain(`DNS:${NODE_NAME}`);
});

it('renews its client certificate by itself, and outlives the one before', { timeout: 420_000 }, async () => {
  const first = clientCert();
  await daemon.wait('another certificate', () => clientCert().fingerprint256 !== first.fingerprint256, {
    timeoutMs: 200_000,
    everyMs: 500,
  });
  await until('the first one to end', () => Date.now() > Date.parse(first.validTo) + 5_000, { timeoutMs: 200_000, everyMs: 500 });
  const renewed = async () => {
    const { body } = await plane.request('GET', `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE_NAME}`);
    return Date.parse((body as { spec: { renewTime: string } }).spec.renewTime) > Date.parse(first.validTo) + 1_000;
  };
  await daemon.wait('the lease to be renewed after that', renewed, LONG);
  expect((await plane.kubectl('get', 'nodes')).includes(' Ready ')).toBe(true);
  expect(readdirSync(join(daemon.dir, 'pki')).filter((f) => /^kubelet-client-\d/.test(f)).length).toBeGreaterThanOrEqual(2);
  const user = (await csrs('kube-apiserver-client-kubelet')).filter((c) => c.metadata.name.startsWith('csr-')).map((c) => c.spec.username);
  expect(new Set(user)).toEqual(new Set([`system:node:${NODE_NAME}`]));
});
