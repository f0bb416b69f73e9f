/** What pods of the API bring along: secrets, config maps, tokens, services, pull secrets; a whole node in virtual time. */
import { describe, expect, it } from 'vitest';
import { apiView } from '../../src/machines/api/messages.ts';
import type { ContainerConfig, CriRequest } from '../../src/machines/cri.ts';
import type { Pod } from '../../src/machines/k8s.ts';
import { servicesView } from '../../src/machines/objects/messages.ts';
import { view } from '../../src/machines/protocol.ts';
import { pod as manifest, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from './virtualNode.ts';

const NS = '/api/v1/namespaces/default';
const cluster = (o: VirtualNodeOptions = {}) => virtualNode({ cluster: true, ...o });

function post(h: VirtualNode, path: string, body: object): void {
  const made = h.kube.handle({ verb: 'POST', path: `${NS}/${path}`, body });
  if (!made.ok) throw new Error(made.failure.message);
}
function patch(h: VirtualNode, path: string, body: object): void {
  const made = h.kube.handle({ verb: 'PATCH', path: `${NS}/${path}`, patchType: 'merge', body });
  if (!made.ok) throw new Error(made.failure.message);
}
function drop(h: VirtualNode, path: string, gracePeriodSeconds?: number): void {
  const query = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: String(gracePeriodSeconds) };
  const gone = h.kube.handle({ verb: 'DELETE', path: `${NS}/${path}`, query });
  if (!gone.ok) throw new Error(gone.failure.message);
}
const base64 = (data: Record<string, string>) => Object.fromEntries(Object.entries(data).map(([k, v]) => [k, btoa(v)]));
const secret = (h: VirtualNode, name: string, data: Record<string, string>, more: object = {}) =>
  post(h, 'secrets', { metadata: { name }, type: 'Opaque', data: base64(data), ...more });
const configMap = (h: VirtualNode, name: string, data: Record<string, string>, more: object = {}) =>
  post(h, 'configmaps', { metadata: { name }, data, ...more });
const service = (h: VirtualNode, name: string, clusterIP: string) =>
  post(h, 'services', { metadata: { name }, spec: { clusterIP, ports: [{ port: 443, protocol: 'TCP' }] } });

function create(h: VirtualNode, name: string, o: Parameters<typeof manifest>[1] = {}): Pod {
  const pod = manifest(name, o) as Pod;
  const made = h.kube.handle({ verb: 'POST', path: `${NS}/pods`, body: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } });
  if (!made.ok) throw new Error(made.failure.message);
  return made.body as Pod;
}
function inApi(h: VirtualNode, name: string): Pod | undefined {
  const got = h.kube.handle({ verb: 'GET', path: `${NS}/pods/${name}` });
  return got.ok ? (got.body as Pod) : undefined;
}
const isReady = (h: VirtualNode, name: string) =>
  inApi(h, name)?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const waiting = (h: VirtualNode, name: string) => inApi(h, name)?.status.containerStatuses?.[0]?.state?.waiting;
const events = (h: VirtualNode, reason: string) =>
  (h.tree.registry.read(view.events)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.message);
const created = (h: VirtualNode, name: string): ContainerConfig[] =>
  h.calls
    .filter((c) => c.method === 'CreateContainer')
    .map((c) => (c.req as CriRequest<'CreateContainer'>).config)
    .filter((c) => c.labels?.['io.kubernetes.pod.name'] === name);
