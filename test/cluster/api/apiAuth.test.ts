/** Who may ask a node of a real cluster what: service account tokens and RBAC, decided by the real API server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, askHttps } from '../../askHttps.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { IMAGE } from '../../e2e/manifests.ts';
import { freePort } from '../../freePort.ts';

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
let port = 0;
let token = '';
/** A no is remembered for 2 s here, so that a grant is seen soon. */
const DENIED_TTL = '2s';
const LONG = { timeoutMs: 60_000, everyMs: 200 };

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane({ flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } });
  lab = await startContainerd();
  port = await freePort();
  daemon = await createDaemon(
    lab,
    {
      ...{ enableServer: true, port },
      // The rest is what a configuration file has by default: webhook authentication and authorization, nobody anonymous.
      authentication: { x509: { clientCAFile: plane.ca.certFile } },
      authorization: { mode: 'Webhook', webhook: { cacheUnauthorizedTTL: DENIED_TTL } },
    },
    [`--kubeconfig=${plane.nodeKubeconfig(NODE_NAME)}`, '--node-ip=127.0.0.1'],
  );
  await daemon.start();
  await plane.kubectl('create', 'serviceaccount', 'scraper');
  const made = await plane.request('POST', '/api/v1/namespaces/default/serviceaccounts/scraper/token', {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  });
  token = (made.body as { status: { token: string } }).status.token;
});
afterAll(async () => {
  await daemon?.dispose();
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

function ask(path: string, bearer?: string): Promise<Answer> {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const ca = readFileSync(join(daemon.dir, 'pki/kubelet.crt'));
  return askHttps({ host: '127.0.0.1', servername: NODE_NAME, port, path, headers, ca });
}

it('gives a service account what RBAC gives it, and no more', async () => {
  expect(await ask('/metrics/resource')).toEqual({ status: 401, body: 'Unauthorized' });
  expect(await ask('/metrics/resource', `${token}x`)).toEqual({ status: 401, body: 'Unauthorized' });
  const refused = await ask('/metrics/resource', token);
  expect(refused).toEqual({
    status: 403,
    body: 'Forbidden (user=system:serviceaccount:default:scraper, verb=get, resource=nodes, subresource(s)=[metrics])',
  });
  await plane.kubectl('create', 'clusterrole', 'scrape', '--verb=get', '--resource=nodes/metrics');
  await plane.kubectl('create', 'clusterrolebinding', 'scrape', '--clusterrole=scrape', '--serviceaccount=default:scraper');
  await until('the grant', async () => (await ask('/metrics/resource', token)).status === 200, LONG);
  for (const path of ['/pods', '/stats/summary', '/statez', '/configz', '/logs/']) {
    expect([path, (await ask(path, token)).status]).toEqual([path, 403]);
  }
});

it('lets kubectl in by the client certificate of the API server', async () => {
  await until('the node to be ready', async () => (await plane.kubectl('get', 'node', NODE_NAME)).includes(' Ready '), LONG);
  expect(await plane.nodePage({ node: NODE_NAME, port, path: '/healthz' })).toBe('ok');
  const spec = {
    nodeName: NODE_NAME,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'echo hello; sleep 3600'] }],
  };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' }, spec };
  expect((await plane.request('POST', '/api/v1/namespaces/default/pods', { body: pod })).status).toBe(201);
  await until('its log', async () => (await plane.kubectl('logs', 'web')) === 'hello\n', LONG);
  expect(await plane.kubectl('exec', 'web', '--', 'echo', 'from inside')).toBe('from inside\n');
  await plane.kubectl('delete', 'pod', 'web', '--grace-period=1');
});

it('refuses while the API server is away, says so, and goes on when it is back', async () => {
  await plane.kill('kube-apiserver');
  const fresh = `${token.slice(0, -4)}AAAA`;
  expect((await ask('/metrics/resource', fresh)).status).toBe(401);
  // A remembered yes may still hold; nothing new is granted: a remembered no, or no answer.
  expect([403, 500]).toContain((await ask('/configz', token)).status);
  await plane.start('kube-apiserver');
  await until('the grant to hold again', async () => (await ask('/metrics/resource', token)).status === 200, LONG);
});
