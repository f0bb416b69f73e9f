/**
 * What the runtime's stream of events leads to (pod lifecycle 4.3): what is heard of each message of either kind of stream, who
 * is told of each hint and what is asked for it, and how the runtime is listed while the stream is there, lost or refused.
 */
import { EventEmitter } from 'node:events';
import type { Client } from '@grpc/grpc-js';
import { openHints } from '../../../../src/boot/dependencies/cri/hintStream.ts';
import type { CriProto, EventsProto } from '../../../../src/boot/dependencies/cri/load.ts';
import { CLEAN_LISTINGS, RELIST_PERIODS_MS } from '../../../../src/machines/runtime/pleg/hintTrust.ts';
import { runtimePodsView } from '../../../../src/machines/runtime/pleg/messages.ts';
import { STREAM_RETRY_MAX_MS, STREAM_RETRY_MIN_MS, UNHEALTHY_AFTER_MS } from '../../../../src/machines/runtime/pleg/plegMachine.ts';
import type { RuntimeHint } from '../../../../src/machines/wire/cri.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { type FakeCri, fail, fakeCri, healthy, listedContainer, listedSandbox } from '../../../runtime/fakeCri.ts';
import { type World, world } from '../../../runtime/world.ts';
import { goldenTable } from '../table.ts';

// ---- messages of a stream ----

class Call extends EventEmitter {
  cancel(): void {
    this.emit('end');
  }
}
const UNIMPLEMENTED = 12;
/** What is heard of these messages, on a runtime that has one kind of stream or the other. */
const heard =
  (has: 'cri' | 'containerd' | 'none', ...messages: object[]) =>
  async () => {
    const time = virtualTime();
    const bytes = (value: object) => new TextEncoder().encode(JSON.stringify(value));
    const calls: string[] = [];
    const client = {
      makeServerStreamRequest(path: string) {
        calls.push(path);
        const call = new Call();
        setImmediate(() => {
          if (path !== has) return call.emit('error', Object.assign(new Error('x'), { code: UNIMPLEMENTED, details: 'unknown service' }));
          call.emit('metadata');
          for (const message of messages) call.emit('data', message);
          return call.emit('end');
        });
        return call;
      },
    } as unknown as Client;
    const method = (path: string) => ({ path, requestSerialize: bytes, responseDeserialize: () => ({}) });
    const protos = {
      cri: { method: () => method('cri') } as unknown as CriProto,
      events: {
        subscribe: method('containerd'),
        decode: (name: string, body: Uint8Array) =>
          name.startsWith('Task') || name.startsWith('Container') ? JSON.parse(new TextDecoder().decode(body)) : undefined,
      } as unknown as EventsProto,
    };
    try {
      const { via, stream } = await openHints(client, protos, { signal: new AbortController().signal, clock: time.clock });
      const hints: RuntimeHint[] = [];
      for await (const hint of stream) hints.push(hint);
      return { calls, via, hints };
    } catch (error) {
      return { calls, refused: error instanceof Error ? error.message : String(error) };
    }
  };
const SANDBOX = { metadata: { uid: 'uid-1', name: 'p', namespace: 'ns' } };
const ofCri = (containerEventType: string, podSandboxStatus: object | null = SANDBOX, containerId = 'c1') =>
  heard('cri', { containerEventType, containerId, podSandboxStatus });
const ofContainerd = (name: string, body: object) =>
  heard('containerd', {
    event: { typeUrl: `types.containerd.io/containerd.events.${name}`, value: new TextEncoder().encode(JSON.stringify(body)) },
  });

// ---- what a hint leads to ----

async function start(adjust: (cri: FakeCri) => void = () => undefined): Promise<World> {
  const cri = healthy(fakeCri());
  cri.answer('ListPodSandbox', () => ({ items: [listedSandbox('a')] }));
  cri.answer('ListContainers', () => ({ containers: [listedContainer('a', 'c-a', 'CONTAINER_RUNNING')] }));
  cri.answer('ContainerStatus', ({ containerId }) =>
    containerId === 'c-new' ? { status: listedContainer('new', 'c-new', 'CONTAINER_EXITED'), info: {} } : fail(5, 'not found'),
  );
  cri.answer('PodSandboxStatus', () => fail(5, 'not found'));
  adjust(cri);
  return world({ cri, only: ['cri', 'pleg'] });
}
const listings = (w: World) => w.cri.of('ListPodSandbox').length;
/** Longer than it takes until a slowed listing comes by itself: the stream is trusted then. */
const TRUSTED_AFTER_MS = 300_000;
const leads = (hint: RuntimeHint) => async () => {
  const w = await start();
  try {
    await w.ports.advance(TRUSTED_AFTER_MS);
    w.dirty.length = 0;
    const calls = w.cri.calls.length;
    const before = listings(w);
    w.cri.hint(hint);
    await w.ports.settle();
    const asked = w.cri.calls.slice(calls).map((c) => c.method);
    const told = w.dirty.map(({ type: _, ...d }) => ({ uid: d.uid, why: d.why, ended: (d as { ended?: readonly string[] }).ended ?? [] }));
    const listed: Record<string, number> = {};
    for (const [atMs, stepMs] of [
      [100, 100],
      [1_100, 1_000],
    ] as const) {
      await w.ports.advance(stepMs);
      listed[`within ${atMs} ms`] = listings(w) - before;
    }
    return { told, asked, listed };
  } finally {
    await w.stop();
  }
};
const KINDS = ['created', 'started', 'stopped', 'deleted', 'oom', 'other'] as const;
const ofEach = (title: string, hint: Omit<RuntimeHint, 'kind'>) =>
  Object.fromEntries(KINDS.map((kind): [string, () => unknown] => [`4.3 ${kind}: ${title}`, leads({ kind, ...hint })]));

