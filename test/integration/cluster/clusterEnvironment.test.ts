/** Environment and pull credentials of pods of the API: a whole node in virtual time. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { servicesView } from '../../../src/machines/services/objects/messages.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, type VirtualNode } from '../virtualNode.ts';
import {
  ACCESS,
  account,
  base64,
  cluster,
  configMap,
  create,
  created,
  createReady,
  envOf,
  events,
  fromSecret,
  inApi,
  isReady,
  MOUNT,
  patch,
  secret,
  service,
  waiting,
} from './clusterPods.ts';

describe('the environment of a container', () => {
  it('takes secrets, config maps and services', async ({ h }) => {
    secret(h, 's', { password: 'hunter2' });
    configMap(h, 'c', { MODE: 'fast', '1bad': 'x' });
    service(h, 'kubernetes', '10.0.0.1');
    service(h, 'shop', '10.0.0.2');
    create(h, 'web', {
      container: {
        env: [fromSecret('s', 'password')],
        envFrom: [
          { prefix: 'APP_', configMapRef: { name: 'c' } },
          { prefix: '#1-', configMapRef: { name: 'c' } },
          { configMapRef: { name: 'c' } },
        ],
      },
    });
    await h.until('Ready', () => isReady(h, 'web'));
    expect(envOf(created(h, 'web')[0])).toMatchObject({
      PASSWORD: 'hunter2',
      APP_MODE: 'fast',
      APP_1bad: 'x',
      MODE: 'fast',
      '1bad': 'x',
      '#1-MODE': 'fast',
      KUBERNETES_SERVICE_HOST: '10.0.0.1',
      KUBERNETES_SERVICE_PORT: '443',
      SHOP_PORT: 'tcp://10.0.0.2:443',
    });
  });

  it('that lacks a secret is CreateContainerConfigError in the words of the reference, and starts when it comes', async ({ h }) => {
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

  it('is what it was while the API server is away: containers that crash are started again', async ({ h }) => {
    secret(h, 's', { password: 'hunter2' });
    await createReady(h, 'web', { container: { env: [fromSecret('s', 'password')] }, life: 'run=90s,exit=1' });
    h.kube.trouble.down = true;
    h.kube.cutWatches('truncate');
    await h.until('started again', () => created(h, 'web').length === 3, 600_000);
    expect(created(h, 'web').map((c) => envOf(c).PASSWORD)).toEqual(['hunter2', 'hunter2', 'hunter2']);
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

  it('reach the runtime, and nothing else shows them', async ({ h }) => {
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
      h.tree.registry.read(eventsView)?.value,
      h.tree.registry.read(podsView)?.value.records.size,
    ]);
    expect(said).not.toMatch(new RegExp(`hunter2|${btoa('hunter2')}|token\\.[0-9a-f]`));
  });

  it('that are missing are told, and the pull is tried without', async ({ h }) => {
    await createReady(h, 'web', priv('none', 'also'));
    expect(events(h, 'FailedToRetrieveImagePullSecret')[0]).toBe(
      'Unable to retrieve some image pull secrets (also, none); attempting to pull the image may not succeed.',
    );
    expect(pulls(h).map((p) => p.auth)).toEqual([undefined]);
  });

  it('that cannot be read fail the pull without showing them', async ({ h }) => {
    login(h, 'pull', '{"auths": hunter2');
    create(h, 'web', priv('pull'));
    await h.until('told', () => waiting(h, 'web')?.reason === 'ErrImagePull');
    expect(pulls(h)).toEqual([]);
    expect(JSON.stringify([inApi(h, 'web'), h.lines, h.tree.registry.read(eventsView)?.value])).not.toMatch(/hunter2|aHVudGVy/);
  });
});

it('a static pod that names an object of the API is refused, with a cluster too', async () => {
  await using h = await cluster({ manifests: { local: manifest('local', { container: { env: [fromSecret('s', 'k')] } }) } });
  secret(h, 's', { k: 'v' });
  const refusal = 'spec.containers[0].env[0].valueFrom.secretKeyRef: a static pod cannot refer to API objects';
  await h.until('refused', () => JSON.stringify(h.lines).includes(refusal));
  expect(h.record('local')).toBeUndefined();
  expect(h.running('local')).toEqual([]);
});
