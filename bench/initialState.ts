/**
 * What a node pays for its first state of many pods: bytes on the wire, time, and the peak of resident memory, by a stream of
 * initial events, by a list in one answer (as the server's cache gives it, which knows no pages) and by pages. The client is the
 * daemon's own port and list-watch, in a process of its own under the daemon's V8 flags; the server is a loopback one in this
 * process, with TLS. A client that asks for no pods is the base.
 * Options: --pods=5000 --rounds=5 --out=FILE
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createActor } from 'xstate';
import { kubeClient, listWatch } from '../src/actors/api/client.ts';
import { createKubeApi } from '../src/boot/dependencies/kube/kubeApi.ts';
import { INITIAL_EVENTS_END } from '../src/machines/kube/request.ts';
import { Authority } from '../test/e2e/lab/pki.ts';
import { numberOption, option, projectRoot, report, say, summary } from './lib/report.ts';

const PODS_PATH = '/api/v1/pods';
const WAYS = ['stream', 'list', 'pages'] as const;
type Way = (typeof WAYS)[number] | 'none';
interface Reading {
  ms: number;
  peakMiB: number;
}

/** About what a pod of a Deployment is in the API: two containers, a status, and who wrote which field. */
function pod(i: number): object {
  const container = (name: string) => ({
    name,
    image: `registry.example/team/${name}:1.${i % 7}`,
    env: Array.from({ length: 8 }, (_, n) => ({ name: `SETTING_${n}`, value: `value-${i}-${n}` })),
    resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
    volumeMounts: [{ name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true }],
    readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 10 },
  });
  const fields = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`f:field${n}`, { 'f:value': {}, 'f:name': {} }]));
  const names = ['app', 'proxy'];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name: `web-${i}`, namespace: 'default', uid: `00000000-0000-4000-a000-${String(i).padStart(12, '0')}` },
      ...{ resourceVersion: String(i + 1), labels: { app: 'web', 'pod-template-hash': '5d9c7b' } },
      managedFields: [{ manager: 'kubelet', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: fields }],
    },
    spec: { nodeName: 'n1', containers: names.map(container), volumes: [{ name: 'token', projected: { sources: [] } }] },
    status: {
      phase: 'Running',
      conditions: ['Ready', 'Initialized', 'ContainersReady', 'PodScheduled'].map((type) => ({ type, status: 'True' })),
      containerStatuses: names.map((name) => ({ name, ready: true, containerID: `containerd://${'0'.repeat(64)}`, restartCount: 0 })),
    },
  };
}

// ---- the server ----------------------------------------------------------------------------------------------------

function answer(res: ServerResponse, query: URLSearchParams, o: { pods: readonly string[]; whole: boolean; listed: boolean }): void {
  const { pods } = o;
  const resourceVersion = String(pods.length + 1);
  res.writeHead(200, { 'content-type': 'application/json' });
  if (!o.listed) return void res.end('{}');
  if (query.get('watch') === 'true') {
    if (query.get('sendInitialEvents') === 'true') {
      for (const text of pods) res.write(`{"type":"ADDED","object":${text}}\n`);
      const metadata = { resourceVersion, annotations: { [INITIAL_EVENTS_END]: 'true' } };
      res.write(`${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Pod', metadata } })}\n`);
    } else res.flushHeaders();
    return;
  }
  const from = Number(query.get('continue') ?? '0');
  const to = o.whole ? pods.length : Math.min(pods.length, from + Number(query.get('limit') ?? pods.length));
  const metadata = { resourceVersion, ...(to < pods.length ? { continue: String(to) } : {}) };
  res.end(`{"kind":"PodList","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[${pods.slice(from, to).join(',')}]}`);
}

// ---- the client ----------------------------------------------------------------------------------------------------

