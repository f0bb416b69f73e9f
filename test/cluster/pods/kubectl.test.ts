/**
 * kubectl against a node's API as a person types it: kubectl to a real API server, which comes to the daemon with its
 * client certificate, which hands streams on to a real containerd. The pods are static ones, told to the API server by
 * hand, so that what is tested here is the node's API alone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container } from '../../../src/machines/kube/podTable.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, minorVersion, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { IMAGE, manifest, sh, steady } from '../../e2e/manifests.ts';
import { freePort } from '../../freePort.ts';
import { startKubectl } from '../cluster.ts';
import { openChannels } from '../webSocket.ts';

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
let port = 0;
const LONG = { timeoutMs: 60_000, everyMs: 100 };

beforeAll(async () => {
  await buildDaemon();
  // Service accounts belong to controllers that are not needed here.
  plane = await startControlPlane({ flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } });
  lab = await startContainerd();
  port = await freePort();
  const serving = plane.ca.issue('serving', {
    name: `system:node:${NODE_NAME}`,
    groups: ['system:nodes'],
    hosts: ['127.0.0.1', NODE_NAME],
  });
  daemon = await createDaemon(lab, {
    enableServer: true,
    port,
    tlsCertFile: serving.certFile,
    tlsPrivateKeyFile: serving.keyFile,
    authentication: { x509: { clientCAFile: plane.ca.certFile }, webhook: { enabled: false }, anonymous: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
  });
  await daemon.start();
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    // As a node of a cluster says: servers from 1.36 on hand WebSockets on.
    declaredFeatures: ['ExtendWebSocketsToKubelet'],
  };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE_NAME }, status };
  expect((await plane.request('POST', '/api/v1/nodes', { body: node })).status).toBe(201);
});
afterAll(async () => {
  await daemon?.dispose();
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

/** A static pod that runs, and that the API server believes to run. Gives its name there. */
async function runPod(name: string, containers: Container[]): Promise<string> {
  daemon.put(`${name}.json`, manifest(name, containers));
  await daemon.phase(name, 'Running', 60_000);
  const known = `${name}-${NODE_NAME}`;
  const spec = { nodeName: NODE_NAME, containers: containers.map((c) => ({ ...c, image: IMAGE })) };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: known, namespace: 'default' }, spec };
  expect((await plane.request('POST', '/api/v1/namespaces/default/pods', { body: pod })).status).toBe(201);
  const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
  const path = `/api/v1/namespaces/default/pods/${known}/status`;
  expect((await plane.request('PATCH', path, { body: running, contentType: 'application/merge-patch+json' })).status).toBe(200);
  return known;
}

/** kubectl with something on its standard input, which ends after it unless `more` will come. */
const kubectl = (args: readonly string[], input = '', more = false) => startKubectl(plane, args, input, more);

