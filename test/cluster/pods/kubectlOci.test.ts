/** kubectl's streams into containers of `embedded://oci`, through a real API server: exec, attach, cp and port-forward. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { stopAll } from '@actorlet/runtimes/src/process/admin.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ENTRY } from '../../../packages/runtimes/test/processRuntime.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { buildImages } from '../../e2e/lab/images.ts';
import { until } from '../../e2e/lab/ports.ts';
import { IMAGE, manifest, sh } from '../../e2e/manifests.ts';
import { freePort } from '../../freePort.ts';
import { startKubectl } from '../cluster.ts';

let plane: ControlPlane;
let daemon: Daemon;
const POD = `all-${NODE_NAME}`;
const LONG = { timeoutMs: 60_000, everyMs: 100 };
const kubectl = (args: readonly string[], input = '', more = false) => startKubectl(plane, args, input, more);

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane({ flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } });
  const port = await freePort();
  const hosts = ['127.0.0.1', NODE_NAME];
  const serving = plane.ca.issue('serving', { name: `system:node:${NODE_NAME}`, groups: ['system:nodes'], hosts });
  daemon = await createDaemon(
    { endpoint: 'embedded://oci' },
    {
      ...{ enableServer: true, port, tlsCertFile: serving.certFile, tlsPrivateKeyFile: serving.keyFile },
      authentication: { x509: { clientCAFile: plane.ca.certFile }, webhook: { enabled: false }, anonymous: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
    },
  );
  await daemon.start();
  const archive = join(daemon.dir, 'busybox.tar');
  writeFileSync(archive, buildImages().busybox);
  await loadImages(join(daemon.rootDir, 'actorlet.sock'), { file: archive, name: IMAGE });
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE_NAME }, status };
  expect((await plane.request('POST', '/api/v1/nodes', { body: node })).status).toBe(201);
  const containers = [
    sh('main', 'mkdir /www; echo welcome >/www/index.html; ln -s "$(command -v busybox)" /bin/tar; exec httpd -f -p 8080 -h /www'),
    sh('parrot', 'while read line; do echo "<$line>"; done; sleep 3600', { stdin: true }),
    sh('terminal', 'test -t 0 && echo "a terminal"; read x; echo "got $x"; sleep 3600', { stdin: true, tty: true }),
  ];
  daemon.put('all.json', manifest('all', containers));
  await daemon.phase('all', 'Running', 60_000);
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: POD, namespace: 'default' }, spec: { nodeName: NODE_NAME, containers } };
  expect((await plane.request('POST', '/api/v1/namespaces/default/pods', { body: pod })).status).toBe(201);
  const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
  const path = `/api/v1/namespaces/default/pods/${POD}/status`;
  expect((await plane.request('PATCH', path, { body: running, contentType: 'application/merge-patch+json' })).status).toBe(200);
});
afterAll(async () => {
  await daemon?.end('SIGTERM');
  if (daemon !== undefined) await stopAll(daemon.rootDir, { execPath: process.execPath, entry: ENTRY, say: () => undefined, purge: true });
  await daemon?.dispose();
  await plane?.stop();
});

it('exec: outputs, input, exit codes, commands that are not there', async () => {
  const exec = (args: string[], input = '') => kubectl(['exec', '-i', POD, '-c', 'main', '--', ...args], input).result;
  expect(await exec(['sh', '-c', 'echo out; echo err >&2; exit 7'])).toMatchObject({ code: 7, out: 'out\n' });
  const input = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join('');
  const echoed = await exec(['cat'], input);
  expect([echoed.code, echoed.out === input]).toEqual([0, true]);
  expect((await exec(['/no/such/program'])).code).not.toBe(0);
});

it('cp: there and back', async () => {
  const [from, back] = [join(plane.dir, 'from.txt'), join(plane.dir, 'back.txt')];
  writeFileSync(from, 'some text\n'.repeat(50_000));
  await plane.kubectl('cp', '-c', 'main', from, `${POD}:/tmp/there.txt`);
  await plane.kubectl('cp', '-c', 'main', `${POD}:/tmp/there.txt`, back);
  expect(readFileSync(back, 'utf8') === readFileSync(from, 'utf8')).toBe(true);
});

it('attach: with input, and to a terminal', async () => {
  const parrot = kubectl(['attach', '-i', POD, '-c', 'parrot'], 'hello\n', true);
  await until('the echo', () => parrot.ran.out.includes('<hello>'), LONG).finally(() => parrot.stop());
  await parrot.result;
  const terminal = kubectl(['attach', '-i', POD, '-c', 'terminal'], 'typed\n', true);
  await until('what was typed', () => terminal.ran.out.includes('got typed'), LONG).finally(() => terminal.stop());
  await terminal.result;
});

it('port-forward: several connections, into the pod’s own network', async () => {
  const forward = kubectl(['port-forward', `pod/${POD}`, ':8080', '--address=127.0.0.1']);
  try {
    const local = await until('its local port', () => /127\.0\.0\.1:(\d+) ->/.exec(forward.ran.out)?.[1] ?? false, LONG);
    const get = async () => (await fetch(`http://127.0.0.1:${local}/`, { signal: AbortSignal.timeout(20_000) })).text();
    await until('the server in the pod', get, LONG);
    expect([await get(), await get()]).toEqual(['welcome\n', 'welcome\n']);
  } finally {
    forward.stop();
    await forward.result;
  }
});
