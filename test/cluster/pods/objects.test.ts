/** What a pod of a real cluster brings along: its token, secrets, config maps and services, shown by a real API server to a real container. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, minorVersion, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { startRegistry } from '../../e2e/lab/registry.ts';
import { sh } from '../../e2e/manifests.ts';

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
const LONG = { timeoutMs: 90_000, everyMs: 100 };
const CORE = '/api/v1/namespaces/default';

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  lab = await startContainerd();
  daemon = await createDaemon(lab, {}, ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME), '--v=4']);
  await daemon.start();
  await until('the default service account', () => plane.kubectl('get', 'serviceaccount', 'default'), LONG);
  await until('the CA of the cluster', () => plane.kubectl('get', 'configmap', 'kube-root-ca.crt'), LONG);
});
afterAll(async () => {
  await daemon?.dispose();
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

async function post(path: string, body: object): Promise<void> {
  const made = await plane.request('POST', `${CORE}/${path}`, { body });
  if (made.status !== 201) throw new Error(`POST ${path}: ${made.status} ${JSON.stringify(made.body)}`);
}
async function merge(path: string, body: object): Promise<void> {
  const done = await plane.request('PATCH', `${CORE}/${path}`, { body, contentType: 'application/merge-patch+json' });
  if (done.status !== 200) throw new Error(`PATCH ${path}: ${done.status} ${JSON.stringify(done.body)}`);
}
async function inApi(name: string): Promise<Pod | null> {
  const got = await plane.request('GET', `${CORE}/pods/${name}`);
  return got.status === 200 ? (got.body as Pod) : null;
}
async function create(name: string, spec: Partial<PodSpec> & Pick<PodSpec, 'containers'>): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { terminationGracePeriodSeconds: 1, ...spec } };
  // Older API servers refuse pods for the moment that the account's token takes to be made.
  await until(`${name} is accepted`, () => post('pods', body).then(() => true), LONG);
}
async function running(name: string): Promise<Pod> {
  return daemon.wait(
    `${name} is Ready`,
    async () => {
      const pod = await inApi(name);
      return pod?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true && pod;
    },
    LONG,
  );
}
/** What the container wrote. */
function said(pod: Pod): string {
  const { name, uid } = pod.metadata;
  const file = join(daemon.podLogs, `default_${name}_${uid}`, 'main', '0.log');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
const hears = (pod: Pod, line: RegExp, within = LONG) => daemon.wait(`the container says ${line}`, () => line.test(said(pod)), within);
const waitingFor = async (name: string) => (await inApi(name))?.status.containerStatuses?.[0]?.state?.waiting;
const STAY = 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done';

describe('a pod of a real cluster', () => {
  it('has a token that the API server knows it by, the CA and its namespace; the token dies with it', async () => {
    const access = {
      name: 'access',
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token', expirationSeconds: 600 } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
        ],
      },
    };
    const script = `echo "namespace=$(cat /access/namespace) ca=$(grep -c BEGIN /access/ca.crt) api=$KUBERNETES_SERVICE_HOST"; ${STAY}`;
    await create('token', {
      containers: [sh('main', script, { volumeMounts: [{ name: 'access', mountPath: '/access' }] })],
      volumes: [access],
    });
    const pod = await running('token');
    await hears(pod, /namespace=default ca=1 api=10\.251\.0\.1/);
    const dir = join(daemon.rootDir, 'pods', pod.metadata.uid, 'volumes', 'kubernetes.io~projected', 'access');
    expect(statSync(join(dir, 'token')).mode & 0o777).toBe(0o644);
    const token = readFileSync(join(dir, 'token'), 'utf8');
    const review = async () => {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
      const { body: answer } = await plane.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body });
      return (answer as { status: { authenticated?: boolean; user?: { username: string; extra?: Record<string, string[]> } } }).status;
    };
    expect(await review()).toMatchObject({
      authenticated: true,
      user: {
        username: 'system:serviceaccount:default:default',
        extra: { 'authentication.kubernetes.io/pod-uid': [pod.metadata.uid] },
      },
    });
    expect(daemon.log()).not.toContain(token);
    expect(await daemon.ctl('recorder')).not.toContain(token);
    await plane.kubectl('delete', 'pod', 'token');
    await until('the token is good no more', async () => (await review()).authenticated !== true, LONG);
    await daemon.wait('its directory is gone', () => !existsSync(join(daemon.rootDir, 'pods', pod.metadata.uid)), LONG);
  });

  it('that nobody told about tokens has the one that the cluster gives to every pod', async () => {
    const script = `echo "token of $(wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token) bytes"; ${STAY}`;
    await create('ordinary', { containers: [sh('main', script)] });
    const pod = await running('ordinary');
    await hears(pod, /token of [1-9]\d{2,} bytes/);
    await plane.kubectl('delete', 'pod', 'ordinary');
  });

  it('is started when the secret that it lacks comes, told in the words of the reference until then', async () => {
    const env = [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'late', key: 'password' } } }];
    const envFrom = [{ prefix: 'APP_', configMapRef: { name: 'settings' } }];
    await post('configmaps', { metadata: { name: 'settings' }, data: { MODE: 'fast' } });
    await create('env', { containers: [sh('main', `echo "length=\${#PASSWORD} mode=$APP_MODE"; ${STAY}`, { env, envFrom })] });
    await daemon.wait('told', async () => (await waitingFor('env'))?.reason === 'CreateContainerConfigError', LONG);
    expect((await waitingFor('env'))?.message).toBe('secret "late" not found');
    await post('secrets', { metadata: { name: 'late' }, stringData: { password: 'correct horse battery' } });
    const pod = await running('env');
    await hears(pod, /length=21 mode=fast/);
    expect(pod.status.containerStatuses?.[0]?.restartCount).toBe(0);
    const { containerID } = pod.status.containerStatuses?.[0] ?? {};
    expect(daemon.log()).not.toContain('correct horse');
    // What was given at the start stays: the container is not started anew.
    await merge('configmaps/settings', { data: { MODE: 'slow' } });
    await plane.kubectl('delete', 'secret', 'late');
    await daemon.end('SIGKILL');
    await daemon.start();
    expect((await running('env')).status.containerStatuses?.[0]?.containerID).toBe(containerID);
    await plane.kubectl('delete', 'pod', 'env');
  });

  // Older API servers refuse such names, and know no files of variables.
  it.runIf(minorVersion('kube-apiserver') >= 35)('has variables with names that shells do not take, and from a file', async () => {
    await post('configmaps', { metadata: { name: 'odd' }, data: { '2b': 'two', MODE: 'fast' } });
    const volumes = [{ name: 'config', emptyDir: {} }];
    const from = (key: string, optional = false) => ({ fileKeyRef: { volumeName: 'config', path: 'config.env', key, optional } });
    const write = `printf "# ours\\nADDRESS='a.example:80' # and the port\\nLONG='one\\ntwo'\\n" > /data/config.env`;
    await create('odd', {
      volumes,
      restartPolicy: 'Never',
      initContainers: [sh('setup', write, { volumeMounts: [{ name: 'config', mountPath: '/data' }] })],
      containers: [
        sh('main', '', {
          // A shell would not hand such names on.
          command: ['env'],
          envFrom: [
            { prefix: '1-', configMapRef: { name: 'odd' } },
            { prefix: '#', configMapRef: { name: 'odd' } },
          ],
          env: [
            { name: '!A', value: '$(1-MODE) $(#2b)' },
            { name: 'ADDRESS', valueFrom: from('ADDRESS') },
            { name: 'LONG', valueFrom: from('LONG') },
            { name: 'NONE', valueFrom: from('NONE', true) },
          ],
        }),
      ],
    });
    const ended = async () => {
      const pod = await inApi('odd');
      return pod?.status.phase === 'Succeeded' && pod;
    };
    const lines = said(await daemon.wait('it ends', ended, LONG))
      .replaceAll(/^.*? stdout F /gm, '')
      .split('\n');
    const wanted = ['1-2b=two', '1-MODE=fast', '#2b=two', '#MODE=fast', '!A=fast two', 'ADDRESS=a.example:80', 'LONG=one', 'two'];
    expect(lines).toEqual(expect.arrayContaining(wanted));
    expect(lines.filter((l) => l.startsWith('NONE'))).toEqual([]);
    await plane.kubectl('delete', 'pod', 'odd');
  });

  it('pulls a private image with its pull secret, and cannot without', async () => {
    const registry = await startRegistry({ username: 'me', password: 'open sesame', configDir: join(lab.dir, 'certs.d') });
    try {
      const { image } = registry;
      await create('locked', { containers: [sh('main', STAY, { image })] });
      await daemon.wait('refused', async () => /^(ErrImagePull|ImagePullBackOff)$/.test((await waitingFor('locked'))?.reason ?? ''), LONG);
      expect(registry.users).not.toContain('me');
      const auths = { [registry.host]: { auth: Buffer.from('me:open sesame').toString('base64') } };
      await post('secrets', {
        metadata: { name: 'pull' },
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
      });
      await create('unlocked', { containers: [sh('main', STAY, { image })], imagePullSecrets: [{ name: 'pull' }] });
      await running('unlocked');
      expect(registry.users).toContain('me');
      expect(daemon.log()).not.toMatch(/open sesame|bWU6b3BlbiBzZXNhbWU=/);
      await plane.kubectl('delete', 'pod', 'locked', 'unlocked');
    } finally {
      await registry.stop();
    }
  });

  it('sees a changed config map in its volume, before and after the daemon was killed', async () => {
    await post('configmaps', { metadata: { name: 'live' }, data: { value: 'one' } });
    const script = 'trap "exit 0" TERM; while :; do echo "value=$(cat /config/value)"; sleep 0.3 & wait $!; done';
    await create('live', {
      containers: [sh('main', script, { volumeMounts: [{ name: 'config', mountPath: '/config' }] })],
      volumes: [{ name: 'config', configMap: { name: 'live' } }],
    });
    const pod = await running('live');
    await hears(pod, /value=one/);
    await merge('configmaps/live', { data: { value: 'two' } });
    await hears(pod, /value=two/);
    await daemon.end('SIGKILL');
    await merge('configmaps/live', { data: { value: 'three' } });
    await daemon.start();
    // At the latest when its files are compared with their sources: once in a minute and a half.
    await hears(pod, /value=three/, { ...LONG, timeoutMs: 150_000 });
    await plane.kubectl('delete', 'pod', 'live');
    await daemon.wait('it is gone', async () => (await inApi('live')) === null, LONG);
  });
});
