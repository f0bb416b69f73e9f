/** The real port of the pods API against real gRPC on a unix socket, and pods as the reference serializes them. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type ClientReadableStream, credentials, type MethodDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { protoRoot } from '../../../src/boot/dependencies/cri/protoPath.ts';
import { createGrpcPodsApi, follow, loadPodsApiProto } from '../../../src/boot/dependencies/podsApi/grpcPodsApi.ts';
import { podSerializer } from '../../../src/boot/dependencies/podsApi/podMessage.ts';
import type { Listening } from '../../../src/ports/listening.ts';
import type { PodNow, PodsApiAnswers } from '../../../src/ports/sockets/podsApi.ts';

const file = join(protoRoot(), 'pods/pod.proto');
const type = protobuf.parse(readFileSync(file, 'utf8'), new protobuf.Root(), { keepCase: true }).root.lookupType('core.v1.Pod');

/** Without what is empty: Go writes every field that is no pointer. */
function filled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(filled);
  if (typeof value !== 'object' || value === null)
    return value === '' || value === 0 || value === '0' || value === false ? undefined : value;
  const entries = Object.entries(value).flatMap(([key, one]) => {
    const kept = filled(one);
    return kept === undefined || (Array.isArray(kept) && kept.length === 0) ? [] : [[key, kept]];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
const read = (bytes: Uint8Array): unknown => filled(type.toObject(type.decode(bytes), { longs: String }));

it('a pod has the fields that the reference gives it', () => {
  const recorded = JSON.parse(readFileSync(new URL('../../reference/recorded/podMessage136.json', import.meta.url), 'utf8')) as {
    pod: object;
    bytes: string;
  };
  expect(read(podSerializer(file)(recorded.pod))).toEqual(read(Buffer.from(recorded.bytes, 'base64')));
});

it('a pod with odd values in its fields is serialized all the same', () => {
  const odd = {
    metadata: { name: 'x', creationTimestamp: 'never', labels: [] },
    spec: { containers: [null, 'c', { ports: 'none', env: [{}] }], overhead: 7 },
  };
  expect(read(podSerializer(file)(odd))).toMatchObject({ metadata: { name: 'x' } });
});

const podOf = (uid: string, phase = 'Pending'): PodNow => ({
  pod: { metadata: { name: `pod-${uid}`, namespace: 'default', uid }, spec: { containers: [] } } as unknown as PodNow['pod'],
  status: { phase } as PodNow['status'],
});

describe('the socket of the pods API', () => {
  let dir: string;
  let pods: Map<string, PodNow>;
  let server: Listening;
  let client: Client;
  let admits: boolean;
  const watchers = new Set<() => void>();
  const changed = () => {
    for (const tell of watchers) tell();
  };
  const answers: PodsApiAnswers = {
    admit: () => admits,
    list: () => [...pods.values()],
    get: (uid) => pods.get(uid) ?? null,
    watch(tell) {
      watchers.add(tell);
      return { [Symbol.dispose]: () => void watchers.delete(tell) };
    },
  };
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'pa-'));
    pods = new Map(['a', 'b'].map((uid) => [uid, podOf(uid)]));
    admits = true;
    server = await createGrpcPodsApi().serve(join(dir, 's.sock'), answers);
    client = new Client(`unix://${join(dir, 's.sock')}`, credentials.createInsecure());
  });
  afterEach(async () => {
    client.close();
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const method = (name: string) => loadPodsApiProto()[name] as MethodDefinition<object, object>;
  const ask = (name: string, request: object) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const m = method(name);
      client.makeUnaryRequest(m.path, m.requestSerialize, m.responseDeserialize, request, (error, value) =>
        error === null ? resolve(value as Record<string, unknown>) : reject(error),
      );
    });
  function watch(): { stream: ClientReadableStream<object>; events: string[] } {
    const m = method('WatchPods');
    const stream = client.makeServerStreamRequest(m.path, m.requestSerialize, m.responseDeserialize, {});
    const events: string[] = [];
    stream.on('data', (event: { type: string; pod: Uint8Array }) => {
      const pod = read(event.pod) as { metadata?: { uid: string }; status?: { phase: string } } | undefined;
      events.push([event.type, pod?.metadata?.uid, pod?.status?.phase].filter((s) => s !== undefined).join(' '));
    });
    stream.on('error', (error: Error) => events.push(error.message));
    return { stream, events };
  }

  it('lists pods, gives one by its UID, and says which is not there', async () => {
    const { pods: all } = await ask('ListPods', {});
    expect((all as Uint8Array[]).map(read)).toMatchObject([
      { metadata: { uid: 'a' }, status: { phase: 'Pending' } },
      { metadata: { uid: 'b' } },
    ]);
    expect(read((await ask('GetPod', { podUID: 'b' })).pod as Uint8Array)).toMatchObject({ metadata: { name: 'pod-b' } });
    await expect(ask('GetPod', { podUID: 'z' })).rejects.toThrow('5 NOT_FOUND: pod with UID z not found');
    admits = false;
    await expect(ask('ListPods', {})).rejects.toThrow('8 RESOURCE_EXHAUSTED: rejected by rate limit');
  });

  it('tells a watch of all pods, then of each change, and forgets it when it goes', async () => {
    const { stream, events } = watch();
    await expect.poll(() => events).toEqual(['ADDED a Pending', 'ADDED b Pending', 'INITIAL_SYNC_COMPLETE']);
    pods.set('b', { ...podOf('b'), status: podOf('b', 'Running').status });
    pods.delete('a');
    pods.set('c', podOf('c'));
    changed();
    await expect.poll(() => events.slice(3)).toEqual(['MODIFIED b Running', 'ADDED c Pending', 'DELETED a']);
    changed();
    stream.cancel();
    await expect.poll(() => watchers.size).toBe(0);
    expect(events.slice(6)).toEqual(['1 CANCELLED: Cancelled on client']);
  });

  it('keeps nothing for a watch that is not read, which misses states and no pod', async () => {
    const sent: string[] = [];
    let drain: () => void = () => {};
    let room = 1;
    const call = {
      write: ({ type: kind }: { type: string }) => {
        sent.push(kind);
        room -= 1;
        return room > 0;
      },
      on: (_: string, fn: () => void) => {
        drain = fn;
      },
    };
    using _ = follow(call as never, answers, () => new Uint8Array());
    await expect.poll(() => sent).toEqual(['ADDED']);
    for (let i = 0; i < 50; i++) {
      pods.set('a', { ...podOf('a'), status: { phase: String(i) } as never });
      changed();
    }
    room = 100;
    drain();
    await expect.poll(() => sent).toEqual(['ADDED', 'MODIFIED', 'ADDED', 'INITIAL_SYNC_COMPLETE']);
  });
});