// ---- the stream itself ----

/** Streams opened and listings made in each part of a while; and by what the view says that it knows. */
const pace =
  (adjust: (cri: FakeCri) => void, after: (w: World) => void = () => undefined, partsMs: readonly number[] = [10_000, 60_000, 300_000]) =>
  async () => {
    const w = await start(adjust);
    try {
      after(w);
      const rows: object[] = [];
      for (const ms of partsMs) {
        const [opened, listed] = [w.cri.opened(), listings(w)];
        await w.ports.advance(ms);
        const via = w.tree.registry.read(runtimePodsView)?.value.via ?? 'nothing';
        rows.push({ seconds: ms / 1_000, opened: w.cri.opened() - opened, listings: listings(w) - listed, via });
      }
      return rows;
    } finally {
      await w.stop();
    }
  };

goldenTable('what the stream of the runtime leads to is as recorded', 'runtime/hints', {
  '4.3 parameters': () => ({ RELIST_PERIODS_MS, CLEAN_LISTINGS, STREAM_RETRY_MIN_MS, STREAM_RETRY_MAX_MS, UNHEALTHY_AFTER_MS }),

  '4.3 CRI message: created': ofCri('CONTAINER_CREATED_EVENT'),
  '4.3 CRI message: started': ofCri('CONTAINER_STARTED_EVENT'),
  '4.3 CRI message: stopped': ofCri('CONTAINER_STOPPED_EVENT'),
  '4.3 CRI message: deleted': ofCri('CONTAINER_DELETED_EVENT'),
  '4.3 CRI message: of a kind that is not known': ofCri('CONTAINER_PAUSED_EVENT'),
  '4.3 CRI message: without the status of its sandbox': ofCri('CONTAINER_STOPPED_EVENT', null),
  '4.3 CRI message: a sandbox without metadata': ofCri('CONTAINER_STOPPED_EVENT', { metadata: null }),
  '4.3 CRI message: without an id': ofCri('CONTAINER_STOPPED_EVENT', SANDBOX, ''),
  '4.3 CRI message: statuses of containers are not looked at': heard('cri', {
    containerEventType: 'CONTAINER_STOPPED_EVENT',
    containerId: 'c1',
    podSandboxStatus: SANDBOX,
    containersStatuses: [{ id: 'c1', state: 'CONTAINER_RUNNING' }],
  }),
  '4.3 containerd message: a container is made': ofContainerd('ContainerCreate', { id: 'c1' }),
  '4.3 containerd message: a container is removed': ofContainerd('ContainerDelete', { id: 'c1' }),
  '4.3 containerd message: a task starts': ofContainerd('TaskStart', { containerId: 'c1', pid: 7 }),
  '4.3 containerd message: the first process ends': ofContainerd('TaskExit', { containerId: 'c1', id: 'c1', exitStatus: 1 }),
  '4.3 containerd message: another process ends': ofContainerd('TaskExit', { containerId: 'c1', id: 'exec-1' }),
  '4.3 containerd message: a task is deleted': ofContainerd('TaskDelete', { containerId: 'c1', id: '' }),
  '4.3 containerd message: another process is deleted': ofContainerd('TaskDelete', { containerId: 'c1', id: 'exec-1' }),
  '4.3 containerd message: out of memory': ofContainerd('TaskOOM', { containerId: 'c1' }),
  '4.3 containerd message: of a kind that is not known': ofContainerd('TaskPaused', { containerId: 'c1' }),
  '4.3 containerd message: that cannot be read': ofContainerd('ImageCreate', { name: 'x' }),
  '4.3 stream: the runtime has neither': heard('none'),

  ...ofEach('of a container that the last listing held', { id: 'c-a' }),
  ...ofEach('of a container that nobody knows, and the runtime does', { id: 'c-new' }),
  ...ofEach('of a container that nobody knows', { id: 'c-x' }),
  ...ofEach('of a container that nobody knows, the stream names its pod', { id: 'c-x', podUid: 'b' }),
  '4.3 stopped: of a sandbox': leads({ kind: 'stopped', id: 's-a' }),
  '4.3 deleted: of a sandbox': leads({ kind: 'deleted', id: 's-a' }),
  '4.3 stopped: without an id': leads({ kind: 'stopped', id: '' }),

  '4.3 stream: of the CRI, and nothing happens': pace((cri) => {
    cri.hintsVia = 'cri';
  }),
  '4.3 stream: of containerd, and nothing happens': pace(() => undefined),
  '4.3 stream: the runtime has none': pace((cri) => {
    cri.hintsVia = 'none';
  }),
  '4.3 stream: it ends once': pace(
    () => undefined,
    (w) => w.cri.endHints(),
  ),
  '4.3 stream: it is refused again and again': pace((cri) => {
    cri.hints = async () => {
      counted.opened += 1;
      return fail(14, 'no stream today');
    };
    const counted = { opened: 0 };
    cri.opened = () => counted.opened;
  }),
});
