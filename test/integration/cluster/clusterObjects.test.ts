/** Secrets, config maps and tokens of pods of the API: a whole node in virtual time. */
import { describe, expect } from 'vitest';
import { apiView } from '../../../src/machines/api/messages.ts';
import { itOnCluster as it } from '../onNode.ts';
import {
  account,
  base64,
  cluster,
  configMap,
  create,
  created,
  createReady,
  dirOf,
  drop,
  envOf,
  events,
  fromSecret,
  gets,
  inApi,
  isReady,
  MOUNT,
  NS,
  patch,
  post,
  read,
  secret,
  tokens,
  waiting,
  watches,
  withToken,
} from './clusterPods.ts';

describe('a service account token', () => {
  it('stands in its volume beside the CA and the namespace, bound to the pod', async ({ h }) => {
    account(h);
    const p = await createReady(h, 'web', withToken());
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

  it('is replaced when four fifths of its life are over, and not before', async ({ h }) => {
    account(h);
    const p = await createReady(h, 'web', withToken());
    const dir = dirOf(p, 'projected', 'kube-api-access');
    const first = await read(h, dir, 'token');
    await h.advance(3_607_000 * 0.8 - 60_000);
    expect(tokens(h)).toHaveLength(1);
    // Files are compared with their sources every minute, lengthened by up to half.
    await h.advance(180_000);
    expect(tokens(h)).toHaveLength(2);
    expect(await read(h, dir, 'token')).not.toBe(first);
  });

  it('that cannot be replaced serves on while it is good; then it is an error that heals by itself', async ({ h }) => {
    account(h);
    const p = await createReady(h, 'web', withToken());
    const dir = dirOf(p, 'projected', 'kube-api-access');
    const first = await read(h, dir, 'token');
    h.kube.trouble.verdict = (r) => (r.path.endsWith('/token') ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
    await h.advance(3_400_000);
    expect(events(h, 'FailedMount')).toEqual([]);
    expect(await read(h, dir, 'token')).toBe(first);
    expect(h.lines.some((l) => l.msg.startsWith('no new token'))).toBe(true);
    await h.advance(600_000);
    // The second, where the one that ended was forgotten before it was asked for again.
    expect(events(h, 'FailedMount').join('\n')).toMatch(
      /^MountVolume\.SetUp failed for volume "kube-api-access" : (token expired and refresh failed|failed to fetch token): injected$/m,
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

  it('of an account that is not there holds the pod back, saying so, until it is', async ({ h }) => {
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

  it('are shown anew within moments of their change', async ({ h }) => {
    configMap(h, 'c', { a: 'one' });
    const p = await createReady(h, 'web', volume({ configMap: { name: 'c' } }));
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

  it('that come after a long while are mounted at once', async ({ h }) => {
    create(h, 'web', volume({ secret: { secretName: 's' } }));
    await h.until('told', () => events(h, 'FailedMount').length > 0);
    await h.advance(600_000);
    secret(h, 's', { key: 'value' });
    // The pod's worker asks for its volumes again a little later than they are there.
    await h.until('mounted', () => h.mounts.table.length === 1, 2_000);
    await h.until('Ready', () => isReady(h, 'web'), 60_000);
  });

  it('that are optional and not there are empty', async ({ h }) => {
    await createReady(h, 'web', volume({ secret: { secretName: 's', optional: true } }));
  });

  it('stay as they are while the API server is away, and are followed again afterwards', async ({ h }) => {
    configMap(h, 'c', { a: 'one' });
    const p = await createReady(h, 'web', volume({ configMap: { name: 'c' } }));
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

  it('are one per object however many pods name it, and end with the last of them', async ({ h }) => {
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

  it('end when the object is immutable; a later pod is shown what stands there then (trap 67)', async ({ h }) => {
    await h.advance(5_000);
    const open = h.kube.openWatches();
    secret(h, 's', { k: 'one' }, { immutable: true });
    await createReady(h, 'a', env('s'));
    await h.advance(1_000);
    expect(h.kube.openWatches()).toBe(open);
    const from = h.kube.calls.length;
    await h.advance(600_000);
    expect(h.kube.calls.slice(from).filter((c) => c.request.path.endsWith('/secrets'))).toEqual([]);
    drop(h, 'secrets/s');
    secret(h, 's', { k: 'two' }, { immutable: true });
    await createReady(h, 'b', env('s'));
    expect(envOf(created(h, 'b')[0]).PASSWORD).toBe('two');
    await h.advance(1_000);
    expect(h.kube.openWatches()).toBe(open);
  });

  it('are found again for running pods when the actor was killed', async ({ h }) => {
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
    await createReady(h, 'a', env('s'));
    expect(watches(h, 'secrets')).toEqual([]);
    expect(gets(h, 'secrets/s')).toBe(1);
    patch(h, 'secrets/s', { data: base64({ k: 'two' }) });
    await createReady(h, 'b', env('s'));
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

describe('a pod that waits for what is not there', () => {
  const both = {
    container: { env: [fromSecret('s', 'k')], volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    spec: { volumes: [{ name: 'v', configMap: { name: 'c' } }] },
  };

  it.each(['a volume', 'a variable'])('(%s) goes at once when it is deleted, and nothing of it is followed any more', async (what) => {
    await using h = await cluster();
    await h.advance(5_000);
    const open = h.kube.openWatches();
    if (what === 'a variable') configMap(h, 'c', {});
    create(h, 'web', both);
    await h.until('told', () => events(h, what === 'a volume' ? 'FailedMount' : 'Failed').length > 0);
    await h.until('both are followed', () => h.kube.openWatches() === open + 2);
    drop(h, 'pods/web', 1);
    await h.until('gone', () => inApi(h, 'web') === undefined, 10_000);
    await h.advance(5_000);
    expect(h.kube.openWatches()).toBe(open);
    expect(h.pods()).toEqual([]);
    expect(h.mounts.table).toEqual([]);
  });

  it('starts although the daemon was killed meanwhile', async ({ h }) => {
    create(h, 'web', both);
    await h.until('told', () => events(h, 'FailedMount').length > 0);
    await h.crash();
    configMap(h, 'c', { a: 'one' });
    await h.boot();
    await h.until('told', () => waiting(h, 'web')?.reason === 'CreateContainerConfigError');
    secret(h, 's', { k: 'v' });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(h.violations).toEqual([]);
  });
});

it('many pods at once cost one token each and one watch in all', async ({ h }) => {
  account(h);
  const names = Array.from({ length: 40 }, (_, i) => `p${i}`);
  for (const name of names) create(h, name, withToken());
  await h.until('all Ready', () => names.every((n) => isReady(h, n)));
  expect(tokens(h)).toHaveLength(names.length);
  expect(watches(h, 'configmaps')).toEqual(['metadata.name=kube-root-ca.crt']);
  for (const name of names) drop(h, `pods/${name}`, 1);
  await h.until('all gone', () => names.every((n) => inApi(h, n) === undefined));
  await h.advance(5_000);
  expect(h.mounts.table).toEqual([]);
});
