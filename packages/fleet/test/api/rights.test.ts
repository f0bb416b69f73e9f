/** packaging/fleet/rbac.yaml allows all that nodes of a fleet ask of the API server. */
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { expect, it } from 'vitest';
import { adopt, removeNodes } from '../../src/boot/adopt.ts';
import { embeddedWorld, quietLog } from '../../src/boot/world.ts';
import { plainFleet } from '../../src/file.ts';
import { Fleet } from '../../src/fleet.ts';
import { refusedOf, rightOf } from './rights.ts';

it('the service account of packaging/fleet may do all that a fleet asks', { timeout: 180_000 }, async () => {
  const clock = createClock();
  const kube = simKube({ clock, rng: simRng('rights'), latencyMs: () => 0 });
  const put = (path: string, body: object) => expect(kube.handle({ verb: 'POST', path, body }).ok).toBe(true);
  const inDefault = '/api/v1/namespaces/default';
  put(`${inDefault}/serviceaccounts`, { metadata: { name: 'default' } });
  put(`${inDefault}/configmaps`, { metadata: { name: 'c' }, data: { KEY: 'value' } });
  put(`${inDefault}/secrets`, { metadata: { name: 's' }, data: { key: 'dmFsdWU=' } });
  const connect = (node: string) => kube.connect({ power: { on: true }, clock, node });
  const volumeMounts = ['s', 't'].map((name) => ({ name, mountPath: `/${name}` }));
  const spec = {
    ...{ nodeName: 'n-0', serviceAccountName: 'default', terminationGracePeriodSeconds: 1 },
    containers: [{ name: 'main', image: 'web', envFrom: [{ configMapRef: { name: 'c' } }], volumeMounts }],
    volumes: [
      { name: 's', secret: { secretName: 's' } },
      { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }] } },
    ],
  };
  const own = embeddedWorld({ connect, admin: connect('') }, { clock, socket: '', log: quietLog });
  for (const world of [own, { ...own, sharedWatches: connect('') }]) {
    await using fleet = new Fleet(plainFleet({ name: 'mine', nodes: 2, prefix: 'n', seed: 1 }), world);
    const asking = { kube: world.admin, signal: AbortSignal.timeout(150_000) };
    await adopt(fleet, 'mine', asking);
    put(`${inDefault}/pods`, { metadata: { name: 'web' }, spec });
    await fleet.start();
    await expect.poll(() => fleet.overview().pods.ready).toBe(1);
    await expect.poll(() => kube.store.list('leases').length).toBe(2);
    kube.handle({ verb: 'DELETE', path: `${inDefault}/pods/web`, query: { gracePeriodSeconds: '1' } });
    await expect.poll(() => kube.store.list('pods')).toEqual([]);
    await fleet.stop();
    await removeNodes(['n-0', 'n-1'], asking);
  }
  const requests = kube.calls.map(({ request }) => request);
  expect(refusedOf(requests)).toEqual([]);
  const seen = requests.flatMap((of) => rightOf(of) ?? []).map(({ resource, verb }) => `${verb} ${resource}`);
  expect(seen).toEqual(expect.arrayContaining(['create serviceaccounts/token', 'patch pods/status', 'create leases', 'watch configmaps']));
});