const envOf = (config: ContainerConfig | undefined) => Object.fromEntries((config?.envs ?? []).map(({ key, value }) => [key, value]));
const dirOf = (p: Pod, plugin: string, volume: string) => `${ROOT}/pods/${p.metadata.uid}/volumes/kubernetes.io~${plugin}/${volume}`;
async function file(h: VirtualNode, dir: string, name: string): Promise<string> {
  const data = await h.fs.readlink(`${dir}/..data`);
  return new TextDecoder().decode(await h.fs.readFile(`${dir}/${data}/${name}`, { bytesMax: 1 << 16 }));
}
/** Follows the disk in virtual time: its answers need turns of the loop. */
async function read(h: VirtualNode, dir: string, name: string): Promise<string> {
  let text: string | undefined;
  file(h, dir, name).then(
    (t) => {
      text = t;
    },
    (e: unknown) => {
      text = `not read: ${String(e)}`;
    },
  );
  await h.until(`${name} is read`, () => text !== undefined);
  return text ?? '';
}
const watches = (h: VirtualNode, resource: string, from = 0) =>
  h.kube.calls
    .slice(from)
    .filter((c) => c.request.path.endsWith(`/${resource}`) && c.request.query?.watch === 'true')
    .map((c) => c.request.query?.fieldSelector);
const gets = (h: VirtualNode, path: string, from = 0) =>
  h.kube.calls.slice(from).filter((c) => c.request.verb === 'GET' && c.request.path === `${NS}/${path}`).length;
const tokens = (h: VirtualNode) => h.kube.calls.filter((c) => c.request.path.endsWith('/token'));

const ACCESS = {
  name: 'kube-api-access',
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};
const MOUNT = { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true };
const withToken = (more: object = {}) => ({
  container: { volumeMounts: [MOUNT] },
  spec: { serviceAccountName: 'default', volumes: [ACCESS], ...more },
});
function account(h: VirtualNode): void {
  post(h, 'serviceaccounts', { metadata: { name: 'default' } });
  configMap(h, 'kube-root-ca.crt', { 'ca.crt': 'the CA' });
}
const fromSecret = (name: string, key: string) => ({ name: 'PASSWORD', valueFrom: { secretKeyRef: { name, key } } });

