/** A real daemon with a real file system, against an API server that lies about names: nothing is made outside its folders. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import '../../../test/programs.ts';
import { issue } from '../../../test/boot/kube/certs.ts';
import { HOSTILE_NAMES } from '../../../test/hostileNames.ts';
import { startNode, type TestNode } from '../src/index.ts';

interface Told {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: ApiPod;
}
interface ApiPod {
  apiVersion: 'v1';
  kind: 'Pod';
  metadata: { name: string; namespace: string; uid: string; resourceVersion?: string };
  spec: object;
  status: object;
}

const NODE = 'n1';
const ca = issue({ cn: 'ca', issuer: null });
const serving = issue({ cn: 'api', issuer: ca, ips: ['127.0.0.1'] });

/** One node and its pods, by list and watch. It refuses every write. */
class LyingServer {
  readonly #pods = new Map<string, ApiPod>();
  readonly #watchers = new Set<ServerResponse>();
  #version = 1;
  readonly #server = createServer({ cert: serving.cert, key: serving.key }, (req, res) => this.#answer(req, res));

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
  put(pod: ApiPod): void {
    this.#version += 1;
    const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
    const object = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(this.#version) } };
    this.#tell({ type: this.#pods.has(key) ? 'MODIFIED' : 'ADDED', object });
    this.#pods.set(key, object);
  }
  drop(name: string): void {
    const key = `default/${name}`;
    const object = this.#pods.get(key);
    if (object === undefined) throw new Error(`no ${key}`);
    this.#version += 1;
    this.#pods.delete(key);
    this.#tell({ type: 'DELETED', object: { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } } });
  }
  #tell(event: Told): void {
    for (const res of this.#watchers) res.write(`${JSON.stringify(event)}\n`);
  }
  #answer(req: IncomingMessage, res: ServerResponse): void {
    const url = new URL(req.url ?? '/', 'https://here');
    const say = (code: number, body: object): void => {
      res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const failure = (code: number, reason: string): void =>
      say(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason });
    req.resume();
    const kind = /^\/api\/v1\/(pods|nodes|services)$/.exec(url.pathname)?.[1];
    const watches = url.searchParams.has('watch') && url.searchParams.get('watch') !== 'false';
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, uid: 'n', resourceVersion: '1' }, spec: {}, status: {} };
    if (req.method !== 'GET') failure(409, 'AlreadyExists');
    else if (url.pathname === `/api/v1/nodes/${NODE}`) say(200, node);
    else if (kind === undefined) failure(404, 'NotFound');
    else if (url.searchParams.get('sendInitialEvents') === 'true') failure(400, 'BadRequest');
    else if (watches) {
      res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      if (kind === 'pods') this.#watch(res, Number(url.searchParams.get('resourceVersion') ?? '0'));
    } else {
      const items = kind === 'pods' ? [...this.#pods.values()] : kind === 'nodes' ? [node] : [];
      say(200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(this.#version) }, items });
    }
  }
  #watch(res: ServerResponse, from: number): void {
    this.#watchers.add(res);
    res.on('close', () => this.#watchers.delete(res));
    for (const object of this.#pods.values()) {
      if (Number(object.metadata.resourceVersion) > from) res.write(`${JSON.stringify({ type: 'ADDED', object })}\n`);
    }
  }
}

function pod(name: string, more: { uid?: string; namespace?: string; container?: string; volume?: string; key?: string } = {}): ApiPod {
  const { uid = `uid-${name}`, namespace = 'default', container = 'main', volume = 'v' } = more;
  const files = { name: 'files', downwardAPI: { items: [{ path: more.key ?? 'name', fieldRef: { fieldPath: 'metadata.name' } }] } };
  const volumes = [{ name: volume, emptyDir: {} }, files];
  const volumeMounts = [volume, 'files'].map((v) => ({ name: v, mountPath: `/mnt/${v === 'files' ? v : 'v'}` }));
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, uid }, status: {} },
    spec: {
      ...{ volumes, restartPolicy: 'Always', terminationGracePeriodSeconds: 1, dnsPolicy: 'Default' },
      containers: [{ name: container, image: 'hollow/run', volumeMounts, terminationMessagePath: '/dev/termination-log' }],
    },
  };
}

let base = '';
let server: LyingServer;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'actorlet-names-'));
  server = new LyingServer();
});
afterEach(() => {
  server.close();
  rmSync(base, { recursive: true, force: true });
});

