/** What schedulers may allocate to a claim: admin access, one of several requests, a part of a device, a tainted device. */
import { describe, expect, it } from 'vitest';
import { decodeClaims } from '../../../src/machines/allocation/claims/checkpoint.ts';
import { created, drop, inApi, isReady } from '../cluster/clusterPods.ts';
import type { VirtualNode } from '../virtualNode.ts';
import {
  bind,
  claim,
  claimNode,
  claimPath,
  DRIVER,
  driver,
  known,
  onDisk,
  registered,
  STATE,
  setStatus,
  unbound,
  using,
} from './resourceClaims.ts';

const cdi = (h: VirtualNode, name: string) => created(h, name).map((c) => (c.CDIDevices ?? []).map((d) => d.name));

describe('an allocation', () => {
  const shared = (claimName: string, shareID: string) => ({ request: 'r', shareID, consumedCapacity: { slots: '4' }, claimName });
  /** Claims whose allocations have these results; each pod uses one, and all of them the same device. */
  async function together(h: VirtualNode, results: Record<string, object>, request?: string): Promise<void> {
    await registered(h);
    for (const [name, result] of Object.entries(results)) {
      const pod = unbound(h, name, using(`${name}-claim`, request === undefined ? {} : { request }));
      claim(h, `${name}-claim`, { pods: [pod] });
      const all = [{ driver: DRIVER, pool: 'node', device: 'a', ...result }];
      setStatus(h, claimPath(`${name}-claim`), { allocation: { devices: { results: all } } });
      bind(h, name);
    }
    await h.until('all are Ready', () => Object.keys(results).every((name) => isReady(h, name)));
  }

  it('with admin access, tolerations of taints or binding conditions is prepared as any other, beside the one that has the device', async () => {
    await using h = await claimNode();
    const gpu = driver(h);
    const tolerations = [{ key: 'hot', operator: 'Exists', effect: 'NoExecute' }];
    await together(h, { owner: {}, admin: { adminAccess: true }, hot: { tolerations, bindingConditions: ['attached'] } });
    expect(gpu.prepared.size).toBe(3);
    expect(['owner', 'admin', 'hot'].flatMap((name) => cdi(h, name)[0])).toHaveLength(3);
  });

  it('of the first available request is asked for by the name of that request', async () => {
    await using h = await claimNode();
    const device = { pool: 'node', device: 'a', shareId: null, requests: ['pick'] };
    driver(h, { devices: ({ uid }) => [{ ...device, cdiIds: [`x/y=${uid}`] }] });
    await together(h, { web: { request: 'pick/some' } }, 'pick');
    expect(cdi(h, 'web')[0]).toHaveLength(1);
  });

  it('of a part of a device keeps the id of its share on disk, each claim its own', async () => {
    await using h = await claimNode();
    let shares = 0;
    driver(h, {
      devices: ({ uid }) => [{ pool: 'node', device: 'a', shareId: `share-${++shares}`, requests: ['r'], cdiIds: [`x/y=${uid}`] }],
    });
    await together(h, { one: shared('one', 'share-1'), two: shared('two', 'share-2') });
    const text = new TextDecoder().decode(await h.fs.readFile(STATE, { bytesMax: 1 << 20 }));
    const kept = [...decodeClaims(text).values()].flatMap((r) => r.drivers.get(DRIVER) ?? []).map((d) => d.shareId);
    expect(kept.sort()).toEqual(['share-1', 'share-2']);
    await h.restart();
    await h.until('known again', () => known(h).length === 2);
    for (const name of ['one', 'two']) drop(h, `pods/${name}`);
    await h.until('gone', () => inApi(h, 'one') === undefined && inApi(h, 'two') === undefined);
    expect(await onDisk(h)).toEqual([]);
  });
});