describe('kubectl', () => {
  it('logs: a whole log, its tail, with time stamps, cut, and followed to the end of the container', async () => {
    // The two streams are copied side by side: only with time between them is it sure which line comes first.
    const pod = await runPod('talk', [
      sh('main', 'echo one; sleep 1; echo two >&2; until [ -e /go ]; do sleep 0.2; done; echo three; exit 0'),
    ]);
    expect(await until('both lines', async () => (await plane.kubectl('logs', pod)) === 'one\ntwo\n', LONG)).toBe(true);
    expect(await plane.kubectl('logs', pod, '--tail=1')).toBe('two\n');
    expect(await plane.kubectl('logs', pod, '--limit-bytes=5')).toBe('one\nt');
    expect(await plane.kubectl('logs', pod, '--timestamps')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\S+ one\n/);
    expect(await plane.kubectl('logs', pod, '--since=1h')).toBe('one\ntwo\n');
    const followed = kubectl(['logs', '-f', pod]);
    await until('what was written before', () => followed.ran.out === 'one\ntwo\n', LONG);
    await plane.kubectl('exec', pod, '--', 'touch', '/go');
    expect(await followed.result).toMatchObject({ code: 0, out: 'one\ntwo\nthree\n' });
    await expect(plane.kubectl('logs', pod, '-c', 'none')).rejects.toThrow(/none/);
  });
  it('logs --previous: the run before', async () => {
    const pod = await runPod('again', [sh('main', 'echo run; if [ ! -e /tmp/x ]; then sleep 2; exit 1; fi; sleep 3600')]);
    await until('a second run', async () => ((await daemon.pod('again'))?.status.containerStatuses?.[0]?.restartCount ?? 0) > 0, LONG);
    await until('its log', async () => (await plane.kubectl('logs', '--previous', pod)) === 'run\n', LONG);
  });
  it('exec: output, errors, input and exit codes', async () => {
    const pod = await runPod('steady', [steady()]);
    expect(await kubectl(['exec', pod, '--', 'sh', '-c', 'echo out; echo err >&2']).result).toEqual({
      code: 0,
      out: 'out\n',
      err: 'err\n',
    });
    expect((await kubectl(['exec', pod, '--', 'sh', '-c', 'exit 7']).result).code).toBe(7);
    const input = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join('');
    const echoed = await kubectl(['exec', '-i', pod, '--', 'cat'], input).result;
    expect([echoed.code, echoed.out === input]).toEqual([0, true]);
    expect(await kubectl(['exec', pod, '--', '/no/such/program']).result).toMatchObject({ code: expect.not.toBeOneOf([0, null]), out: '' });
    await expect(plane.kubectl('exec', pod, '-c', 'none', '--', 'id')).rejects.toThrow(/none/);
  });
  it('cp: there and back', async () => {
    const pod = await runPod('copy', [
      sh('main', 'ln -s "$(command -v busybox)" /bin/tar; trap "exit 0" TERM; while :; do sleep 3600 & wait; done'),
    ]);
    const [from, back] = [join(plane.dir, 'from.txt'), join(plane.dir, 'back.txt')];
    writeFileSync(from, 'some text\n'.repeat(50_000));
    await plane.kubectl('cp', from, `${pod}:/tmp/there.txt`);
    await plane.kubectl('cp', `${pod}:/tmp/there.txt`, back);
    expect(readFileSync(back, 'utf8') === readFileSync(from, 'utf8')).toBe(true);
  });
  it('attach: to what runs already, with its input', async () => {
    const pod = await runPod('parrot', [sh('main', 'while read line; do echo "<$line>"; done; sleep 3600', { stdin: true })]);
    const attached = kubectl(['attach', '-i', pod], 'hello\n', true);
    await until('the echo', () => attached.ran.out.includes('<hello>'), LONG).finally(() => attached.stop());
    await attached.result;
  });
  it('port-forward: several connections, one after the other', async () => {
    const pod = await runPod('site', [sh('main', 'mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www')]);
    const forward = kubectl(['port-forward', `pod/${pod}`, ':8080', '--address=127.0.0.1']);
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
  it('get --raw: the node’s statistics and metrics, through the API server where it lets one', async () => {
    await runPod('measured', [steady()]);
    const raw = (path: string) => plane.nodePage({ node: NODE_NAME, port, path });
    const named = (s: { pods: { podRef: { name: string }; containers: { memory?: { workingSetBytes?: number } }[] }[] }) =>
      s.pods.find((p) => p.podRef.name === `measured-${NODE_NAME}`);
    const pod = await until('statistics of the pod', async () => named(JSON.parse(await raw('/stats/summary'))), LONG);
    expect(pod.containers[0]?.memory?.workingSetBytes).toBeGreaterThan(0);
    const metrics = await raw('/metrics/resource');
    expect(metrics).toMatch(
      /^container_cpu_usage_seconds_total\{container="main",namespace="default",pod="measured-e2e"\} [\d.e+-]+ \d+$/m,
    );
    expect(metrics).toContain('resource_scrape_error 0\n');
    expect(await raw('/healthz')).toBe('ok');
    expect(JSON.parse(await raw('/pods')).items.length).toBeGreaterThan(0);
    expect(JSON.parse(await raw('/runningpods/')).items.length).toBeGreaterThan(0);
  });
});

it.skipIf(minorVersion('kube-apiserver') < 36)('streams of kubectl come to the node as WebSockets, and are counted', async () => {
  const pod = await runPod('sockets', [steady()]);
  const counted = async (subresource: string) => {
    const text = await plane.nodePage({ node: NODE_NAME, port, path: '/metrics' });
    return Number(
      new RegExp(`^kubelet_websocket_streaming_requests_total\\{subresource="${subresource}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0,
    );
  };
  const before = await counted('exec');
  const ran = await kubectl(['exec', '-i', pod, '--', 'sh', '-c', 'cat; exit 5'], 'to the end').result;
  expect([ran.out, ran.code, (await counted('exec')) - before]).toEqual(['to the end', 5, 1]);
  const proxied = await plane.kubectl('get', '--raw', '/metrics');
  expect(proxied).toMatch(/proxied_to_kubelet/);
  for (const subresource of ['attach', 'portforward']) expect(await counted(subresource)).toBeGreaterThan(0);
});

describe('WebSocket clients', () => {
  const open = (path: string, protocol = 'v4.channel.k8s.io') =>
    openChannels({ port, path, protocol, client: plane.kubeletClient, ca: plane.ca.certFile });
  const execPath = (pod: string, script: string, more = '') =>
    `/exec/default/${pod}/main?output=1${more}&command=sh&command=-c&command=${encodeURIComponent(script)}`;

  it('run a command: an empty frame first, then output, then the status with its exit code (traps 38, 40)', async () => {
    const pod = await runPod('socket', [steady()]);
    const c = await open(execPath(pod, 'echo out; echo err >&2; exit 3', '&error=1'));
    await until('the status', () => c.text(3) !== '', LONG);
    expect([c.frames[0]?.channel, c.frames[0]?.bytes.length]).toEqual([1, 0]);
    expect([c.text(1), c.text(2)]).toEqual(['out\n', 'err\n']);
    expect(JSON.parse(c.text(3))).toMatchObject({
      status: 'Failure',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    });
    await until('the end', () => c.ended, LONG);
  });
  it('have a terminal, with its size', async () => {
    const pod = await runPod('terminal', [steady()]);
    const c = await open(execPath(pod, 'while read go; do stty size; tty; done', '&tty=1&input=1'));
    c.send(4, '{"Width":101,"Height":33}');
    // Runtimes take sizes and input by different ways: it is asked until the size has arrived.
    await until(
      'the answer',
      () => {
        if (/33 101\r\n\/dev\/pts\/\d+\r\n/.test(c.text(1))) return true;
        c.send(0, 'go\n');
        return false;
      },
      { ...LONG, everyMs: 500 },
    );
    c.close();
  });
  it('forward a port, named on both channels in little-endian (trap 39)', async () => {
    const pod = await runPod('greeter', [sh('main', 'while :; do echo welcome | nc -l -p 8080; done')]);
    const c = await open(`/portForward/default/${pod}?port=8080`);
    await until('both names of the port', () => c.frames.length >= 2, LONG);
    expect(c.frames.slice(0, 2).map((f) => [f.channel, ...f.bytes])).toEqual([
      [0, 0x90, 0x1f],
      [1, 0x90, 0x1f],
    ]);
    await until('the greeting', () => c.text(0).includes('welcome'), LONG);
    c.close();
  });
  it('are refused as anybody is', async () => {
    await expect(open('/exec/default/none/main?output=1&command=id')).rejects.toThrow(/^404 pod does not exist/);
    await expect(open('/exec/default/none/main?command=id')).rejects.toThrow(/^400 /);
  });
});

it('lets nobody in without a certificate of the client CA', async () => {
  const status = await new Promise<number>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/pods', ca: readFileSync(plane.ca.certFile), agent: false };
    const req = request(options, (res) => {
      res.resume();
      res.once('end', () => resolve(res.statusCode ?? 0));
    });
    req.once('error', reject);
    req.end();
  });
  expect(status).toBe(401);
});
