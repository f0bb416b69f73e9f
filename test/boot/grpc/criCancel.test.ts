/** A call that is given up in the turn in which it was made: the server hears of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { expect, it, vi } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';

const raw = (bytes: Buffer): Buffer => bytes;

it('a stream of events that is given up at once does not stay with the runtime', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-cancel-'));
  const server = new Server();
  const open = new Set<object>();
  let opened = 0;
  const method = {
    path: '/runtime.v1.RuntimeService/GetContainerEvents',
    requestStream: false,
    responseStream: true,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  };
  server.addService(
    { GetContainerEvents: method },
    {
      GetContainerEvents(call: ServerWritableStream<Buffer, Buffer>) {
        opened += 1;
        open.add(call);
        call.sendMetadata(call.metadata);
        call.on('cancelled', () => open.delete(call));
      },
    },
  );
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${dir}/cri.sock`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
  );
  const cri = createGrpcCri({ endpoint: `unix://${dir}/cri.sock`, log: collectingLogger([]), clock: createClock() });
  try {
    const kept = new AbortController();
    // The channel is connected from here on: the next call needs no turn to be sent.
    await cri.hints(kept.signal);
    expect([opened, open.size]).toEqual([1, 1]);
    for (let i = 0; i < 5; i++) {
      const given = new AbortController();
      const stream = cri.hints(given.signal);
      given.abort();
      await expect(stream).rejects.toThrow();
    }
    const last = new AbortController();
    await cri.hints(last.signal);
    // Calls of one connection arrive in order, so the server has heard of all that were sent before the last.
    await vi.waitFor(() => expect(open.size).toBe(2), 30_000);
    kept.abort();
    last.abort();
    await vi.waitFor(() => expect(open.size).toBe(0), 30_000);
  } finally {
    cri.close();
    server.forceShutdown();
    rmSync(dir, { recursive: true, force: true });
  }
});