async function measure(way: Way, o: { server: string; ca: string; pods: number }): Promise<Reading> {
  const clock = {
    wallMs: () => Date.now(),
    monoMs: () => performance.now(),
    setTimeout: (fn: () => void, ms: number) => setTimeout(fn, ms),
    clearTimeout: (id: unknown) => clearTimeout(id as NodeJS.Timeout),
  };
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const none = { cert: null, key: null, token: null, exec: null, tlsServerName: null, insecure: false, proxy: null };
  const kube = createKubeApi({
    config: { path: '-', server: new URL(o.server), ca: { data: readFileSync(o.ca) }, ...none },
    ...{ clock, userAgent: 'bench', log: silent as never },
    ...{ kube: { qps: 50, burst: 100 }, event: { qps: 50, burst: 100 } },
  });
  const abort = new AbortController();
  const ctx = {
    ports: { clock, rng: { next: () => 0 }, yield: { defer: (fn: () => void) => void setImmediate(fn) }, kube },
    registry: { read: () => undefined, send: () => 'delivered' },
    signal: abort.signal,
    log: silent,
  };
  // The connection and its keys are no part of what differs.
  await kubeClient(ctx as never).request({ verb: 'GET', path: '/version' });
  const began = performance.now();
  if (way !== 'none')
    await new Promise<void>((done) => {
      const deliver = ({ items }: { items: { size: number } }) => {
        if (items.size >= o.pods) done();
      };
      const { logic, input } = listWatch(ctx as never, { what: 'pods', path: PODS_PATH, streams: way === 'stream', deliver });
      createActor(logic, { input: input as never }).start();
    });
  const ms = performance.now() - began;
  const status = readFileSync('/proc/self/status', 'utf8');
  return { ms, peakMiB: Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1024 };
}

const launcher = readFileSync(join(projectRoot, 'scripts/launch.sh'), 'utf8');
const BURST_FLAGS = /^burst_v8_flags='(.*)'$/m.exec(launcher)?.[1] ?? '';
const LAUNCHER_FLAGS = (/^v8_flags=\$\{ACTORLET_V8_FLAGS-(.*)\}$/m.exec(launcher)?.[1] ?? '')
  .replace('$burst_v8_flags', BURST_FLAGS)
  .split(' ');

async function main(): Promise<void> {
  const count = numberOption('pods', 5_000);
  const rounds = numberOption('rounds', 5);
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-initial-'));
  try {
    const authority = new Authority(dir, 'ca');
    const pair = authority.issue('server', { name: 'server', hosts: ['127.0.0.1'] });
    const texts = Array.from({ length: count }, (_, i) => JSON.stringify(pod(i)));
    let bytes = 0;
    let whole = true;
    const server = createServer({ cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) }, (req, res) => {
      const asked = new URL(req.url ?? '/', 'http://h');
      answer(res, asked.searchParams, { pods: texts, whole, listed: asked.pathname === PODS_PATH });
    });
    server.on('connection', (socket: Socket) => socket.on('close', () => (bytes += socket.bytesWritten)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const args = [...LAUNCHER_FLAGS, '--disable-warning=ExperimentalWarning', import.meta.filename, `--server=${url}`];
    const samples: Record<string, { ms: number[]; peakMiB: number[]; wireMiB: number[] }> = {};
    for (let round = 1; round <= rounds; round++) {
      for (const way of ['none', ...WAYS] as const) {
        say(`round ${round} of ${rounds}: ${way}`);
        whole = way === 'list';
        bytes = 0;
        const mine = [...args, `--ca=${authority.certFile}`, `--way=${way}`, `--count=${count}`];
        const { stdout } = await promisify(execFile)(process.execPath, mine);
        await new Promise((go) => setImmediate(go));
        const { ms, peakMiB } = JSON.parse(stdout) as Reading;
        samples[way] ??= { ms: [], peakMiB: [], wireMiB: [] };
        samples[way].ms.push(ms);
        samples[way].peakMiB.push(peakMiB);
        samples[way].wireMiB.push(bytes / 2 ** 20);
      }
    }
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    const figures = Object.entries(samples).map(([way, s]) => [
      way,
      { ms: summary(s.ms), peakMiB: summary(s.peakMiB), wireMiB: summary(s.wireMiB) },
    ]);
    const podBytes = Math.round(texts.reduce((sum, t) => sum + t.length, 0) / count);
    await report('initialState', { pods: count, podBytes, rounds, ...Object.fromEntries(figures) });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const way = option('way') as Way | undefined;
if (way === undefined) await main();
else {
  const reading = await measure(way, { server: option('server') ?? '', ca: option('ca') ?? '', pods: numberOption('count', 1) });
  process.stdout.write(JSON.stringify(reading), () => process.exit(0));
}