async function start(): Promise<TestNode> {
  const at = await server.listen();
  // So deep that a name with a few `..` still ends below the folder that is looked at.
  const dir = join(base, 'a/b/c/d/e/f/g/h/node');
  mkdirSync(join(base, 'a/b/c/d/e/f/g/h'), { recursive: true });
  const kubeconfig = join(base, 'kubeconfig');
  const user = { name: 'u', user: {} };
  const context = { name: 'c', context: { cluster: 'k', user: 'u' } };
  const clusters = [{ name: 'k', cluster: { server: at, 'certificate-authority-data': btoa(ca.cert) } }];
  writeFileSync(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters, users: [user], contexts: [context], 'current-context': 'c' }),
  );
  return startNode({ rootDir: dir, name: NODE, runtime: 'hollow', flags: [`--kubeconfig=${kubeconfig}`], startTimeoutMs: 90_000 });
}

/** Everything below the folder of the test that is not the node's, and what stands in the folders of pods and logs. */
function outside(node: TestNode): { beside: string[]; pods: string[]; logs: string[]; root: string[] } {
  const beside: string[] = [];
  const walk = (at: string): void => {
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      if (path === node.dir || path === join(base, 'kubeconfig')) continue;
      if (!entry.isDirectory() || !node.dir.startsWith(`${path}/`)) beside.push(path);
      else walk(path);
    }
  };
  walk(base);
  const names = (...parts: string[]) => readdirSync(join(node.dir, ...parts)).sort();
  return { beside, pods: names('root/pods'), logs: names('logs/pods'), root: [...names(), ...names('root'), ...names('logs')] };
}

const running = async (node: TestNode): Promise<string[]> =>
  (await node.pods())
    .filter((p) => p.phase === 'Running')
    .map((p) => p.name)
    .sort();
async function runs(node: TestNode, names: readonly string[]): Promise<void> {
  await expect.poll(() => running(node), { interval: 50 }).toEqual([...names].sort());
}

it('makes nothing outside its folders of names that an API server gives', { timeout: 240_000 }, async () => {
  server.put(pod('first'));
  await using node = await start();
  await runs(node, ['first']);
  const before = outside(node);
  let n = 0;
  const hostile: string[] = [];
  for (const name of HOSTILE_NAMES) {
    for (const kind of ['uid', 'namespace', 'container', 'volume', 'name'] as const) {
      n += 1;
      const own = kind === 'name' ? name : `odd-${n}`;
      hostile.push(own);
      server.put(pod(own, kind === 'name' ? { uid: `u-${n}` } : { [kind]: name }));
    }
  }
  server.put(pod('second'));
  await runs(node, ['first', 'second']);
  const after = outside(node);
  expect(after.beside).toEqual([]);
  expect(after.root).toEqual(before.root);
  expect(after.pods).toEqual(['uid-first', 'uid-second']);
  expect(after.logs).toEqual(['default_first_uid-first', 'default_second_uid-second']);
  // Keys of what is put into a volume are that volume's trouble.
  for (const [i, key] of HOSTILE_NAMES.entries()) server.put(pod(`key-${i}`, { key }));
  server.put(pod('third'));
  await expect.poll(() => running(node)).toEqual(expect.arrayContaining(['first', 'second', 'third']));
  const last = outside(node);
  expect(last.beside).toEqual([]);
  expect(last.root).toEqual(before.root);
  expect(await node.why('odd-11')).toContain('cannot name a file');
  expect(node.pid).toBeDefined();
});

it('runs one of two pods with one UID, and the other once the first is gone; no worker dies', { timeout: 240_000 }, async () => {
  server.put(pod('a', { uid: 'one' }));
  server.put(pod('b', { uid: 'one' }));
  await using node = await start();
  await runs(node, ['a']);
  // In turns, so that each comes as the newer one.
  for (let i = 0; i < 5; i++) for (const name of ['b', 'a']) server.put(pod(name, { uid: 'one' }));
  server.put(pod('beside'));
  await runs(node, ['a', 'beside']);
  expect((await node.containers()).filter((c) => c.restartCount > 0)).toEqual([]);
  // Of another source: a static pod, whose manifest may name its UID.
  const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'static', uid: 'one' }, spec: {} };
  writeFileSync(
    join(node.dir, 'manifests/static.yaml'),
    JSON.stringify({ ...manifest, spec: { containers: [{ name: 'main', image: 'hollow/run' }] } }),
  );
  const warnings = async () => (await node.events()).filter((e) => e.reason === 'FailedValidation').map((e) => e.message);
  await expect
    .poll(warnings)
    .toEqual([
      'pod default/b in the API: pod default/a has its UID; it is not run',
      'source file: pod default/a (uid one) of source api has the UID one; pod default/static-n1 is ignored',
    ]);
  server.drop('a');
  await expect.poll(() => running(node)).toContain('beside');
  // The one that was first is on its way out for a moment.
  await expect.poll(async () => (await running(node)).filter((name) => name !== 'beside' && name !== 'a')).toHaveLength(1);
});