describe('a service account token', () => {
  it('stands in its volume beside the CA and the namespace, bound to the pod', async () => {
    await using h = await cluster();
    account(h);
    const p = create(h, 'web', withToken());
    await h.until('Ready', () => isReady(h, 'web'));
    const dir = dirOf(p, 'projected', 'kube-api-access');
    expect(await read(h, dir, 'token')).toMatch(/^token\./);
    expect(await read(h, dir, 'ca.crt')).toBe('the CA');
    expect(await read(h, dir, 'namespace')).toBe('default');
    expect(tokens(h)).toHaveLength(1);
    expect(tokens(h)[0]?.request).toMatchObject({
      verb: 'POST',
      path: `${NS}/serviceaccounts/default/token`,
      body: {
        spec: {
          audiences: [],
          expirationSeconds: 3607,
          boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'web', uid: p.metadata.uid },
        },
      },
    });
    expect(created(h, 'web')[0]?.mounts).toContainEqual(
      expect.objectContaining({ containerPath: MOUNT.mountPath, hostPath: dir, readonly: true }),
    );
  });

  it('is replaced when four fifths of its life are over, and not before', async () => {
    await using h = await cluster();
    account(h);
    const p = create(h, 'web', withToken());
    await h.until('Ready', () => isReady(h, 'web'));
    const dir = dirOf(p, 'projected', 'kube-api-access');
    const first = await read(h, dir, 'token');
    await h.advance(3_607_000 * 0.8 - 60_000);
    expect(tokens(h)).toHaveLength(1);
    // Files are compared with their sources every minute, lengthened by up to half.
    await h.advance(180_000);
    expect(tokens(h)).toHaveLength(2);
    expect(await read(h, dir, 'token')).not.toBe(first);
  });

  it('that cannot be replaced serves on while it is good; then it is an error that heals by itself', async () => {
    await using h = await cluster();
    account(h);
    const p = create(h, 'web', withToken());
    await h.until('Ready', () => isReady(h, 'web'));
    const dir = dirOf(p, 'projected', 'kube-api-access');
    const first = await read(h, dir, 'token');
    h.kube.trouble.verdict = (r) => (r.path.endsWith('/token') ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
    await h.advance(3_400_000);
    expect(events(h, 'FailedMount')).toEqual([]);
    expect(await read(h, dir, 'token')).toBe(first);
    expect(h.lines.some((l) => l.msg.startsWith('no new token'))).toBe(true);
    await h.advance(600_000);
    expect(events(h, 'FailedMount')).toContain(
      'MountVolume.SetUp failed for volume "kube-api-access" : token expired and refresh failed: injected',
    );
    expect(isReady(h, 'web')).toBe(true);
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    let now = first;
    for (let i = 0; i < 10 && now === first; i++) {
      await h.advance(60_000);
      now = await read(h, dir, 'token');
    }
    expect(now).not.toBe(first);
  });

  it('of an account that is not there holds the pod back, saying so, until it is', async () => {
    await using h = await cluster();
    configMap(h, 'kube-root-ca.crt', { 'ca.crt': 'the CA' });
    create(h, 'web', withToken());
    await h.until('told', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(
      'MountVolume.SetUp failed for volume "kube-api-access" : failed to fetch token: serviceaccounts "default" not found',
    );
    post(h, 'serviceaccounts', { metadata: { name: 'default' } });
    await h.until('Ready', () => isReady(h, 'web'), 120_000);
  });
});

describe('secrets and config maps in volumes', () => {
  const volume = (source: object) => ({
    container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    spec: { volumes: [{ name: 'v', ...source }] },
  });

  it('are shown anew within moments of their change', async () => {
    await using h = await cluster();
    configMap(h, 'c', { a: 'one' });
    const p = create(h, 'web', volume({ configMap: { name: 'c' } }));
    await h.until('Ready', () => isReady(h, 'web'));
    expect(await read(h, dirOf(p, 'configmap', 'v'), 'a')).toBe('one');
    patch(h, 'configmaps/c', { data: { a: 'two' } });
    await h.advance(2_000);
    expect(await read(h, dirOf(p, 'configmap', 'v'), 'a')).toBe('two');
  });

  it.each([
    ['Watch', 'secret "s" not found'],
    ['Cache', 'secrets "s" not found'],
    ['Get', 'secrets "s" not found'],
  ])('that are not there hold the pod back with the words of the reference, and it starts when they come (%s)', async (strategy, words) => {
    await using h = await cluster({ config: { configMapAndSecretChangeDetectionStrategy: strategy } });
    const p = create(h, 'web', volume({ secret: { secretName: 's' } }));
    await h.until('told', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toBe(`MountVolume.SetUp failed for volume "v" : ${words}`);
    expect(h.runtime.dump().sandboxes).toEqual([]);
    secret(h, 's', { key: 'value' });
    await h.until('Ready', () => isReady(h, 'web'), 120_000);
    expect(await read(h, dirOf(p, 'secret', 'v'), 'key')).toBe('value');
  });

  it('that come after a long while are mounted at once', async () => {
    await using h = await cluster();
    create(h, 'web', volume({ secret: { secretName: 's' } }));
    await h.until('told', () => events(h, 'FailedMount').length > 0);
    await h.advance(600_000);
    secret(h, 's', { key: 'value' });
    // The pod's worker asks for its volumes again a little later than they are there.
    await h.until('mounted', () => h.mounts.table.length === 1, 2_000);
    await h.until('Ready', () => isReady(h, 'web'), 60_000);
  });

  it('that are optional and not there are empty', async () => {
    await using h = await cluster();
    create(h, 'web', volume({ secret: { secretName: 's', optional: true } }));
    await h.until('Ready', () => isReady(h, 'web'));
  });

  it('stay as they are while the API server is away, and are followed again afterwards', async () => {
    await using h = await cluster();
    configMap(h, 'c', { a: 'one' });
    const p = create(h, 'web', volume({ configMap: { name: 'c' } }));
    await h.until('Ready', () => isReady(h, 'web'));
    h.kube.trouble.down = true;
    h.kube.cutWatches('truncate');
    await h.advance(300_000);
    expect(await read(h, dirOf(p, 'configmap', 'v'), 'a')).toBe('one');
    expect(events(h, 'FailedMount')).toEqual([]);
    patch(h, 'configmaps/c', { data: { a: 'two' } });
    h.kube.trouble.down = false;
    await h.until('found again', () => h.tree.registry.read(apiView.link)?.value.state === 'reachable', 60_000);
    await h.advance(5_000);
    expect(await read(h, dirOf(p, 'configmap', 'v'), 'a')).toBe('two');
  });
});

describe('watches of objects', () => {
  const env = (name: string) => ({ container: { env: [fromSecret(name, 'k')] } });

  it('are one per object however many pods name it, and end with the last of them', async () => {
    await using h = await cluster();
    secret(h, 's', { k: 'v' });
    create(h, 'a', env('s'));
    create(h, 'b', env('s'));
    await h.until('both run', () => isReady(h, 'a') && isReady(h, 'b'));
    const open = h.kube.openWatches();
    expect(watches(h, 'secrets')).toEqual(['metadata.name=s']);
    drop(h, 'pods/a', 1);
    await h.until('a is gone', () => inApi(h, 'a') === undefined);
    await h.advance(5_000);
    expect(h.kube.openWatches()).toBe(open);
    drop(h, 'pods/b', 1);
    await h.until('b is gone', () => inApi(h, 'b') === undefined);
    await h.advance(5_000);
    expect(h.kube.openWatches()).toBe(open - 1);
    expect(watches(h, 'secrets')).toHaveLength(1);
  });

  it('end when the object is immutable; a later pod is shown what stands there then (trap 67)', async () => {
    await using h = await cluster();
    await h.advance(5_000);
    const open = h.kube.openWatches();
    secret(h, 's', { k: 'one' }, { immutable: true });
    create(h, 'a', env('s'));
    await h.until('it runs', () => isReady(h, 'a'));
    await h.advance(1_000);
    expect(h.kube.openWatches()).toBe(open);
    const from = h.kube.calls.length;
    await h.advance(600_000);
    expect(h.kube.calls.slice(from).filter((c) => c.request.path.endsWith('/secrets'))).toEqual([]);
    drop(h, 'secrets/s');
    secret(h, 's', { k: 'two' }, { immutable: true });
    create(h, 'b', env('s'));
    await h.until('b runs', () => isReady(h, 'b'));
    expect(envOf(created(h, 'b')[0]).PASSWORD).toBe('two');
    await h.advance(1_000);
    expect(h.kube.openWatches()).toBe(open);
  });

  it('are found again for running pods when the actor was killed', async () => {
    await using h = await cluster();
    secret(h, 's', { k: 'one' });
    create(h, 'a', {
      ...env('s'),
      ...{ container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] } },
      spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
    });
    await h.until('it runs', () => isReady(h, 'a'));
    const open = h.kube.openWatches();
    h.kill('node/services/objects');
    await h.advance(10_000);
    expect(h.kube.openWatches()).toBe(open);
    patch(h, 'secrets/s', { data: base64({ k: 'two' }) });
    await h.advance(2_000);
    const p = inApi(h, 'a');
    expect(p === undefined ? '' : await read(h, dirOf(p, 'secret', 'v'), 'k')).toBe('two');
  });

  it('are none with strategy Cache, which asks again when its time is over and for each new pod', async () => {
    await using h = await cluster({ config: { configMapAndSecretChangeDetectionStrategy: 'Cache' } });
    secret(h, 's', { k: 'one' });
    create(h, 'a', env('s'));
    await h.until('it runs', () => isReady(h, 'a'));
    expect(watches(h, 'secrets')).toEqual([]);
    expect(gets(h, 'secrets/s')).toBe(1);
    patch(h, 'secrets/s', { data: base64({ k: 'two' }) });
    create(h, 'b', env('s'));
    await h.until('b runs', () => isReady(h, 'b'));
    expect(envOf(created(h, 'b')[0]).PASSWORD).toBe('two');
    expect(gets(h, 'secrets/s')).toBe(2);
  });

  it('with strategy Cache are kept for as long as the node object says', async () => {
    await using h = await cluster({ config: { configMapAndSecretChangeDetectionStrategy: 'Cache', nodeStatusUpdateFrequency: 10_000 } });
    await h.until('registered', () => h.tree.registry.read(apiView.node)?.value.registered === true);
    const annotations = { 'node.alpha.kubernetes.io/ttl': '600' };
    const done = h.kube.handle({ verb: 'PATCH', path: '/api/v1/nodes/n1', patchType: 'merge', body: { metadata: { annotations } } });
    expect(done.ok).toBe(true);
    await h.advance(30_000);
    configMap(h, 'c', { a: 'one' });
    create(h, 'web', {
      container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      spec: { volumes: [{ name: 'v', configMap: { name: 'c' } }] },
    });
    await h.until('Ready', () => isReady(h, 'web'));
    await h.advance(500_000);
    expect(gets(h, 'configmaps/c')).toBe(1);
    await h.advance(300_000);
    expect(gets(h, 'configmaps/c')).toBe(2);
  });

  it('are none with strategy Get, which asks each time', async () => {
    await using h = await cluster({ config: { configMapAndSecretChangeDetectionStrategy: 'Get' } });
    secret(h, 's', { k: 'one' });
    create(h, 'a', { ...env('s'), life: 'run=1s,exit=1' });
    await h.until('it was started three times', () => created(h, 'a').length === 3, 120_000);
    expect(watches(h, 'secrets')).toEqual([]);
    expect(gets(h, 'secrets/s')).toBe(3);
  });
});

