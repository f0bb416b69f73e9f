/** A container that waits for a secret or config map is tried when the object changes, not when a wait is over. */
import { describe, expect } from 'vitest';
import {
  base64,
  configMap,
  create,
  created,
  createReady,
  events,
  fromSecret,
  inApi,
  isReady,
  patch,
  secret,
  waiting,
} from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import type { VirtualNode } from '../virtualNode.ts';

/** Less than the wait after a failed start, which is 10 s at least. */
const SOON_MS = 3_000;
const failures = (h: VirtualNode) => events(h, 'Failed').length;

describe('a container that lacks an object', () => {
  it('is started when the object comes, and when the key comes', async ({ h }) => {
    create(h, 'web', { container: { env: [fromSecret('s', 'password')] } });
    await h.until('told', () => waiting(h, 'web')?.message === 'secret "s" not found');
    await h.advance(1_000);
    secret(h, 's', { other: 'x' });
    await h.until('the key is missed', () => waiting(h, 'web')?.message === "couldn't find key password in Secret default/s", SOON_MS);
    patch(h, 'secrets/s', { data: base64({ password: 'x' }) });
    await h.until('Ready', () => isReady(h, 'web'), SOON_MS);
    expect(inApi(h, 'web')?.status.containerStatuses?.[0]?.restartCount).toBe(0);
    expect(created(h, 'web')).toHaveLength(1);
  });

  it('is not tried for an object that it does not name, nor more than once for one change', async ({ h }) => {
    create(h, 'web', { container: { env: [fromSecret('s', 'password')] } });
    create(h, 'other', { container: { envFrom: [{ configMapRef: { name: 'c', optional: true } }] } });
    await h.until('told', () => waiting(h, 'web')?.message === 'secret "s" not found');
    await h.until('the other is Ready', () => isReady(h, 'other'));
    const before = failures(h);
    const since = h.time.clock.monoMs();
    configMap(h, 'c', { a: 'b' });
    await h.advance(2_000);
    expect(failures(h)).toBe(before);
    secret(h, 's', { other: 'x' });
    await h.until('tried', () => failures(h) === before + 1, SOON_MS);
    await h.advance(8_000 - (h.time.clock.monoMs() - since));
    expect(failures(h)).toBe(before + 1);
  });

  it('costs pods that wait for nothing no look at the runtime', async ({ h }) => {
    configMap(h, 'c', { a: 'b' });
    await createReady(h, 'web', { container: { envFrom: [{ configMapRef: { name: 'c' } }] } });
    await h.advance(5_000);
    const looks = () => h.calls.filter((c) => c.method === 'PodSandboxStatus' || c.method === 'ContainerStatus').length;
    const before = looks();
    patch(h, 'configmaps/c', { data: { a: 'c' } });
    await h.advance(2_000);
    expect(looks()).toBe(before);
  });
});
