/**
 * Opens the runtime's lifecycle stream: CRI GetContainerEvents, else containerd's own event service. Only ids come out: hints, never truth.
 */

import { type Client, type ClientReadableStream, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { messageOf } from '../../../machines/text/errors.ts';
import type { RuntimeHint } from '../../../machines/wire/cri.ts';
import { type Clock, CriError } from '../../../ports/ports.ts';
import { cancelCall } from '../grpc/cancelCall.ts';
import { toCriError } from './errors.ts';
import { HintQueue } from './hintQueue.ts';
import { CRI_NAMESPACE, type CriProto, type EventsProto, type Method } from './load.ts';

/** Hints that may wait for a slow reader before the stream is given up. */
const QUEUE_MAX = 8192;
/**
 * A server that has the call stays silent until the first event; one that has not answers UNIMPLEMENTED at once.
 * So silence for this long means that the stream is open.
 */
const SILENCE_IS_OPEN_MS = 250;

/** Only what can change a pod, only of the CRI's namespace: other clients of the same containerd stay unseen. */
const FILTERS = ['/tasks/start', '/tasks/exit', '/tasks/oom', '/tasks/delete', '/containers/create', '/containers/delete'].map(
  (topic) => `namespace==${CRI_NAMESPACE},topic=="${topic}"`,
);

interface Source {
  via: 'cri' | 'containerd';
  method: Method;
  request: object;
  metadata: Metadata;
  toHint(message: object): RuntimeHint | undefined;
}

const text = (o: object, field: string): string => {
  const value = (o as Record<string, unknown>)[field];
  return typeof value === 'string' ? value : '';
};
const child = (o: object, field: string): object | undefined => {
  const value = (o as Record<string, unknown>)[field];
  return typeof value === 'object' && value !== null ? value : undefined;
};

const CRI_KINDS: Readonly<Record<string, RuntimeHint['kind']>> = {
  CONTAINER_CREATED_EVENT: 'created',
  CONTAINER_STARTED_EVENT: 'started',
  CONTAINER_STOPPED_EVENT: 'stopped',
  CONTAINER_DELETED_EVENT: 'deleted',
};

function criSource(proto: CriProto): Source {
  return {
    via: 'cri',
    method: proto.method('runtime', 'GetContainerEvents'),
    request: {},
    metadata: new Metadata(),
    toHint: (message) => {
      const id = text(message, 'containerId');
      if (id === '') return undefined;
      const metadata = child(child(message, 'podSandboxStatus') ?? {}, 'metadata');
      const podUid = metadata === undefined ? '' : text(metadata, 'uid');
      const kind = CRI_KINDS[text(message, 'containerEventType')] ?? 'other';
      return podUid === '' ? { kind, id } : { kind, id, podUid };
    },
  };
}

function containerdSource(proto: EventsProto): Source {
  const metadata = new Metadata();
  metadata.set('containerd-namespace', CRI_NAMESPACE);
  return {
    via: 'containerd',
    method: proto.subscribe,
    request: { filters: FILTERS },
    metadata,
    toHint: (message) => {
      const event = child(message, 'event');
      const value = event === undefined ? undefined : (event as Record<string, unknown>).value;
      if (event === undefined || !(value instanceof Uint8Array)) return undefined;
      // `containerd.events.TaskExit`, with or without a type server in front.
      const name = text(event, 'typeUrl').split(/[./]/).at(-1) ?? '';
      const body = proto.decode(name, Buffer.from(value));
      if (body === undefined) return undefined;
      const container = text(body, 'containerId');
      // An exit of anything but the first process is an exec; an empty id in a delete means the first process.
      const process = text(body, 'id');
      switch (name) {
        case 'TaskStart':
          return { kind: 'started', id: container };
        case 'TaskExit':
          return process === container ? { kind: 'stopped', id: container } : undefined;
        case 'TaskDelete':
          return process === '' || process === container ? { kind: 'stopped', id: container } : undefined;
        case 'TaskOOM':
          return { kind: 'oom', id: container };
        case 'ContainerCreate':
          return { kind: 'created', id: process };
        case 'ContainerDelete':
          return { kind: 'deleted', id: process };
        default:
          return undefined;
      }
    },
  };
}

interface Opened {
  via: 'cri' | 'containerd';
  stream: AsyncIterable<RuntimeHint>;
}

function openOne(client: Client, source: Source, o: { signal: AbortSignal; clock: Clock }): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const call: ClientReadableStream<object> = client.makeServerStreamRequest(
      source.method.path,
      source.method.requestSerialize,
      source.method.responseDeserialize,
      source.request,
      source.metadata,
    );
    const queue = new HintQueue<RuntimeHint>(QUEUE_MAX, () => cancelCall(call));
    let open = false;
    let headersSeen = false;
    const opened = () => {
      if (open) return;
      open = true;
      o.clock.clearTimeout(timer);
      resolve({ via: source.via, stream: queue });
    };
    const ended = (error: CriError | undefined) => {
      o.clock.clearTimeout(timer);
      o.signal.removeEventListener('abort', abort);
      if (open) return queue.end(error);
      open = true;
      reject(error ?? new CriError({ method: 'hints', code: status.UNAVAILABLE, outcome: 'failed', details: 'the stream ended at once' }));
    };
    const abort = () => cancelCall(call);
    const timer = o.clock.setTimeout(opened, SILENCE_IS_OPEN_MS);
    o.signal.addEventListener('abort', abort, { once: true });
    call.on('metadata', () => {
      headersSeen = true;
      opened();
    });
    call.on('data', (message: object) => {
      opened();
      const give = (code: status, details: string): void => {
        queue.end(new CriError({ method: 'hints', code, outcome: 'failed', details }));
        cancelCall(call);
      };
      try {
        const hint = source.toHint(message);
        if (hint !== undefined && !queue.push(hint)) give(status.RESOURCE_EXHAUSTED, `${QUEUE_MAX} hints waited for their reader`);
      } catch (error) {
        // A throw in a listener would end the process.
        give(status.INTERNAL, `an event that cannot be read: ${messageOf(error)}`);
      }
    });
    call.on('error', (error: ServiceError) => ended(toCriError('hints', error, headersSeen)));
    call.on('end', () => ended(undefined));
    if (o.signal.aborted) abort();
  });
}

/** Rejects with code 12 when the runtime has neither stream. */
export async function openHints(
  client: Client,
  protos: { cri: CriProto; events: EventsProto },
  o: { signal: AbortSignal; clock: Clock },
): Promise<Opened> {
  try {
    return await openOne(client, criSource(protos.cri), o);
  } catch (error) {
    if (!(error instanceof CriError) || error.code !== status.UNIMPLEMENTED) throw error;
  }
  return await openOne(client, containerdSource(protos.events), o);
}