describe('the environment of a container', () => {
  it('takes secrets, config maps and services', async () => {
    await using h = await cluster();
    secret(h, 's', { password: 'hunter2' });
    configMap(h, 'c', { MODE: 'fast', '1bad': 'x' });
    service(h, 'kubernetes', '10.0.0.1');
    service(h, 'shop', '10.0.0.2');
    create(h, 'web', {
      container: {
        env: [fromSecret('s', 'password')],
        envFrom: [{ prefix: 'APP_', configMapRef: { name: 'c' } }, { configMapRef: { name: 'c' } }],
      },
    });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(envOf(created(h, 'web')[0])).toMatchObject({
      PASSWORD: 'hunter2',
      APP_MODE: 'fast',
      APP_1bad: 'x',
      MODE: 'fast',
      KUBERNETES_SERVICE_HOST: '10.0.0.1',
      KUBERNETES_SERVICE_PORT: '443',
      SHOP_PORT: 'tcp://10.0.0.2:443',
    });
    expect(events(h, 'InvalidEnvironmentVariableNames')).toEqual([
      'Keys [1bad] from the EnvFrom configMap default/c were skipped since they are considered invalid environment variable names.',
    ]);
  });

  it('that lacks a secret is CreateContainerConfigError in the words of the reference, and starts when it comes', async () => {
    await using h = await cluster();
    create(h, 'web', { container: { env: [fromSecret('s', 'password')] } });
    await h.until('told', () => waiting(h, 'web')?.reason === 'CreateContainerConfigError');
    expect(waiting(h, 'web')?.message).toBe('secret "s" not found');
    expect(events(h, 'Failed')).toContain('Error: secret "s" not found');
    secret(h, 's', { other: 'x' });
    await h.until('the key is missed', () => waiting(h, 'web')?.message === "couldn't find key password in Secret default/s");
    patch(h, 'secrets/s', { data: base64({ password: 'x' }) });
    await h.until('Ready', () => isReady(h, 'web'), 60_000);
    expect(inApi(h, 'web')?.status.containerStatuses?.[0]?.restartCount).toBe(0);
  });

  it('waits for the first list of services, which static pods do not (trap 49)', async () => {
    await using h = await cluster({
      manifests: { local: manifest('local') },
      before: (v) => {
        v.kube.trouble.verdict = (r) => (r.path === '/api/v1/services' ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
      },
    });
    create(h, 'web');
    await h.until('the static pod runs', () => h.running('local').length === 1);
    await h.until('told', () => waiting(h, 'web')?.reason === 'CreateContainerConfigError');
    expect(waiting(h, 'web')?.message).toBe('services have not yet been read at least once, cannot construct envvars');
    h.kube.trouble.verdict = () => ({ delayMs: 0 });
    await h.until('Ready', () => isReady(h, 'web'), 120_000);
    expect(h.tree.registry.read(servicesView)?.value).toEqual([]);
  });
});

describe('pull secrets', () => {
  const pulls = (h: VirtualNode) => h.calls.filter((c) => c.method === 'PullImage').map((c) => c.req as CriRequest<'PullImage'>);
  const login = (h: VirtualNode, name: string, text: string) =>
    secret(h, name, { '.dockerconfigjson': text }, { type: 'kubernetes.io/dockerconfigjson' });
  const priv = (...names: string[]) => ({
    container: { image: 'registry.example.com/team/app:1', imagePullPolicy: 'Always' },
    spec: { imagePullSecrets: names.map((name) => ({ name })) },
  });

  it('reach the runtime, and nothing else shows them', async () => {
    await using h = await cluster();
    login(h, 'pull', JSON.stringify({ auths: { 'registry.example.com': { username: 'me', password: 'hunter2' } } }));
    secret(h, 's', { k: 'hunter2' });
    account(h);
    create(h, 'web', {
      container: { ...priv().container, env: [fromSecret('s', 'k')], volumeMounts: [MOUNT] },
      spec: { imagePullSecrets: [{ name: 'pull' }], volumes: [ACCESS], serviceAccountName: 'default' },
    });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(pulls(h).map((p) => p.auth)).toEqual([{ username: 'me', password: 'hunter2' }]);
    const said = JSON.stringify([
      h.lines,
      h.node.recorder(),
      h.tree.state(),
      h.tree.registry.read(view.events)?.value,
      h.tree.registry.read(view.pods)?.value.records.size,
    ]);
    expect(said).not.toMatch(new RegExp(`hunter2|${btoa('hunter2')}|token\\.[0-9a-f]`));
  });

  it('that are missing are told, and the pull is tried without', async () => {
    await using h = await cluster();
    create(h, 'web', priv('none', 'also'));
    await h.until('Ready', () => isReady(h, 'web'));
    expect(events(h, 'FailedToRetrieveImagePullSecret')[0]).toBe(
      'Unable to retrieve some image pull secrets (also, none); attempting to pull the image may not succeed.',
    );
    expect(pulls(h).map((p) => p.auth)).toEqual([undefined]);
  });

  it('that cannot be read fail the pull without showing them', async () => {
    await using h = await cluster();
    login(h, 'pull', '{"auths": hunter2');
    create(h, 'web', priv('pull'));
    await h.until('told', () => waiting(h, 'web')?.reason === 'ErrImagePull');
    expect(pulls(h)).toEqual([]);
    expect(JSON.stringify([inApi(h, 'web'), h.lines, h.tree.registry.read(view.events)?.value])).not.toMatch(/hunter2|aHVudGVy/);
  });
});

it('a static pod that names an object of the API is refused, with a cluster too', async () => {
  await using h = await cluster({ manifests: { local: manifest('local', { container: { env: [fromSecret('s', 'k')] } }) } });
  secret(h, 's', { k: 'v' });
  await h.until('refused', () => h.record('local')?.rejected === true);
  expect(h.status('local')?.status.message ?? events(h, 'UnsupportedField')[0]).toContain('secretKeyRef');
  expect(h.running('local')).toEqual([]);
});
