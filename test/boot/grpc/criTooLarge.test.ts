/** A request that gRPC does not send: nothing has happened, so the outcome is a failure and not unknown. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';

it('a request above 16 MiB fails for certain, and names its size', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-large-'));
  const server = new Server();
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${dir}/cri.sock`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
  );
  const cri = createGrpcCri({ endpoint: `unix://${dir}/cri.sock`, log: collectingLogger([]), clock: createClock() });
  try {
    const sent = cri.call('UpdateContainerResources', { containerId: 'x'.repeat(17 * 1024 ** 2), annotations: {} } as never, {
      timeoutMs: 20_000,
      signal: new AbortController().signal,
    });
    await expect(sent).rejects.toMatchObject({ code: 8, outcome: 'failed', details: expect.stringContaining('16777216') });
  } finally {
    cri.close();
    server.forceShutdown();
    rmSync(dir, { recursive: true, force: true });
  }
});
