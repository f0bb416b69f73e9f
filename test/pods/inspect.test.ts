/** What an inspection reads of the runtime: everything, or only what the worker's own acts touched. */
import { expect, test } from 'vitest';
import { Inspector } from '../../src/actors/pods/workers/inspect.ts';
import type { CriCall, CriClient } from '../../src/actors/runtime/client.ts';
import type { CriResult } from '../../src/machines/runtime/cri/messages.ts';
import { CriError, type Ports } from '../../src/ports/ports.ts';

const { signal } = new AbortController();
const META = { name: 'p', namespace: 'ns', uid: 'u', attempt: 0 };

/** A runtime with one sandbox and one container per id, all up. */
function bench() {
  const asked: string[] = [];
  const held = { sandboxes: ['s1'], containers: ['c1'] };
  let nowMs = 0;
  const answers: Record<string, (req: { podSandboxId: string; containerId: string }) => unknown> = {
    ListPodSandbox: () => ({ items: held.sandboxes.map((id) => ({ id, state: 'SANDBOX_READY' })) }),
    ListContainers: () => ({ containers: held.containers.map((id) => ({ id, state: 'CONTAINER_RUNNING' })) }),
    PodSandboxStatus: ({ podSandboxId: id }) => ({
      status: { id, metadata: META, state: 'SANDBOX_READY', createdAt: '1', network: { ip: '10.0.0.1', additionalIps: [] }, linux: null },
    }),
    ContainerStatus: ({ containerId: id }) => {
      if (!held.containers.includes(id))
        throw new CriError({ method: 'ContainerStatus', code: 5, outcome: 'failed', details: 'not found' });
      const text = { reason: '', message: '', logPath: '', imageRef: '', labels: {}, annotations: {}, mounts: [] };
      return {
        status: { id, state: 'CONTAINER_RUNNING', createdAt: '1', startedAt: '2', finishedAt: '0', exitCode: 0, image: null, ...text },
      };
    },
  };
  const read = (method: string, req: unknown) => {
    asked.push(method);
    nowMs += 1;
    return Promise.resolve().then(() => answers[method]?.(req as never));
  };
  const listedAtMs: { nothing: number | null } = { nothing: null };
  const ports = { clock: { monoMs: () => nowMs } } as unknown as Ports;
  const inspector = new Inspector({ read } as unknown as CriClient, ports, {
    facts: () => ({ rootDir: '/root', podLogsDir: '/logs' }),
    nothingAtMonoMs: () => listedAtMs.nothing,
  });
  const look = async (partial: boolean, o: { stopping?: boolean } = {}) => {
    asked.length = 0;
    const { sandboxes, containers } = await inspector.inspect({ uid: 'u', partial, stopping: false, ...o }, signal);
    return {
      asked: [...asked],
      ids: [...sandboxes, ...containers].map((x) => x.id).sort(),
      ready: sandboxes.filter((s) => s.ready).length,
    };
  };
  const ended = (method: string, request: unknown, result: CriResult) => {
    inspector.acts.begin();
    inspector.acts.ended([{ method, request } as CriCall], [result]);
  };
  return { inspector, held, look, ended, listedAtMs };
}
const it = test.extend('b', () => bench());
const WHOLE = ['ListPodSandbox', 'ListContainers'];

it('reads one container after it was started, and keeps what it knows of the rest', async ({ b }) => {
  expect((await b.look(false)).asked).toEqual([...WHOLE, 'PodSandboxStatus', 'ContainerStatus']);
  b.held.containers.push('c2');
  b.ended('CreateContainer', {}, { ok: true, value: { containerId: 'c2' } });
  b.ended('StartContainer', { containerId: 'c2' }, { ok: true, value: {} });
  expect(await b.look(true)).toEqual({ asked: ['ContainerStatus'], ids: ['c1', 'c2', 's1'], ready: 1 });
});

it('reads everything at first, and after an act that failed or that may have changed more', async ({ b }) => {
  expect((await b.look(true)).asked).toEqual(expect.arrayContaining(WHOLE));
  b.ended(
    'StartContainer',
    { containerId: 'c1' },
    { ok: false, error: { method: 'StartContainer', code: 4, outcome: 'unknown', details: '' } },
  );
  expect((await b.look(true)).asked).toEqual(WHOLE);
  b.ended('RemoveContainer', { containerId: 'c1' }, { ok: true, value: {} });
  expect((await b.look(true)).asked).toEqual(WHOLE);
  expect((await b.look(true)).asked).toEqual([]);
});

it('reads everything when what was just started is gone', async ({ b }) => {
  await b.look(false);
  b.ended('StartContainer', { containerId: 'c9' }, { ok: true, value: {} });
  expect(await b.look(true)).toMatchObject({ asked: ['ContainerStatus', ...WHOLE], ids: ['c1', 's1'] });
});

it('asks of a stopped container how it ended, and of a stopped sandbox nothing', async ({ b }) => {
  expect((await b.look(false)).ready).toBe(1);
  b.ended('StopContainer', { containerId: 'c1' }, { ok: true, value: {} });
  b.ended('StopPodSandbox', { podSandboxId: 's1' }, { ok: true, value: {} });
  expect(await b.look(true, { stopping: true })).toEqual({ asked: ['ContainerStatus'], ids: ['c1', 's1'], ready: 0 });
});

it('reads everything before a stop while it is not known here what an act came to', async ({ b }) => {
  await b.look(false);
  b.inspector.acts.begin();
  expect((await b.look(true, { stopping: true })).asked).toEqual(WHOLE);
  b.inspector.acts.ended([{ method: 'StartContainer', request: { containerId: 'c1' } } as CriCall], [{ ok: true, value: {} }]);
  expect((await b.look(true, { stopping: true })).asked).toEqual(['ContainerStatus']);
});

it('asks the runtime nothing of a pod of which the last listing held nothing, until it acts', async ({ b }) => {
  b.listedAtMs.nothing = 7;
  expect(await b.look(false)).toMatchObject({ asked: [], ids: [] });
  expect(await b.look(true)).toMatchObject({ asked: [], ids: [] });
  b.ended('RunPodSandbox', {}, { ok: true, value: { podSandboxId: 's1' } });
  expect(await b.look(true)).toMatchObject({ asked: ['PodSandboxStatus'], ids: ['s1'] });
  expect((await b.look(false)).asked).toEqual([...WHOLE, 'ContainerStatus']);
});

it('reads everything again, also what it knew for good, after a new sandbox or container was refused', async ({ b }) => {
  await b.look(false);
  expect((await b.look(false)).asked).toEqual(WHOLE);
  b.inspector.doubt();
  expect((await b.look(true)).asked).toEqual([...WHOLE, 'PodSandboxStatus', 'ContainerStatus']);
});
