import { expect, it } from 'vitest';
import type { Cri } from '../../src/ports/ports.ts';
import { hollowNode, manifest, until } from './hollowNode.ts';

it('a sandbox that never gets an address is not created in a hot loop', async () => {
  let created = 0;
  await using h = await hollowNode({
    ports: (ports) => {
      const cri: Cri = {
        ...ports.cri,
        hints: (signal) => ports.cri.hints(signal),
        reconnect: () => ports.cri.reconnect(),
        close: () => ports.cri.close(),
        call: async (method, req, opts) => {
          if (method === 'RunPodSandbox') created += 1;
          const res = await ports.cri.call(method, req, opts);
          if (method === 'PodSandboxStatus') {
            const { status } = res as { status: { network: unknown } | null };
            if (status !== null) status.network = null;
          }
          return res;
        },
      };
      return { ...ports, cri };
    },
  });
  h.write('web.json', manifest('web'));
  const calm = await until('the worker calms down', () => {
    const worker = h.record('web')?.worker;
    return worker?.reason === 'NoProgress' ? worker : undefined;
  });
  expect(calm.message).toContain('several acts in a row');
  expect(created).toBeLessThanOrEqual(6);
  await until('it tries again after the wait', () => created >= 4, 60_000);
});
