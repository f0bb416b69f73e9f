/** Pod certificates and trust anchors on a real API server that has them, with a signer that the test plays. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, LONG, STAY, startCluster } from '../cluster.ts';

const SIGNER = 'example.com/tests';
const GATES = ['ClusterTrustBundle', 'ClusterTrustBundleProjection', 'PodCertificateRequest'];
const GROUP = '/apis/certificates.k8s.io/v1beta1';
interface Request {
  metadata: { name: string; uid: string };
  spec: { stubPKCS10Request: string; nodeName: string; serviceAccountName: string };
  status?: { conditions?: { type: string }[] };
}

let c: Cluster;
let dir: string;
const openssl = (...args: string[]): string =>
  execFileSync('openssl', args, { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'pod-certificates-'));
  openssl('req', '-x509', '-newkey', 'ed25519', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=tests', '-days', '1');
  const on = `--feature-gates=${GATES.map((gate) => `${gate}=true`).join()}`;
  const resources = ['clustertrustbundles', 'podcertificaterequests'].map((r) => `certificates.k8s.io/v1beta1/${r}=true`);
  c = await startCluster({
    config: { featureGates: Object.fromEntries(GATES.map((gate) => [gate, true])) },
    plane: {
      controllerManager: true,
      scheduler: true,
      flags: { 'kube-apiserver': [on, `--runtime-config=${resources.join()}`] },
    },
  });
});
afterAll(async () => {
  await c?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function requests(): Promise<Request[]> {
  const got = await c.plane.request('GET', `${GROUP}/namespaces/default/podcertificaterequests`);
  if (got.status !== 200) throw new Error(`podcertificaterequests: ${got.status} ${JSON.stringify(got.body)}`);
  return (got.body as { items: Request[] }).items;
}
const isOpen = ({ status }: Request): boolean => (status?.conditions ?? []).length === 0;

/** Signs the oldest open request with the CA of the test, for an hour. */
async function sign(refreshInMs: number): Promise<void> {
  const open = await c.daemon.wait('a request', async () => (await requests()).find(isOpen), LONG);
  const found = open as unknown as Request;
  writeFileSync(join(dir, 'request.der'), Buffer.from(found.spec.stubPKCS10Request, 'base64'));
  openssl('req', '-inform', 'DER', '-in', 'request.der', '-out', 'request.pem');
  writeFileSync(join(dir, 'ext'), `subjectAltName=URI:spiffe://tests/${found.metadata.uid}`);
  openssl(
    'x509',
    '-req',
    '-in',
    'request.pem',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-days',
    '1',
    '-extfile',
    'ext',
    '-out',
    'leaf.pem',
  );
  const leaf = openssl('x509', '-in', 'leaf.pem');
  const { validFrom, validTo } = new X509Certificate(leaf);
  const at = (text: string | number): string => new Date(text).toISOString().replace(/\.\d+Z$/, 'Z');
  const status = {
    conditions: [{ type: 'Issued', status: 'True', reason: 'Signed', message: 'by the test', lastTransitionTime: at(Date.now()) }],
    certificateChain: leaf,
    notBefore: at(validFrom),
    beginRefreshAt: at(Date.parse(validFrom) + refreshInMs),
    notAfter: at(validTo),
  };
  const path = `${GROUP}/namespaces/default/podcertificaterequests/${found.metadata.name}/status`;
  const done = await c.plane.request('PATCH', path, { body: { status }, contentType: 'application/merge-patch+json' });
  if (done.status !== 200) throw new Error(`${path}: ${done.status} ${JSON.stringify(done.body)}`);
}

it('are written into the pod, with a key of the node that the API server takes', async () => {
  const ca = openssl('x509', '-in', 'ca.pem');
  await c.apply({
    apiVersion: 'certificates.k8s.io/v1beta1',
    kind: 'ClusterTrustBundle',
    metadata: { name: 'example.com:tests:ca', labels: { live: 'yes' } },
    spec: { signerName: SIGNER, trustBundle: ca },
  });
  const certificate = {
    signerName: SIGNER,
    keyType: 'ECDSAP256',
    credentialBundlePath: 'bundle.pem',
    keyPath: 'key.pem',
    certificateChainPath: 'chain.pem',
  };
  const bundle = { signerName: SIGNER, labelSelector: { matchLabels: { live: 'yes' } }, path: 'ca.pem' };
  await c.create('mtls', {
    containers: [
      sh('main', `cat /id/chain.pem /id/ca.pem; grep -c BEGIN /id/bundle.pem; echo written; ${STAY}`, {
        volumeMounts: [{ name: 'id', mountPath: '/id' }],
      }),
    ],
    volumes: [{ name: 'id', projected: { sources: [{ podCertificate: certificate }, { clusterTrustBundle: bundle }] } }],
  });
  const [request] = (await c.daemon.wait(
    'a request',
    async () => ((await requests()).length > 0 ? requests() : undefined),
    LONG,
  )) as unknown as Request[];
  expect(request?.spec).toMatchObject({ nodeName: NODE_NAME, serviceAccountName: 'default' });
  await sign(3_600_000);
  const pod = await c.ready('mtls');
  await c.daemon.wait('it reads the files', () => c.said(pod).includes('written'), LONG);
  // Without what the log of a container has before each line.
  const said = c.said(pod).replaceAll(/^\S+ stdout F /gm, '');
  expect(said).toContain(ca.trim());
  expect(said).toMatch(/\n2\nwritten/);
  const leaf = new X509Certificate(said);
  expect(leaf.subjectAltName).toBe(`URI:spiffe://tests/${request?.metadata.uid}`);
  expect(leaf.verify(new X509Certificate(ca).publicKey)).toBe(true);
  const asked = await c.plane.request('GET', `${DEFAULT_NAMESPACE}/pods/mtls`);
  expect(asked.status).toBe(200);
}, 240_000);

it('are asked for anew by the next daemon, while the pod runs on', async () => {
  const before = (await requests()).length;
  await c.daemon.end('SIGKILL');
  await c.daemon.start();
  await c.daemon.wait('another request', async () => (await requests()).length > before, LONG);
  await sign(3_600_000);
  await c.ready('mtls');
  await c.kubectl('delete', 'pod', 'mtls', '--wait=true');
}, 240_000);
