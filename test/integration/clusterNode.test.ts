/** What a whole node tells the cluster about itself, in virtual time, against the simulated API server. */
import { describe, expect, it } from 'vitest';
import { cluster, create, events, inApi } from './clusterPods.ts';
import type { VirtualNode } from './virtualNode.ts';

const NODE = '/api/v1/nodes/n1';
interface NodeBody {
  spec: Record<string, unknown>;
  status: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: { type: string; status: string; message: string }[];
  };
}
function node(h: VirtualNode): NodeBody | undefined {
  const got = h.kube.handle({ verb: 'GET', path: NODE });
  return got.ok ? (got.body as NodeBody) : undefined;
}
const ready = (h: VirtualNode) => node(h)?.status.conditions?.find((c) => c.type === 'Ready');
function patchNode(h: VirtualNode, body: object): void {
  const made = h.kube.handle({ verb: 'PATCH', path: NODE, patchType: 'merge', body });
  if (!made.ok) throw new Error(made.failure.message);
}
/** Reasons of the events about the node as the API server has them. */
function told(h: VirtualNode): string[] {
  const got = h.kube.handle({ verb: 'GET', path: '/api/v1/events' });
  const list = got.ok ? (got.body as { items: { reason: string; count: number; involvedObject: { kind: string } }[] }).items : [];
  return list.filter((e) => e.involvedObject.kind === 'Node').map((e) => `${e.reason} x${e.count}`);
}

describe('events about the node', () => {
  it('are its start and the first word on each pressure, and none on Ready (trap 50)', async () => {
    await using h = await cluster();
    await h.until('Ready', () => ready(h)?.status === 'True');
    const fresh = ['Starting x1', 'NodeHasSufficientMemory x1', 'NodeHasNoDiskPressure x1', 'NodeHasSufficientPID x1'];
    await h.until('told', () => told(h).length >= fresh.length);
    await h.advance(30_000);
    expect(told(h)).toEqual(fresh);
    h.kill('node/api/nodeStatus');
    await h.advance(30_000);
    expect(told(h)).toEqual(fresh);
  });

  it('say that it is cordoned, and that it is not any more', async () => {
    await using h = await cluster();
    await h.until('Ready', () => ready(h)?.status === 'True');
    patchNode(h, { spec: { unschedulable: true } });
    await h.until('told', () => told(h).includes('NodeNotSchedulable x1'));
    patchNode(h, { spec: { unschedulable: null } });
    await h.until('told', () => told(h).includes('NodeSchedulable x1'));
    await h.advance(60_000);
    expect(told(h).filter((t) => /Schedulable/.test(t))).toEqual(['NodeNotSchedulable x1', 'NodeSchedulable x1']);
  });

  it('say that the machine was booted anew', async () => {
    await using h = await cluster({
      before: (v) =>
        void v.kube.handle({
          verb: 'POST',
          path: '/api/v1/nodes',
          body: { metadata: { name: 'n1' }, spec: {}, status: { nodeInfo: { bootID: 'boot-0' } } },
        }),
    });
    await h.until('told', () => told(h).includes('Rebooted x1'));
    expect(events(h, 'Rebooted')).toEqual(['Node n1 has been rebooted, boot id: boot-1']);
  });
});

describe('the room of the node', () => {
  it('is less what is reserved, and a pod that does not fit is turned away', async () => {
    await using h = await cluster({ config: { systemReserved: { cpu: '1' }, kubeReserved: { cpu: '500m' }, podsPerCore: 10 } });
    await h.until('Ready', () => ready(h)?.status === 'True');
    expect(node(h)?.status.capacity).toMatchObject({ cpu: '4', pods: '40' });
    expect(node(h)?.status.allocatable).toMatchObject({ cpu: '2500m', memory: String(8 * 1024 ** 3 - 100 * 1024 ** 2) });
    create(h, 'large', { container: { resources: { requests: { cpu: '2600m' } } } });
    await h.until('turned away', () => inApi(h, 'large')?.status.reason === 'OutOfcpu');
  });
});

describe('the range of pod addresses', () => {
  it('is told to the runtime when the cluster gives or changes it, again until it took it', async () => {
    await using h = await cluster();
    await h.until('Ready', () => ready(h)?.status === 'True');
    const asked = () => h.calls.filter((c) => c.method === 'UpdateRuntimeConfig').map((c) => c.req);
    expect(asked()).toEqual([]);
    let refusals = 1;
    h.faults.fault = (method) =>
      method === 'UpdateRuntimeConfig' && refusals-- > 0 ? { kind: 'refuse', code: 13, details: 'not now' } : undefined;
    patchNode(h, { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24', 'fd00::/64'] } });
    await h.until('told', () => asked().length > 0);
    await h.advance(60_000);
    expect(asked()).toEqual([{ runtimeConfig: { networkConfig: { podCidr: '10.1.0.0/24,fd00::/64' } } }]);
    expect(refusals).toBeLessThan(0);
  });
});
