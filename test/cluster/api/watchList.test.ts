/**
 * The daemon's list-watch against the API machinery of Kubernetes 1.36: initial events, their end, and what becomes of it when
 * history is compacted, the server is killed or refuses, or etcd goes back to a backup. Custom resources stand for pods.
 * Skipped where scripts/setup/api-machinery-setup.sh did not run.
 */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Actor, type AnyActorLogic, createActor } from 'xstate';
import { listWatch } from '../../../src/actors/api/client.ts';
import { createKubeApi } from '../../../src/boot/dependencies/kube/kubeApi.ts';
import type { ListWatchContext } from '../../../src/machines/api/listWatchMachine.ts';
import { decodeWatchLine, type KubeFailure, type KubeRequest } from '../../../src/machines/kube/request.ts';
import type { KubeApi } from '../../../src/ports/kube.ts';
import { type ApiMachinery, hasApiMachinery, startApiMachinery } from '../../e2e/lab/cluster/apiMachinery.ts';
import type { ControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { quietLog, realClock, until } from '../../e2e/lab/ports.ts';

const LONG = { timeoutMs: 60_000, everyMs: 20 };
const THINGS = '/apis/lab.example/v1/namespaces/default/things';
const MANY = 2_000;
const AT_ONCE = 20;
/** Characters of an object: all of them are more than the buffers of a connection hold. */
const BODY = 4_000;
/** Of a server that accepts no such version. */
const FUTURE = '999999999';

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.lab.example' },
  spec: {
    group: 'lab.example',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

/** Requests of the administrator that share connections: thousands of handshakes would be the test. */
function administrator(plane: ControlPlane) {
  const as = plane.ca.issue('admin', { name: 'kubernetes-admin', groups: ['system:masters'] });
  const read = (file: string) => readFileSync(file);
  const tls = { ca: read(plane.ca.certFile), cert: read(as.certFile), key: read(as.keyFile) };
  const agent = new Agent({ ...tls, keepAlive: true, maxSockets: AT_ONCE });
  const ask = (method: string, path: string, body?: object) =>
    new Promise<{ status: number; body: unknown }>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      const req = request(new URL(path, plane.url), { method, agent, headers }, (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.once('error', reject);
        res.once('end', () => {
          const text = Buffer.concat(chunks).toString();
          const json = (res.headers['content-type'] ?? '').includes('json');
          resolve({ status: res.statusCode ?? 0, body: json ? JSON.parse(text) : text });
        });
      });
      req.once('error', reject);
      req.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const thing = (name: string, text: string) => ({ apiVersion: 'lab.example/v1', kind: 'Thing', metadata: { name }, spec: { text } });
  return {
    ask,
    async make(name: string, text = ''): Promise<void> {
      const made = await ask('POST', THINGS, thing(name, text));
      if (made.status !== 201) throw new Error(`POST ${name}: ${JSON.stringify(made.body)}`);
    },
    /** Names and versions of all things, and the version of the list. */
    async all(): Promise<{ versions: Record<string, string>; resourceVersion: string }> {
      const { body } = await ask('GET', THINGS);
      type Meta = { metadata: { name: string; resourceVersion: string } };
      const { items, metadata } = body as { items: Meta[] } & Meta;
      const versions = Object.fromEntries(items.map((o) => [o.metadata.name, o.metadata.resourceVersion]));
      return { versions, resourceVersion: metadata.resourceVersion };
    },
    end: () => agent.destroy(),
  };
}

type Administrator = ReturnType<typeof administrator>;
async function servedAgain(admin: Administrator): Promise<void> {
  await until('the resource is served', async () => (await admin.ask('GET', THINGS).catch(() => null))?.status === 200, LONG);
}

/** The port of the daemon, with a note of what it was asked. */
function port(plane: ControlPlane): { kube: KubeApi; asked: string[] } {
  const as = plane.ca.issue('admin', { name: 'kubernetes-admin', groups: ['system:masters'] });
  const rate = { qps: 1_000, burst: 1_000 };
  const kube = createKubeApi({
    config: {
      ...{ path: '-', server: new URL(plane.url), token: null, exec: null, tlsServerName: null, insecure: false, proxy: null },
      ...{ ca: { file: plane.ca.certFile }, cert: { file: as.certFile }, key: { file: as.keyFile } },
    },
    ...{ clock: realClock, log: quietLog, userAgent: 'actorlet', kube: rate, event: rate },
  });
  const asked: string[] = [];
  const note = (what: string, { query }: Pick<KubeRequest, 'query'>) => {
    const from = query?.resourceVersion === undefined ? '' : query.resourceVersion === '0' ? ' from 0' : ' from known';
    asked.push(`${query?.sendInitialEvents === 'true' ? 'stream' : what}${from}`);
  };
  return {
    asked,
    kube: {
      ...{ server: kube.server, closeConnections: (of) => kube.closeConnections(of), close: () => kube.close() },
      request(r, o) {
        note('list', r);
        return kube.request(r, o);
      },
      watch(r, o) {
        note('watch', r);
        return kube.watch(r, o);
      },
    },
  };
}

interface Following {
  context(): ListWatchContext;
  asked: string[];
  /** Failures that it met, in order. */
  failures: KubeFailure[];
  deliveries(): number;
  versions(): Record<string, string>;
  actor: Actor<AnyActorLogic>;
  stop(): void;
}
/** @param o.faster Its own delays pass so many times faster. */
function follow(plane: ControlPlane, o: { seen?: (context: ListWatchContext) => void; faster?: number } = {}): Following {
  const { seen = () => {}, faster = 1 } = o;
  const { kube, asked } = port(plane);
  const abort = new AbortController();
  const ctx = {
    ports: { clock: realClock, rng: { next: () => 0 }, yield: { defer: (fn: () => void) => void setImmediate(fn) }, kube },
    registry: { read: () => undefined, send: () => 'delivered' },
    signal: abort.signal,
    log: quietLog,
  };
  let deliveries = 0;
  const deliver = () => {
    deliveries++;
  };
  const { logic, input } = listWatch(ctx as never, { what: 'things', path: THINGS, streams: true, deliver });
  const clock = {
    setTimeout: (fn: () => void, ms: number) => setTimeout(fn, ms / faster),
    clearTimeout: (id: unknown) => clearTimeout(id as NodeJS.Timeout),
  };
  const actor = createActor(logic, { input: input as never, clock: clock as never });
  const context = () => (actor.getSnapshot() as unknown as { context: ListWatchContext }).context;
  const failures: KubeFailure[] = [];
  actor.subscribe(() => {
    const { failure } = context();
    if (failure !== null && failures.at(-1) !== failure) failures.push(failure);
    seen(context());
  });
  actor.start();
  return {
    ...{ context, asked, failures, actor, deliveries: () => deliveries },
    versions: () => Object.fromEntries([...context().items.values()].map((o) => [o.metadata.name, o.metadata.resourceVersion ?? ''])),
    stop() {
      actor.stop();
      abort.abort();
      kube.close();
    },
  };
}

/** Runs `work` against a new server with one custom resource. */
async function served(flags: readonly string[], work: (it: ApiMachinery, admin: Administrator) => Promise<void>) {
  const it = await startApiMachinery({ flags });
  const admin = administrator(it.plane);
  try {
    expect((await admin.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)).status).toBe(201);
    await servedAgain(admin);
    await work(it, admin);
  } finally {
    admin.end();
    await it.plane.stop();
  }
}

describe.skipIf(!hasApiMachinery())('list-watch on the API machinery of 1.36', () => {
  let machinery: ApiMachinery;
  let admin: Administrator;
  beforeAll(async () => {
    machinery = await startApiMachinery();
    admin = administrator(machinery.plane);
    await admin.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    await servedAgain(admin);
    const text = 'x'.repeat(BODY);
    for (let i = 0; i < MANY; i += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => admin.make(`thing-${String(i + n).padStart(4, '0')}`, text)));
  });
  afterAll(async () => {
    admin?.end();
    await machinery?.plane.stop();
  });

  it('takes the initial state from one watch, at once and in full, and follows it', async () => {
    const f = follow(machinery.plane);
    try {
      await until('the initial events end', () => f.deliveries() > 0, LONG);
      const { versions, resourceVersion } = await admin.all();
      expect(Object.keys(f.versions())).toHaveLength(MANY);
      expect(f.versions()).toEqual(versions);
      expect(f.context()).toMatchObject({ resourceVersion, failures: 0, arriving: null });
      expect([f.asked, f.deliveries()]).toEqual([['stream'], 1]);
      expect([...f.context().items.values()].some((o) => o.metadata.managedFields !== undefined)).toBe(false);

      await admin.make('late');
      await until('it is there', () => f.versions().late !== undefined, LONG);
      await admin.ask('DELETE', `${THINGS}/late`);
      await until('it is gone', () => f.versions().late === undefined, LONG);
      expect(f.asked).toEqual(['stream']);
    } finally {
      f.stop();
    }
  });

  it('goes on where it was when the server was killed, or asks for all again where history is gone', async () => {
    const f = follow(machinery.plane);
    try {
      await until('the initial events end', () => f.deliveries() > 0, LONG);
      await machinery.plane.kill('kube-apiserver');
      await machinery.plane.start('kube-apiserver');
      await servedAgain(admin);
      await admin.make('after');
      await until('it is there', () => f.versions().after !== undefined, LONG);
      expect(f.versions()).toEqual((await admin.all()).versions);
      expect(f.asked.slice(0, 2)).toEqual(['stream', 'watch from known']);
    } finally {
      f.stop();
      await admin.ask('DELETE', `${THINGS}/after`);
    }
  });

  it('keeps what it knew over a server that dies in the middle of the initial events, and begins anew', async () => {
    let killed: Promise<void> | undefined;
    const f = follow(machinery.plane, {
      seen: ({ arriving }) => {
        if (arriving !== null && arriving.size > 0) killed ??= machinery.plane.kill('kube-apiserver');
      },
    });
    try {
      await until('it was killed', () => killed !== undefined, LONG);
      await killed;
      await until('the stream broke off', () => f.failures.length > 0, LONG);
      expect([f.deliveries(), f.context().items.size]).toEqual([0, 0]);
      await machinery.plane.start('kube-apiserver');
      await until('the initial events end', () => f.deliveries() > 0, LONG);
      expect(f.versions()).toEqual((await admin.all()).versions);
    } finally {
      f.stop();
    }
  });

  it('hears that its version has expired, and streams the newest state at once', async () => {
    const f = follow(machinery.plane);
    try {
      await until('the initial events end', () => f.deliveries() > 0, LONG);
      const before = f.context().resourceVersion;
      await machinery.plane.kill('kube-apiserver');
      // No history tells of it: a server that starts knows what is there, and not what went before.
      await machinery.etcd.remove('/registry/apiextensions.kubernetes.io/lab.example/things/default/thing-0000');
      await machinery.plane.start('kube-apiserver');
      await until('it is gone', () => f.versions()['thing-0000'] === undefined, LONG);
      expect(f.versions()).toEqual((await admin.all()).versions);
      expect(f.failures).toContainEqual(
        expect.objectContaining({ code: 410, reason: 'Expired', message: expect.stringMatching(`^too old resource version: ${before} `) }),
      );
      expect(f.asked.filter((what) => what !== 'watch from known')).toEqual(['stream', 'stream']);
    } finally {
      f.stop();
    }
  });

  it('follows on when etcd is compacted under it', async () => {
    const f = follow(machinery.plane);
    try {
      await until('the initial events end', () => f.deliveries() > 0, LONG);
      await admin.make('compacted');
      await machinery.etcd.compact((await admin.all()).resourceVersion);
      await until('it is there', () => f.versions().compacted !== undefined, LONG);
      await admin.ask('DELETE', `${THINGS}/compacted`);
      await until('it is gone', () => f.versions().compacted === undefined, LONG);
      expect([f.asked, f.failures]).toEqual([['stream'], []]);
    } finally {
      f.stop();
    }
  });

  it('is told what else may go wrong in the words of the fake API server', async () => {
    const { kube } = port(machinery.plane);
    const first = async (query: Record<string, string>): Promise<KubeFailure | 'an event'> => {
      const signal = new AbortController();
      const watch = await kube.watch({ path: THINGS, query }, { timeoutMs: 10_000, signal: signal.signal });
      if (!watch.ok) return watch.failure;
      for await (const line of watch.lines) {
        const decoded = decodeWatchLine(line);
        signal.abort();
        return decoded.ok ? 'an event' : decoded.failure;
      }
      throw new Error('the watch said nothing');
    };
    const all = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };
    const refused = (message: string) => ({ code: 422, reason: 'Invalid', message: `ListOptions.meta.k8s.io "" is invalid: ${message}` });
    expect(await first({ sendInitialEvents: 'true' })).toMatchObject(
      refused('resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    );
    expect(await first({ resourceVersionMatch: 'NotOlderThan' })).toMatchObject(
      refused('resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'),
    );
    expect(await first({ ...all, resourceVersion: FUTURE })).toMatchObject({
      ...{ code: 504, reason: 'ResourceVersionTooLarge', retryAfterMs: 1_000 },
      message: expect.stringMatching(/^Timeout: Too large resource version: 999999999, current: \d+$/),
    });
    expect(await first({ resourceVersion: '1' })).toMatchObject({
      ...{ code: 410, reason: 'Expired', message: expect.stringMatching(/^too old resource version: 1 \(\d+\)$/) },
    });
    expect(await first(all)).toBe('an event');
    kube.close();
  });
});

describe.skipIf(!hasApiMachinery())('list-watch on a server that', () => {
  it('has no streams of initial events: it lists, and follows from there', async () => {
    await served(['--feature-gates=WatchList=false'], async ({ plane }, admin) => {
      for (const name of ['a', 'b', 'c']) await admin.make(name);
      const f = follow(plane);
      try {
        await until('the list came', () => f.deliveries() > 0, LONG);
        expect(f.failures[0]).toMatchObject({
          ...{ code: 422, reason: 'Invalid' },
          message:
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
        });
        await until('it follows', () => f.asked.length > 2, LONG);
        expect(f.asked).toEqual(['stream', 'list from 0', 'watch from known']);
        await admin.make('d');
        await until('it is there', () => f.versions().d !== undefined, LONG);
        expect(f.versions()).toEqual((await admin.all()).versions);
      } finally {
        f.stop();
      }
    });
  });

  it('stands on an etcd that was restored from a backup: it takes the older state', async () => {
    await served([], async ({ plane }, admin) => {
      await admin.make('kept');
      const [data, backup] = [join(plane.dir, 'etcd'), join(plane.dir, 'backup')];
      await plane.kill('kube-apiserver');
      await plane.kill('etcd');
      cpSync(data, backup, { recursive: true });
      await plane.start('etcd', 'kube-apiserver');
      await servedAgain(admin);
      for (const name of ['lost-1', 'lost-2', 'lost-3']) await admin.make(name);
      // It is silent about versions that it has yet to reach: 90 s of silence pass in 4.5 s.
      const f = follow(plane, { faster: 20 });
      try {
        await until('the initial events end', () => f.deliveries() > 0, LONG);
        expect(Object.keys(f.versions())).toHaveLength(4);
        await plane.kill('kube-apiserver');
        await plane.kill('etcd');
        rmSync(data, { recursive: true });
        cpSync(backup, data, { recursive: true });
        await plane.start('etcd', 'kube-apiserver');
        await servedAgain(admin);
        await until('it has the older state', () => Object.keys(f.versions()).join() === 'kept', LONG);
      } finally {
        f.stop();
      }
    });
  });
});
