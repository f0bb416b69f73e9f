/** The fault proxy in front of kube-apiserver: kubectl, a controller manager that speaks protobuf, and reads byte by byte. */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { startFleet } from '../../../packages/fleet/src/index.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, startFleetProcess } from './command.ts';

const run = promisify(execFile);
const LONG = { timeoutMs: 60_000, everyMs: 100 };
const dir = mkdtempSync(join(tmpdir(), 'actorlet-proxy-'));
afterAll(() => {
  endFleetProcesses();
  rmSync(dir, { recursive: true, force: true });
});

const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const web = (replicas: number) => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web' }] } },
  },
});

/** In protobuf, as Kubernetes' own controllers ask. */
function read(kubeconfig: string, path: string): Promise<Buffer> {
  const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
    users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
  };
  const of = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user];
  return new Promise((resolve, reject) => {
    const req = request(`${cluster?.server ?? ''}${path}`, {
      ...{
        ca: of(cluster?.['certificate-authority-data']),
        cert: of(user?.['client-certificate-data']),
        key: of(user?.['client-key-data']),
      },
      ...{ agent: false, headers: { accept: 'application/vnd.kubernetes.protobuf', 'user-agent': 'reader/v1' } },
    });
    req.once('error', reject);
    req.once('response', (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.once('end', () => resolve(Buffer.concat(chunks)));
    });
    req.end();
  });
}

it('gives kubectl, streams and protobuf clients what the API server says, and its faults to the one that is named', {
  timeout: 240_000,
}, async () => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
  const fleet = await startFleet({ nodes: 2, api: 'local', proxy: true, port: 0 });
  const log = join(dir, 'kcm.log');
  const kcm = spawn('/bin/sh', [
    '-c',
    'exec "$@" 2>"$0"',
    log,
    program('kube-controller-manager'),
    `--kubeconfig=${fleet.kubeconfig}`,
    '--leader-elect=false',
    '--secure-port=0',
    '-v=4',
    '--controllers=deployment-controller,replicaset-controller',
  ]);
  try {
    const kubectl = async (...args: string[]) => (await run(program('kubectl'), ['--kubeconfig', fleet.kubeconfig, ...args])).stdout;
    await fleet.ready();
    expect(await kubectl('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')).toBe('kubernetes-admin');
    await fleet.apply(web(2));
    await fleet.expect({ objects: deployment, where: 'object.status.availableReplicas == 2', atLeast: 1 });

    // What is old is what it was, byte by byte.
    const path = '/apis/apps/v1/namespaces/default/deployments/web';
    const before = await read(fleet.kubeconfig, path);
    expect(before.subarray(0, 4).toString('latin1')).toBe('k8s\0');
    await fleet.injectApi({ fault: 'stale-reads', userAgents: ['reader'], age: '0s', for: '120s' });
    await fleet.apply(web(3));
    await fleet.expect({ objects: deployment, where: 'object.status.availableReplicas == 3', atLeast: 1 });
    expect((await read(fleet.kubeconfig, path)).equals(before)).toBe(true);
    expect(await kubectl('get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}')).toBe('3');

    const userAgents = ['kube-controller-manager'];
    await until('the controller manager', async () => /Caches are synced.*replicaset/s.test(readFileSync(log, 'utf8')), LONG);
    await fleet.injectApi({ fault: 'watch-expired', userAgents, as: 'event' });
    await until('its watches to end', () => fleet.apiHits().some(({ did }) => did === 'the watch was ended by 410'), LONG);
    // It could read the event: else it says that it cannot decode it.
    await until('it to read 410', () => /too old/.test(readFileSync(log, 'utf8')), LONG);
    await fleet.injectApi({ fault: 'lost-answer', userAgents, times: 2, for: '20s' });
    await fleet.injectApi({ fault: 'conflict', userAgents, times: 2, for: '20s' });
    await fleet.injectApi({ fault: 'watch-lag', userAgents, delay: '300ms', for: '3s' });
    await fleet.apply(web(5));
    await fleet.expect({ objects: deployment, where: 'object.status.availableReplicas == 5', atLeast: 1 });
    expect(readFileSync(log, 'utf8')).not.toMatch(/unable to decode|couldn't get version/);
    await fleet.expect({ requests: { userAgents, verbs: ['update'] }, atLeast: 1 });

    // A token is passed on, and the API server judges it.
    const stranger = JSON.parse(readFileSync(fleet.kubeconfig, 'utf8')) as { users: { user: object }[] };
    stranger.users = [{ name: 'proxy', user: { token: 'none' } } as unknown as { user: object }];
    writeFileSync(join(dir, 'stranger'), JSON.stringify(stranger));
    await expect(run(program('kubectl'), ['--kubeconfig', join(dir, 'stranger'), 'get', 'nodes'])).rejects.toThrow(
      /Unauthorized|logged in/,
    );
  } finally {
    kcm.kill('SIGKILL');
    await fleet.stop();
  }
});

it('a fleet file puts etcd back to what it was, and evicts the pods of a node', { timeout: 240_000 }, async () => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
  const file = join(dir, 'restore.yaml');
  const configMap = (name: string): string => `[{ apiVersion: v1, kind: ConfigMap, metadata: { name: ${name} } }]`;
  const pod =
    '{ apiVersion: v1, kind: Pod, metadata: { name: web }, spec: { containers: [{ name: web, image: web }], terminationGracePeriodSeconds: 1 } }';
  writeFileSync(
    file,
    `apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: restored }
spec:
  groups: [{ name: node, count: 1 }]
  steps:
    - { at: 1s, do: apply, objects: ${configMap('old')} }
    - { at: 2s, do: backup }
    - { at: 3s, do: apply, objects: ${configMap('new')} }
    - { at: 4s, do: restore }
    - { at: 5s, do: apply, objects: [${pod}] }
    - { at: 45s, do: evict }
  expect:
    - { objects: { kind: ConfigMap, name: old }, atLeast: 1, after: 46s, within: 120s }
    - { objects: { kind: ConfigMap, name: new }, atMost: 0, after: 46s, within: 120s }
    - { events: { reason: Killing, kind: Pod, name: web }, atLeast: 1, after: 46s, within: 120s }
    - { objects: { kind: Pod, name: web }, atMost: 0, after: 46s, within: 120s }
`,
  );
  const fleet = startFleetProcess(file, '--api=local', `--socket=${join(dir, 'restored.sock')}`);
  expect(await fleet.ended, fleet.text()).toBe(0);
  expect(fleet.text()).toMatch(/restore: 1 control plane\n/);
  expect(fleet.text()).toMatch(/evict: 1 pod\n/);
});
