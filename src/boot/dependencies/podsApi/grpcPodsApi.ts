/** The real {@link PodsApiPort}: gRPC over a unix socket. */
import { join } from 'node:path';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import { messageOf } from '../../../machines/text/errors.ts';
import type { PodNow, PodsApiAnswers, PodsApiPort } from '../../../ports/sockets/podsApi.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { answering, NotFound } from '../grpc/answering.ts';
import { listenUnix } from '../grpc/unixGrpc.ts';
import { type PodSerializer, podSerializer } from './podMessage.ts';

/** A request has one UID at most. */
const REQUEST_BYTES_MAX = 64 * 1024;
/** Watches at a time, of all callers together. Our own bound; the kubelet of 1.38 has so many for each connection. */
const WATCHES_MAX = 100;

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'INITIAL_SYNC_COMPLETE';
type Stream = Pick<ServerWritableStream<object, object>, 'write' | 'once' | 'on' | 'emit' | 'cancelled'>;

/** Serves clients in tests too. */
export function loadPodsApiProto(root: string = protoRoot()) {
  return loadProtoFile(join(root, 'pods/api.proto')).service('v1alpha1.Pods');
}

export function createGrpcPodsApi(): PodsApiPort {
  return {
    async serve(socketPath, answers) {
      const server = new Server({ 'grpc.max_receive_message_length': REQUEST_BYTES_MAX });
      const bytesOf = bytesOnce();
      const admit = () => answers.admit();
      let watches = 0;
      server.addService(loadPodsApiProto(), {
        ListPods: answering(admit, () => ({ pods: answers.list().map(bytesOf) })),
        GetPod: answering(admit, ({ podUID }: { podUID: string }) => {
          const found = answers.get(podUID);
          if (found === null) throw new NotFound(`pod with UID ${podUID} not found`);
          return { pod: bytesOf(found) };
        }),
        WatchPods(call: ServerWritableStream<object, object>) {
          if (watches >= WATCHES_MAX || !answers.admit()) {
            refuse(call, {
              code: status.RESOURCE_EXHAUSTED,
              details: watches >= WATCHES_MAX ? 'too many watches' : 'rejected by rate limit',
            });
            return;
          }
          watches += 1;
          const watch = follow(call, answers, bytesOf);
          call.once('close', () => {
            watches -= 1;
            watch[Symbol.dispose]();
          });
        },
      });
      await listenUnix(server, socketPath);
      return { address: socketPath, close: async () => server.forceShutdown() };
    },
  };
}

function refuse(call: Pick<Stream, 'emit'>, error: { code: number; details: string }): void {
  call.emit('error', error);
}

/** Serializes a pod once for each status that it has, however many ask. The file of its message is read at the first call. */
function bytesOnce(): (now: PodNow) => Uint8Array {
  const known = new WeakMap<object, { pod: object; bytes: Uint8Array }>();
  let serialize: PodSerializer | undefined;
  return ({ pod, status: of }) => {
    const before = known.get(of);
    if (before?.pod === pod) return before.bytes;
    serialize ??= podSerializer(join(protoRoot(), 'pods/pod.proto'));
    const bytes = serialize({ ...pod, status: of });
    known.set(of, { pod, bytes });
    return bytes;
  };
}

/**
 * Tells one caller of what differs from what it was told last. One that reads slowly misses states between, and no pod; nothing is
 * kept for it.
 */
export function follow(call: Stream, answers: Pick<PodsApiAnswers, 'list' | 'watch'>, bytesOf: (now: PodNow) => Uint8Array): Disposable {
  const told = new Map<string, PodNow>();
  let synced = false;
  let full = false;
  let ended = false;
  const send = (type: EventType, pod?: Uint8Array): void => {
    full = !call.write({ type, ...(pod === undefined ? {} : { pod }) }) || full;
  };
  const look = (): void => {
    if (full || ended) return;
    const now = answers.list();
    for (const one of now) {
      const { uid } = one.pod.metadata;
      const before = told.get(uid);
      if (before?.pod === one.pod && before.status === one.status) continue;
      told.set(uid, one);
      send(before === undefined ? 'ADDED' : 'MODIFIED', bytesOf(one));
      if (full) return;
    }
    if (!synced) {
      synced = true;
      send('INITIAL_SYNC_COMPLETE');
      if (full) return;
    }
    if (told.size === now.length) return;
    const there = new Set(now.map(({ pod }) => pod.metadata.uid));
    for (const [uid, { pod }] of told) {
      if (there.has(uid)) continue;
      told.delete(uid);
      const { name, namespace } = pod.metadata;
      send('DELETED', bytesOf({ pod: { metadata: { name, namespace, uid } } as PodNow['pod'], status: {} as PodNow['status'] }));
      if (full) return;
    }
  };
  let due = false;
  // Changes come in bursts.
  const soon = (): void => {
    if (due) return;
    due = true;
    setImmediate(() => {
      due = false;
      try {
        look();
      } catch (error) {
        refuse(call, { code: status.INTERNAL, details: messageOf(error) });
      }
    });
  };
  call.on('drain', () => {
    full = false;
    soon();
  });
  const watching = answers.watch(soon);
  soon();
  return {
    [Symbol.dispose]() {
      ended = true;
      watching[Symbol.dispose]();
    },
  };
}
